"""One tenant attacks; another one subscribes and publishes as if nothing were.

The ordinary suite tests each mechanism (`tests/service/test_fairness.py`, `test_webhooks.py`,
`test_delivery.py`). This is about time and memory. Other work on the machine costs time, too: what
an attack adds is compared with what the same tenant measures in the same run before it.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.noisy_neighbours import ATTACKS, measured

_MOST_SECONDS = 0.25
_MOST_MEGABYTES = 600


@pytest.mark.long
@pytest.mark.parametrize("attack", ATTACKS)
def test_a_neighbour_notices_little(attack: str, tmp_path: Path) -> None:
    figures = measured(attack, tmp_path / "served")
    print(f"{attack}: {figures}")
    assert figures.failures == []
    assert figures.p99() < _MOST_SECONDS + figures.calm_p99, str(figures)
    assert figures.megabytes < _MOST_MEGABYTES, str(figures)
    assert figures.webhook, "no webhook was delivered"

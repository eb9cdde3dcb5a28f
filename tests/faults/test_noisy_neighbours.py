"""One tenant attacks; another one subscribes and publishes as if nothing were.

The ordinary suite tests each mechanism (`tests/service/test_fairness.py`, `test_webhooks.py`,
`test_delivery.py`). This is about time and memory, so it needs a machine that does nothing else.
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
    assert figures.p99() < _MOST_SECONDS, str(figures)
    assert figures.megabytes < _MOST_MEGABYTES, str(figures)
    assert figures.webhook, "no webhook was delivered"

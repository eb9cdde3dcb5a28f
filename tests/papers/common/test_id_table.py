"""The table of ids against a dict, over long random histories."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from matchmill.errors import InputError
from matchmill.papers.common.id_table import (
    check_known,
    check_new,
    find_ids,
    new_id_table,
    with_ids,
    without_ids,
)

pytestmark = pytest.mark.kernels


@pytest.mark.parametrize("step", [1, 16, 1 << 40], ids=["dense", "spread", "upper bits alone"])
def test_it_is_a_dict(step: int) -> None:
    rng = Random(3)
    table, known = new_id_table(), dict[int, int]()
    for turn in range(60):
        if known and rng.random() < 0.5:
            gone = rng.sample(sorted(known), rng.randint(1, len(known)))
            without_ids(table, np.array(gone))
            for i in gone:
                del known[i]
        else:
            new = [i * step for i in range(-40, 200) if i * step not in known]
            new = rng.sample(new, min(len(new), rng.randint(1, 60)))
            table = with_ids(table, np.array(new), np.arange(len(new)) + turn)
            known |= {i: turn + k for k, i in enumerate(new)}
        asked = [i * step for i in range(-50, 210)]
        assert find_ids(table, np.array(asked)).tolist() == [known.get(i, -1) for i in asked]
        assert table.n_used[0] == len(known)
        assert 2 * len(known) <= len(table.cells)


def test_ids_that_are_there_and_ids_that_are_not() -> None:
    table = with_ids(new_id_table(), np.array([3, 5]), np.array([0, 1]))
    new, old = np.array([4, 6]), np.array([5, 6])
    check_new(find_ids(table, new), new)
    check_known(find_ids(table, np.array([3, 5])))
    with pytest.raises(InputError, match="1 of these 2 clauses are in the index already"):
        check_new(find_ids(table, old), old)
    twice = np.array([4, 4])
    with pytest.raises(InputError, match="an id is given twice; none was inserted"):
        check_new(find_ids(table, twice), twice)
    with pytest.raises(InputError, match="1 of these 2 things are not in the index; none was"):
        check_known(find_ids(table, old), "things")

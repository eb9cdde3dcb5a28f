"""Work on ranges in threads."""

from __future__ import annotations

from threading import Barrier

import numpy as np
import pytest

from matchmill.kernels import threads as _threads
from matchmill.kernels.threads import at_once, on_ranges, split_evenly, split_weights


@pytest.fixture(params=[1, 2, 3, 8])
def n_cores(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """So many cores, and a thread for every ten elements."""
    monkeypatch.setattr(_threads, "_WORTH_A_THREAD", 10)
    monkeypatch.setattr(_threads.os, "sched_getaffinity", lambda _: set(range(request.param)))
    return int(request.param)


@pytest.mark.parametrize("n", [0, 1, 9, 25, 1000])
def test_ranges_cover_all_elements_once(n: int, n_cores: int) -> None:
    cuts = split_evenly(n)
    assert len(cuts) - 1 == max(1, min(n_cores, n // 10))
    assert [i for part in on_ranges(range, cuts) for i in part] == list(range(n))


@pytest.mark.parametrize("weights", [[], [5], [0, 0, 0], [100, 1, 1], [1, 1, 100], [7] * 50])
def test_ranges_by_weight(weights: list[int], n_cores: int) -> None:
    cuts = split_weights(np.concatenate(([0], np.cumsum(weights, dtype=np.int64))))
    assert cuts[0] == 0
    assert cuts == sorted(cuts)
    assert [i for part in on_ranges(range, cuts) for i in part] == list(range(len(weights)))


def test_equal_weights_are_split_evenly(n_cores: int) -> None:
    cuts = split_weights(np.arange(0, 8 * 1000 + 1, 10))
    assert np.ptp(np.diff(cuts)) <= 1


def test_an_error_of_one_range_is_raised(n_cores: int) -> None:
    def fail_at_the_end(start: int, stop: int) -> int:
        if stop == 100:
            raise ValueError(f"no {stop}")
        return start

    with pytest.raises(ValueError, match="no 100"):
        on_ranges(fail_at_the_end, split_evenly(100))


@pytest.mark.parametrize("n", [5, 1000])
def test_two_tasks_at_once(n: int, n_cores: int) -> None:
    meeting = Barrier(2, timeout=10)
    is_meeting = n_cores > 1 and n == 1000  # else one after the other

    def task(number: int) -> int:
        if is_meeting:
            meeting.wait()
        return number

    assert at_once(n, lambda: task(1), lambda: task(2)) == (1, 2)


def test_an_error_of_one_of_two_tasks_is_raised(n_cores: int) -> None:
    def fail() -> None:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        at_once(1000, fail, lambda: 1)
    with pytest.raises(ValueError, match="no"):
        at_once(1000, lambda: 1, fail)


def test_processors_are_counted_where_there_is_no_affinity(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on macOS."""
    monkeypatch.delattr(_threads.os, "sched_getaffinity")
    monkeypatch.setattr(_threads.os, "cpu_count", lambda: 3)
    assert _threads.n_processors() == 3
    assert _threads.n_threads(10**9) == 3
    monkeypatch.setattr(_threads.os, "cpu_count", lambda: None)
    assert _threads.n_processors() == 1

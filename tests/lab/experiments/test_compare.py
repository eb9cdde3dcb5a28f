"""Noise is called noise, and a difference is found."""

from __future__ import annotations

import random

import pytest

from matchmill.lab.experiments.compare import judgement, rank_sum_p


def rounds(
    rng: random.Random, n: int = 5, scale: float = 100.0, jitter: float = 0.1
) -> list[float]:
    """Times with jitter, and now and then one that is far too long."""
    times = [scale * (1 + jitter * rng.random()) for _ in range(n)]
    if rng.random() < 0.3:
        times[rng.randrange(n)] *= 3
    return times


@pytest.mark.parametrize("n", [3, 5, 9])
def test_jitter_is_noise(n: int) -> None:
    rng = random.Random(1)
    labels = [judgement(rounds(rng, n), rounds(rng, n)) for _ in range(500)]
    assert set(labels) == {"noise"}


@pytest.mark.parametrize("jitter", [0.3, 0.6])
def test_strong_jitter_is_nearly_always_noise(jitter: float) -> None:
    rng = random.Random(2)
    labels = [
        judgement(rounds(rng, jitter=jitter), rounds(rng, jitter=jitter)) for _ in range(1000)
    ]
    assert labels.count("noise") >= 985


@pytest.mark.parametrize("n", [3, 5, 9])
def test_twice_as_long_is_slower_and_half_is_faster(n: int) -> None:
    rng = random.Random(3)
    for _ in range(200):
        a = [100 * (1 + 0.1 * rng.random()) for _ in range(n)]
        b = [200 * (1 + 0.1 * rng.random()) for _ in range(n)]
        assert judgement(a, b) == "slower"
        assert judgement(b, a) == "faster"


def test_a_small_but_steady_difference_is_noise_below_five_percent() -> None:
    assert judgement([100, 101, 102, 103, 104], [104.5, 105, 106, 107, 108]) == "noise"
    assert judgement([100, 101, 102, 103, 104], [110, 111, 112, 113, 114]) == "slower"


def test_a_busy_machine_is_noise() -> None:
    """All rounds but one are slow: the fastest tells that nothing has changed."""
    assert judgement([100, 100, 101, 102, 103], [100, 150, 160, 170, 180]) == "noise"


def test_identical_rounds_are_noise() -> None:
    assert judgement([1.0] * 5, [1.0] * 5) == "noise"


def test_rank_sum_is_exact() -> None:
    assert rank_sum_p([1, 2, 3, 4, 5], [6, 7, 8, 9, 10]) == pytest.approx(2 / 252)
    assert rank_sum_p([1, 2, 3, 4, 6], [5, 7, 8, 9, 10]) == pytest.approx(4 / 252)
    assert rank_sum_p([1, 3], [2, 4]) == pytest.approx(2 / 3)
    assert rank_sum_p([1, 1], [1, 1]) == 1.0

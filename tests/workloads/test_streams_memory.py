from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.workloads.streaming import FACTORS, factor, matrix, noisy_rows

from defocus.noise import discrete_gaussian
from defocus.noise.testing import seeded
from defocus.workloads.streams_factors import Factor, Tree
from defocus.workloads.streams_memory import FactorMemory, Memory, TreeMemory

STRATEGIES: list[Factor | Tree] = [*(factor(30, **kind) for kind in FACTORS), Tree(30, scale=16)]
NAMES = [*(str(kind) for kind in FACTORS), "tree"]


def memory(strategy: Factor | Tree, width: int) -> Memory:
    return TreeMemory(strategy, width) if isinstance(strategy, Tree) else FactorMemory(strategy, width)


def run(strategy: Factor | Tree, x: list[int], z: list[int]) -> list[float]:
    """The sums released for data x when the rows get the noise z, in order."""
    left = iter(z)
    stream = memory(strategy, 1)
    return [
        float(stream.advance(np.array([v]), lambda k: np.array([[next(left)] for _ in range(k)], dtype=np.int64))[0])
        for v in x
    ]


@pytest.mark.parametrize("strategy", STRATEGIES, ids=NAMES)
def test_without_noise_the_sums_are_the_sums(strategy: Factor | Tree) -> None:
    x = [(7 * t * t) % 1001 - 400 for t in range(30)]
    assert run(strategy, x, [0] * 200) == pytest.approx(np.cumsum(x).tolist(), abs=1e-8)


@pytest.mark.parametrize("strategy", [s for s in STRATEGIES if isinstance(s, Factor)], ids=NAMES[:-1])
def test_noise_reaches_the_sums_through_the_inverse_of_the_strategy(strategy: Factor) -> None:
    z = discrete_gaussian(2.0**30, 64, seeded(3))[:30].tolist()
    expected = np.tri(30) @ np.linalg.inv(matrix(strategy).astype(float)) @ np.array(z, dtype=float)
    assert run(strategy, [0] * 30, z) == pytest.approx(expected.tolist(), rel=1e-9)


@settings(max_examples=30)
@given(st.integers(0, len(STRATEGIES) - 1), st.lists(st.integers(-1000, 1000), min_size=30, max_size=30))
def test_two_streams_with_the_same_noisy_rows_release_the_same_bits(which: int, x: list[int]) -> None:
    """The sums are a function of the noisy rows alone: data that noise makes up for leaves no trace, not even in the
    last bit of a float."""  # noqa: D209, D205 # a sentence of two lines
    strategy = STRATEGIES[which]
    other = [x[0] + 1, *x[1:-1], x[-1] - 77]
    z = discrete_gaussian(2.0**20, 64, seeded(5)).tolist()
    shift = [a - b for a, b in zip(noisy_rows(strategy, x), noisy_rows(strategy, other), strict=True)]
    assert run(strategy, x, z) == run(strategy, other, [a + b for a, b in zip(z, shift, strict=False)])


@pytest.mark.parametrize("strategy", STRATEGIES, ids=NAMES)
def test_a_dumped_memory_goes_on_as_if_nothing_had_happened(strategy: Factor | Tree) -> None:
    rows = np.arange(3 * 400).reshape(400, 3)

    def noise(k: int) -> Any:
        return rows[:k]

    steady, first = memory(strategy, 3), memory(strategy, 3)
    x = np.array([1, -2, 3])
    for _ in range(17):
        steady.advance(x, noise)
        first.advance(x, noise)
    second = memory(strategy, 3)
    second.load(first.dump())
    for _ in range(13):
        assert second.advance(x, noise).tolist() == steady.advance(x, noise).tolist()


@pytest.mark.statistical
@pytest.mark.parametrize("strategy", STRATEGIES, ids=NAMES)
def test_measured_variances_are_the_predicted_ones_and_no_others(strategy: Factor | Tree) -> None:
    """20 000 entries are as many independent streams; the standard error of a variance is 1 %."""
    entries, bits, sigma = 20_000, seeded(11), 2.0**22
    stream = memory(strategy, entries)

    def noise(k: int) -> Any:
        return discrete_gaussian(sigma, k * entries, bits).reshape(k, entries)

    predicted = np.array(list(strategy.variances())) * sigma**2
    zeros = np.zeros(entries, dtype=np.int64)
    measured = np.array([np.mean(stream.advance(zeros, noise) ** 2) for _ in range(30)])
    ratio = measured / predicted
    assert (np.abs(ratio - 1) < 0.05).all()
    assert not (np.abs(ratio * 1.1 - 1) < 0.05).all()

import copy
import os
import pickle
import re
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.workloads.streaming import FACTORS, factor, matrix, noisy_rows

from defocus.errors import ReleaseFailedError, StreamEndedError, StreamStateError, UnfitDataError
from defocus.ledger import Ledger
from defocus.noise import Bits, discrete_gaussian
from defocus.noise.testing import seeded
from defocus.workloads.streams import RunningSum
from defocus.workloads.streams.run import FactorMemory, Memory, Step, TreeMemory
from defocus.workloads.streams.strategies import Factor, Tree

PLAN = RunningSum(20, epsilon=1, delta=1e-6)
VECTORS = RunningSum(20, epsilon=1, delta=1e-6, entries=3)


class Failing(Bits):
    __slots__ = ()

    def words(self, n: int) -> Any:
        del n
        message = "secret 12345"
        raise OSError(message)

    def integer(self, nbits: int) -> int:
        return int(self.words(nbits))


def test_each_step_releases_the_sum_so_far(ledger: Ledger) -> None:
    with PLAN.start(ledger=ledger, purpose="visits", bits=seeded(1)) as stream:
        steps = [stream.add(10**6) for _ in range(20)]
    for number, step in enumerate(steps, start=1):
        assert step.step == number
        assert isinstance(step.value, float)
        assert abs(step.value - number * 10**6) < 6 * step.standard_error
        assert step.standard_error == PLAN.standard_error(number)
        assert step.half_width(0.9) == PLAN.interval(number, 0.9)
    assert "step 20" in str(steps[-1])


def test_vectors_stay_vectors(ledger: Ledger) -> None:
    stream = VECTORS.start(ledger=ledger, purpose="visits by ward")
    stream.add([10**6, 0, -(10**6)])
    found = stream.add(np.array([1, 2, 3])).value
    assert isinstance(found, np.ndarray)
    assert np.abs(found - [10**6, 0, -(10**6)]).max() < 1000


def test_a_step_past_the_end_is_refused_and_releases_nothing(ledger: Ledger) -> None:
    stream = PLAN.start(ledger=ledger, purpose="visits")
    for _ in range(20):
        stream.add(1)
    before, last = len(ledger), stream.last
    with pytest.raises(StreamEndedError, match="20 steps") as refusal:
        stream.add(1)
    assert "another RunningSum" in refusal.value.fix
    assert len(ledger) == before
    assert stream.last == last


@pytest.mark.parametrize("x", [[1], (1,), np.array([1]), np.array(1)])
def test_what_is_no_single_number_is_refused_and_uses_up_no_step(ledger: Ledger, x: object) -> None:
    stream = PLAN.start(ledger=ledger, purpose="visits")
    with pytest.raises(UnfitDataError):
        stream.add(x)
    assert stream.step == 0
    assert stream.add(5).step == 1


@pytest.mark.parametrize(
    ("x", "meant"),
    [
        (None, 0), (float("nan"), 0), ("7", 0), ({}, 0), (pd.NA, 0), (Decimal("NaN"), 0), (Decimal("sNaN"), 0), (1j, 0),
        (True, 1), (7.0, 7), (np.float64(7), 7), (6.9, 6), (-6.1, -7), (Fraction(1, 2), 0), (float("inf"), 100),
        (-float("inf"), -100), (Decimal("1e999999"), 100), (-(10**400), -100),
    ],
)  # fmt: skip
def test_every_value_of_a_step_means_a_number_and_none_is_refused(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch, x: object, meant: int
) -> None:
    plans = [RunningSum(2, epsilon=1, delta=1e-6, largest=100, entries=entries) for entries in (None, 2)]
    one, two = (plan.start(ledger=ledger, purpose="visits") for plan in plans)
    taken: list[Any] = []

    def advance(_: object, x: Any, __: object) -> Any:
        taken.append(x.tolist())
        return x.astype(float)

    monkeypatch.setattr(type(one._memory), "advance", advance)
    for stream, value in ((one, x), (two, [5, x]), (two, np.array([5, x], object))):
        stream.add(value)
    assert taken == [[meant], [5, meant], [5, meant]]


@pytest.mark.parametrize("x", [1, [1, 2], [1, 2, 3, 4], np.array([1.5, 2, 3]), [[1, 2, 3]], "abc", {1, 2, 3}])
def test_what_is_no_vector_of_the_right_length_is_refused(ledger: Ledger, x: object) -> None:
    stream = VECTORS.start(ledger=ledger, purpose="visits")
    with pytest.raises(UnfitDataError):
        stream.add(x)
    assert stream.step == 0


def test_large_entries_are_cut(ledger: Ledger) -> None:
    plan = RunningSum(4, epsilon=1, delta=1e-6, largest=100)
    stream = plan.start(ledger=ledger, purpose="visits", bits=seeded(2))
    total = [float(stream.add(x).value) for x in (2**62, -(2**62), 100, 2**63 - 1)][-1]
    assert abs(total - 200) < 60


@pytest.mark.parametrize(
    "x", [[2**70, -(2**70), 7], np.array([2**64 - 1, 0, 7], np.uint64), np.array([2**70, -(2**70), 7], object)]
)
def test_no_integer_is_too_large_to_be_cut(ledger: Ledger, x: Any) -> None:
    """A refusal that depends on how large an entry is would tell how large it is."""
    plan = RunningSum(4, epsilon=1, delta=1e-6, entries=3, largest=1000)
    released = plan.start(ledger=ledger, purpose="visits", bits=seeded(2)).add(x).value
    assert np.abs(np.asarray(released) - [1000, -1000 if x[1] else 0, 7]).max() < 60
    single = RunningSum(4, epsilon=1, delta=1e-6, largest=1000).start(ledger=ledger, purpose="visits", bits=seeded(3))
    assert abs(float(single.add(-(2**64)).value) + 1000) < 60


def test_a_failing_step_ends_the_stream_and_says_nothing_private(ledger: Ledger) -> None:
    stream = PLAN.start(ledger=ledger, purpose="visits", bits=Failing())
    with pytest.raises(ReleaseFailedError) as refusal:
        stream.add(5)
    assert "12345" not in str(refusal.value)
    assert refusal.value.__context__ is None
    with pytest.raises(StreamStateError, match="failed in a step"):
        stream.add(5)


def test_an_interrupted_step_ends_the_stream(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    stream = PLAN.start(ledger=ledger, purpose="visits")

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(type(stream._memory), "advance", interrupted)
    with pytest.raises(KeyboardInterrupt):
        stream.add(5)
    monkeypatch.undo()
    with pytest.raises(StreamStateError, match="interrupted"):
        stream.add(5)


def test_a_closed_stream_takes_no_steps(ledger: Ledger) -> None:
    stream = PLAN.start(ledger=ledger, purpose="visits")
    stream.close()
    with pytest.raises(StreamStateError, match="was closed"):
        stream.add(1)
    with pytest.raises(StreamStateError, match="was closed"):
        stream.save()
    assert "was closed" in repr(stream)


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, pickle.dumps])
def test_a_stream_cannot_be_copied(ledger: Ledger, duplicate: Any) -> None:
    stream = PLAN.start(ledger=ledger, purpose="visits")
    with pytest.raises(StreamStateError, match="noise the same steps twice"):
        duplicate(stream)


def test_a_forked_child_is_refused(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    stream = PLAN.start(ledger=ledger, purpose="visits")
    stream.add(1)
    monkeypatch.setattr(os, "getpid", lambda: -1)
    with pytest.raises(StreamStateError, match="forked"):
        stream.add(1)
    with pytest.raises(StreamStateError, match="forked"):
        stream.save()


@pytest.mark.statistical
@pytest.mark.parametrize("method", ["square root", "binned", "tree"])
def test_the_noise_of_released_sums_has_the_predicted_scale_and_no_other(ledger: Ledger, method: str) -> None:
    """20 000 entries of one stream are as many samples."""
    plan = RunningSum(12, epsilon=1, delta=1e-6, entries=20_000, method=method)
    stream = plan.start(ledger=ledger, purpose="noise alone", bits=seeded(8))
    for step in range(1, 13):
        measured = float(np.std(stream.add([0] * 20_000).value))
        assert measured == pytest.approx(plan.standard_error(step), rel=0.03)
        assert measured != pytest.approx(1.1 * plan.standard_error(step), rel=0.03)


@pytest.mark.statistical
def test_noise_drawn_ahead_is_used_once(ledger: Ledger) -> None:
    """Differences of rows that shared noise would repeat."""
    plan = RunningSum(3000, epsilon=1, delta=1e-6, method="tree")
    stream = plan.start(ledger=ledger, purpose="noise alone", bits=seeded(9))
    odd = [float(stream.add(0).value) for _ in range(3000)]
    single = np.diff(odd)[1::2]  # the block of one step that ends each odd step
    assert len(set(single.tolist())) == len(single)


def test_steps_are_shown_with_as_many_decimals_as_the_noise_leaves(ledger: Ledger) -> None:
    step = PLAN.start(ledger=ledger, purpose="visits", bits=seeded(1)).add(30088)
    value, half = re.fullmatch(r"step 1: (\d+\.\d) ± (\d+\.\d) \(95 %\)", str(step)).groups()  # type: ignore[union-attr]
    assert float(value) == pytest.approx(step.value, abs=0.05)
    assert float(half) == pytest.approx(step.half_width(), abs=0.05)
    wide = Step(1, 30088.4, Wide())  # type: ignore[arg-type]  # only its half-width is asked
    assert str(wide) == "step 1: 30088 ± 106 (95 %)"
    assert repr(wide) == "Step(step=1, value=30088.4)"
    assert "30 090</td>" in wide._repr_html_()
    many = Step(1, np.arange(12.0), Wide())  # type: ignore[arg-type]  # the same
    assert str(many) == "step 1: [0, 1, 2, …, 9, 10, 11] ± 106 (95 %)"


class Wide:
    def variance(self, _: int) -> float:
        return 2916.0

    def half_width(self, _: int, __: float) -> float:
        return 106.2


def test_a_stream_says_that_it_is_finished(ledger: Ledger) -> None:
    stream = RunningSum(2, epsilon=1, delta=1e-6).start(ledger=ledger, purpose="visits")
    assert "step 0 of 2, open" in repr(stream)
    assert "newest" not in stream._repr_html_()
    stream.add(1)
    stream.add(2)
    assert repr(stream) == "Running(step 2 of 2, finished)"
    assert "finished" in stream._repr_html_()
    assert "newest" in stream._repr_html_()


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

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import binom

from defocus.audit import Finding, Pair, batched, lower_bound, neighbours, search
from defocus.audit.audit import Setting, audit
from defocus.errors import InvalidParameterError
from defocus.noise import discrete_laplace
from defocus.noise.testing import seeded


def quiet(_data: Any, n: int) -> NDArray[np.float64]:
    return np.zeros(n)


def four_uniforms(rng: np.random.Generator) -> Any:
    """Float Laplace noise without a logarithm near zero, as in Holohan, Braghin (2021), Secure random sampling."""

    def noisy(value: float) -> float:
        a, b, c, d = rng.random(4)
        return float(value - (math.log(1 - a) * math.cos(math.pi * b) + math.log(1 - c) * math.cos(math.pi * d)))

    return noisy


@pytest.mark.statistical
def test_numpy_laplace_noise_is_caught_by_its_float_lattice() -> None:
    rng = np.random.default_rng(1)
    finding = lower_bound(batched(lambda x, n: x + rng.laplace(0, 1, n)), (0.0, 1.0), 20_000, claimed=1)
    assert finding.violation
    assert finding.epsilon_lower > 4
    assert "lowest set bit" in finding.event


@pytest.mark.statistical
def test_the_four_uniforms_of_a_peer_library_are_caught_as_well() -> None:
    finding = lower_bound(four_uniforms(np.random.default_rng(1)), (0.0, 1.0), 20_000, claimed=1)
    assert finding.violation
    assert finding.epsilon_lower > 4


@pytest.mark.statistical
def test_exact_discrete_noise_is_not_accused_and_is_measured_closely() -> None:
    finding = lower_bound(batched(lambda x, n: x + discrete_laplace(1, n, seeded(n + x))), (0, 1), claimed=1)
    assert not finding.violation
    assert 0.95 <= finding.epsilon_lower <= 1


@pytest.mark.statistical
@pytest.mark.parametrize(("scale", "guilty"), [(Fraction(4, 5), True), (Fraction(9, 10), True), (Fraction(1), False)])
def test_noise_with_a_scale_too_small_is_caught(scale: Fraction, guilty: bool) -> None:
    bits = seeded(4)
    finding = lower_bound(batched(lambda x, n: x + discrete_laplace(scale, n, bits)), (0, 1), claimed=1)
    assert finding.violation is guilty


@pytest.mark.statistical
def test_a_search_finds_the_pair_that_shows_the_fault() -> None:
    rng = np.random.default_rng(6)
    finding = search(batched(lambda x, n: x + rng.laplace(0, 1, n)), "value", 20_000, claimed=1)
    assert finding.violation
    assert finding.pair.startswith("zero and one")
    assert finding.searched == tuple(pair.name for pair in neighbours("value"))
    assert finding.confidence == 0.999
    assert "chosen among 6" in finding.explain()


@pytest.mark.statistical
def test_a_search_accuses_the_honest_no_more_often_than_the_confidence_allows() -> None:
    rng = np.random.default_rng(7)
    truth = math.e / (1 + math.e)
    honest = batched(lambda data, n: np.where(rng.random(n) < truth, data, 1 - data))
    pairs = [(0, 1)] * 5
    accused = sum(search(honest, pairs, 1000, 0.9, claimed=1).violation for _ in range(25))
    assert accused <= binom.ppf(0.999, 25, 0.1)


def test_the_pairs_that_are_judged_share_the_error_and_the_ranking_is_not_judged(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: list[tuple[int, float]] = []

    def spy(mechanism: Any, pair: Pair, setting: Setting) -> Finding:
        seen.append((setting.trials, round(1 - setting.confidence, 9)))
        return audit(mechanism, pair, setting)

    monkeypatch.setattr("defocus.audit.lower_bounds.audit", spy)
    search(batched(quiet), "count", 16_000, 0.97)
    assert seen == [(1000, 0.03)] * 6 + [(16_000, 0.01)] * 3
    seen.clear()
    assert search(batched(quiet), [(0, 1)], 16_000, 0.97).confidence == 0.97
    assert seen == [(16_000, 0.03)]


def test_pairs_may_be_a_kind_a_list_or_a_function() -> None:
    for pairs in ("count", [(0, 1)], lambda: neighbours("count")):
        assert search(batched(lambda x, n: np.full(n, x)), pairs, 500, claimed=1).violation


def test_a_search_within_seconds_tries_every_pair() -> None:
    finding = search(batched(quiet), "numbers", 100_000, claimed=1, seconds=1.0)
    assert len(finding.searched) == len(neighbours("numbers"))
    assert not finding.violation


@pytest.mark.parametrize(
    ("named", "message"),
    [
        ({"trials": 10}, "trials must be a whole number of at least 64"),
        ({"trials": 1000.0}, "trials must be a whole number"),
        ({"trials": True}, "trials must be a whole number"),
        ({"confidence": 0}, r"confidence must lie in \(0, 1\)"),
        ({"confidence": 1}, r"confidence must lie in \(0, 1\)"),
        ({"confidence": math.nan}, "confidence must be a finite number"),
        ({"confidence": "high"}, "confidence must be a finite number"),
        ({"delta": 1}, "delta must lie in"),
        ({"delta": -1e-9}, "delta must lie in"),
        ({"claimed": -1}, "claimed must not be negative"),
        ({"claimed": math.inf}, "claimed must be a finite number"),
        ({"seconds": 0}, "seconds must be positive"),
        ({"seconds": math.nan}, "seconds must be a finite number"),
        ({"timing": True}, "duration of one run cannot be seen"),
    ],
)
def test_bad_parameters_are_refused_with_a_remedy(named: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidParameterError, match=rf"(?s){message}.*To fix: "):
        lower_bound(batched(quiet), (0, 1), **named)
    with pytest.raises(InvalidParameterError, match=rf"(?s){message}.*To fix: "):
        search(batched(quiet), [(0, 1)], **named)


@pytest.mark.parametrize("pair", [0, "ab", (1,), (1, 2, 3), None])
def test_what_is_not_a_pair_is_refused(pair: Any) -> None:
    with pytest.raises(InvalidParameterError, match=r"(?s)pair of data sets.*pass \(first, second\)"):
        lower_bound(batched(quiet), pair)


def test_what_cannot_be_called_is_refused() -> None:
    with pytest.raises(InvalidParameterError, match=r"(?s)must be callable, but it is int.*pass a function"):
        lower_bound(3, (0, 1))  # type: ignore[arg-type]


def test_no_pairs_and_unknown_kinds_are_refused() -> None:
    with pytest.raises(InvalidParameterError, match="no pair of data sets"):
        search(batched(quiet), [])
    with pytest.raises(InvalidParameterError, match="no kind of neighbours named 'trees'"):
        search(batched(quiet), "trees")


def test_exact_numbers_are_welcome() -> None:
    finding = lower_bound(batched(quiet), Pair("p", 0, 1), 500, 0.9, delta=Fraction(1, 10), claimed=Fraction(1, 2))
    assert (finding.delta, finding.claimed) == (0.1, 0.5)


@pytest.mark.parametrize(
    "mechanism",
    [
        lambda data: (data, "x"),
        lambda data: {"a": [data]},
        lambda data: {f"key {data}": 1},
        lambda data: f"text {data}",
        lambda data: None if data else 0,
        np.float32,
        lambda data: np.array([[0, data]]),
        lambda data: [0] * (data + 1),
        lambda data: complex(0, data),
        lambda data: -0.0 if data else 0.0,
        lambda data: math.nan if data else 1.0,
        lambda data: 2**100 + data * 2**60,
        lambda data: float(2**53) + 2 * data,
        lambda data: [7][-data - data],
        lambda data: frozenset({data}),
        lambda data: data > 0,
        lambda data: b"\x00" if data else b"\x01",
    ],
)
def test_every_type_of_output_can_give_the_data_away(mechanism: Any) -> None:
    finding = lower_bound(mechanism, (0, 1), 500, claimed=1)
    assert finding.violation
    assert {finding.p, finding.q} == {0.0, 1.0}

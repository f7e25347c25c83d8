import itertools
import math
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from defocus.errors import CannotCalibrateError, InvalidParameterError
from defocus.mechanisms import Gaussian, Laplace, PermuteAndFlip, advise, advise_choice
from defocus.mechanisms.advice import _norms, _root_up


def test_one_number_is_judged_by_its_absolute_error() -> None:
    """Specification 2.5: compare b with σ·√(2/π)."""
    advice = advise(l1=1, epsilon=1, delta=1e-6)
    laplace, gaussian = advice.candidates
    assert (laplace.name, gaussian.name) == ("Laplace", "Gaussian")
    assert isinstance(gaussian.mechanism, Gaussian)
    assert laplace.error == pytest.approx(Laplace(scale=1).error)
    assert gaussian.error == pytest.approx(float(gaussian.mechanism.sigma) * math.sqrt(2 / math.pi), rel=0.01)
    assert "Laplace errs by" in advice.why


def test_many_numbers_are_judged_by_their_squared_error() -> None:
    """Specification 2.5: compare 2·d·b² with d·σ²."""
    advice = advise(dimension=100, linf=1, epsilon=1, delta=1e-6)
    gaussian, laplace = advice.candidates
    assert (gaussian.name, laplace.name) == ("Gaussian", "Laplace")
    assert laplace.squared == pytest.approx(2 * 100 * 100**2, rel=1e-3)
    assert isinstance(advice.mechanism, Gaussian)
    assert gaussian.squared == pytest.approx(100 * float(advice.mechanism.sigma) ** 2, rel=1e-3)
    assert advice.mechanism.dimension == 100


def test_a_sparse_change_of_many_numbers_is_for_laplace() -> None:
    advice = advise(dimension=1000, l1=1, epsilon=1, delta=1e-6)
    assert isinstance(advice.mechanism, Laplace)
    assert "concentrated" in advice.why


def test_without_delta_only_laplace_is_possible_and_the_reason_is_said() -> None:
    advice = advise(dimension=100, linf=1, epsilon=1)
    assert advice.mechanism == Laplace(scale=100, sensitivity=100)
    assert "without a delta" in advice.why
    assert "not possible" in str(advice)


def test_rho_compares_both() -> None:
    advice = advise(dimension=50, linf=1, rho=0.5)
    assert [c.name for c in advice.candidates] == ["Gaussian", "Laplace"]


def test_no_mechanism_at_all_is_an_error_that_says_why() -> None:
    with pytest.raises(CannotCalibrateError, match=r"No mechanism meets Budget\(mu=1\)") as refusal:
        advise(l1=1, mu=1)
    assert "spend more" in refusal.value.fix


@given(st.lists(st.integers(-4, 4), min_size=1, max_size=6).filter(any), st.data())
def test_sensitivities_left_out_follow_from_the_others(change: list[int], data: st.DataObject) -> None:
    norms = {
        "l1": sum(map(abs, change)),
        "l2": math.nextafter(math.sqrt(sum(x * x for x in change)), 100),
        "linf": max(map(abs, change)),
    }
    given_ones = data.draw(st.sets(st.sampled_from(sorted(norms)), min_size=1))
    arguments: dict[str, Any] = {name: norms[name] if name in given_ones else None for name in norms}
    one, square = _norms(len(change), **arguments)
    assert one >= norms["l1"]
    assert square >= sum(x * x for x in change)


def test_derived_sensitivities_are_the_least_possible() -> None:
    for size, top in itertools.product((1, 2, 3), (1, 2)):
        worst = list(itertools.product(range(top + 1), repeat=size))
        assert _norms(size, None, None, top) == (max(map(sum, worst)), max(sum(x * x for x in v) for v in worst))
    assert _norms(10, 3, None, 1) == (3, 3)
    assert _norms(100, None, 1, None) == (1, 1)


@given(st.integers(1, 10**12))
def test_roots_are_rounded_up(square: int) -> None:
    root = Fraction(_root_up(square))
    assert square <= root**2 <= square * (1 + Fraction(1, 10**12))


def test_advice_reads_well() -> None:
    advice = advise(dimension=3, l1=2, epsilon=1, delta=1e-6)
    lines = str(advice).splitlines()
    assert lines[0] == "3 numbers, L1 sensitivity 2, L2 sensitivity 2, Budget(epsilon=1, delta=1e-06)"
    assert lines[2].startswith("→")
    page = advice._repr_html_()
    assert page.count("<tr>") == 3
    assert "Gaussian" in page


def test_choices_are_compared_by_their_largest_expected_loss() -> None:
    advice = advise_choice(epsilon=2, candidates=50, sensitivity=3, monotone=True)
    assert [type(c.mechanism).__name__ for c in advice.candidates][:2] == ["PermuteAndFlip", "Exponential"]
    assert advice.best.error == PermuteAndFlip(epsilon=2, candidates=50, sensitivity=3, monotone=True).error
    assert "eighth" in str(advice)
    assert "<table>" in advice._repr_html_()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({}, "needs a sensitivity"),
        ({"l1": 0}, "l1"),
        ({"l1": 1.5}, "l1"),
        ({"l1": -1}, "l1"),
        ({"l2": math.nan}, "l2"),
        ({"l2": 0.5}, "at least 1 apart"),
        ({"linf": True}, "linf"),
        ({"l1": 1, "dimension": 0}, "dimension"),
        ({"l1": 1, "epsilon": None}, "got none"),
    ],
)
def test_unusable_questions_are_refused(arguments: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidParameterError, match=words):
        advise(**({"epsilon": 1} | arguments))

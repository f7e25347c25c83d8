"""Three ways to say how much may be lost, and what each of them covers."""

import copy
import dataclasses
import math
import pickle
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from defocus.errors import DefocusError, InvalidParameterError, UnsupportedEventError
from defocus.privacy import (
    ACCOUNTANTS,
    NOTHING,
    Budget,
    DiscreteLaplace,
    Gaussian,
    Laplace,
    Pure,
    account,
    gaussian_sigma,
)

numbers = st.floats(1e-9, 1e9) | st.integers(1, 10**9) | st.fractions(Fraction(1, 10**9), 10**9)


@pytest.mark.parametrize(
    ("budget", "text"),
    [
        (Budget(1), "Budget(epsilon=1)"),
        (Budget(1, 0), "Budget(epsilon=1)"),
        (Budget(1, 1e-6), "Budget(epsilon=1, delta=1e-06)"),
        (Budget(epsilon=0.5, delta=Fraction(1, 1000)), "Budget(epsilon=0.5, delta=1/1000)"),
        (Budget(Fraction(1, 3)), "Budget(epsilon=1/3)"),
        (Budget(rho=0.5), "Budget(rho=0.5)"),
        (Budget(mu=1), "Budget(mu=1)"),
        (Budget(np.float64(0.5), np.float32(0.25)), "Budget(epsilon=0.5, delta=0.25)"),  # type: ignore[arg-type]
    ],
    ids=str,
)
def test_a_budget_reads_like_what_was_written(budget: Budget, text: str) -> None:
    assert repr(budget) == str(budget) == text


@given(numbers)
def test_equal_numbers_make_equal_budgets(number: Any) -> None:
    exact = Fraction(number)
    for make in (Budget, lambda x: Budget(rho=x), lambda x: Budget(mu=x), lambda x: Budget(x, 1e-6)):
        assert make(number) == make(exact)
        assert hash(make(number)) == hash(make(exact))
    assert Budget(number) != Budget(rho=number) != Budget(mu=number)


@pytest.mark.parametrize("budget", [Budget(1, 1e-6), Budget(Fraction(1, 3)), Budget(rho=0.5), Budget(mu=2)], ids=str)
def test_a_budget_is_fixed_and_travels(budget: Budget) -> None:
    assert pickle.loads(pickle.dumps(budget)) == copy.deepcopy(budget) == budget  # noqa: S301  # our own bytes
    with pytest.raises(dataclasses.FrozenInstanceError):
        budget.epsilon = 2  # type: ignore[misc]
    assert not hasattr(budget, "__dict__")


@pytest.mark.parametrize(
    "wrong",
    [
        {},
        {"delta": 1e-6},
        {"epsilon": 1, "rho": 1},
        {"epsilon": 1, "mu": 1},
        {"rho": 1, "mu": 1},
        {"epsilon": 1, "rho": 1, "mu": 1},
        {"rho": 1, "delta": 1e-6},
        {"mu": 1, "delta": 1e-6},
    ],
    ids=str,
)
def test_exactly_one_vocabulary_is_spoken(wrong: dict[str, float]) -> None:
    with pytest.raises(
        InvalidParameterError, match=r"(?s)one of \(epsilon, delta\), rho or mu.*To fix: give epsilon=1"
    ):
        Budget(**wrong)


BAD = [0, -1, math.nan, math.inf, True, "1", 1j, [1], Fraction(-1, 3), 10**5000, Fraction(1, 10**5000)]


@pytest.mark.parametrize("name", ["epsilon", "rho", "mu"])
@pytest.mark.parametrize("bad", BAD, ids=lambda bad: type(bad).__name__)
def test_what_is_no_amount_is_refused_by_name(name: str, bad: Any) -> None:
    with pytest.raises(InvalidParameterError, match=rf"(?s)^{name} .*To fix: .") as caught:
        Budget(**{name: bad})
    assert len(str(caught.value)) < 200


@pytest.mark.parametrize(
    "bad", [1, 1.5, -1e-9, math.nan, math.inf, False, "", "1e-6", None, np.array([1, 2])], ids=repr
)
def test_what_is_no_delta_is_refused(bad: Any) -> None:
    with pytest.raises(InvalidParameterError, match=r"(?s)^delta must .*To fix: ."):
        Budget(1, bad)


def test_pure_bounds_are_exact_to_the_last_digit() -> None:
    """Laplace of scale 1.25 for epsilon 0.8: the float 0.8 is a little above 4/5, and 1.25 is exact."""
    assert Budget(0.8).covers(account(DiscreteLaplace(Fraction(5, 4))))
    assert Budget(0.8).covers(account(Laplace(1.25), method="basic"))
    assert not Budget(Fraction(4, 5) - Fraction(1, 10**17)).covers(account(DiscreteLaplace(Fraction(5, 4))))
    assert not Budget(math.nextafter(0.8, 0)).covers(account(Laplace(1.25)))
    assert Budget(0.75).covers(account(3 * Laplace(4)))
    assert not Budget(math.nextafter(0.75, 0)).covers(account(3 * Laplace(4)))


@pytest.mark.parametrize("method", ACCOUNTANTS)
def test_each_accountant_is_asked_in_the_language_of_the_budget(method: str) -> None:
    loss = account(Gaussian(4), method=method)
    assert Budget(10, 1e-6).covers(loss)
    assert not Budget(0.1, 1e-6).covers(loss)
    assert Budget(10, 1e-6).covers(account(NOTHING, method=method))
    if method != "advanced":  # whose theorem needs a delta, and says so
        assert not Budget(10).covers(loss)


def test_rho_and_mu_are_compared_exactly() -> None:
    assert Budget(rho=Fraction(1, 32)).covers(account(Gaussian(4), method="zcdp"))
    assert not Budget(rho=math.nextafter(1 / 32, 0)).covers(account(Gaussian(4), method="zcdp"))
    assert Budget(mu=Fraction(1, 4)).covers(account(Gaussian(4), method="gdp"))
    assert not Budget(mu=Fraction(1, 4) - Fraction(1, 10**30)).covers(account(Gaussian(4), method="gdp"))
    # 1/3 as a float lies below 1/3 and the loss is rounded up: not covered, rather than covered by a hair.
    assert not Budget(mu=Fraction(1, 3)).covers(account(Gaussian(3), method="gdp"))
    assert Budget(mu=10**400).covers(account(Gaussian(1e-9), method="gdp"))


def test_an_accountant_that_does_not_speak_the_language_says_so() -> None:
    for budget, method, other in (
        (Budget(rho=1), "pld", "zcdp"),
        (Budget(mu=1), "rdp", "gdp"),
        (Budget(mu=1), "basic", "gdp"),
    ):
        with pytest.raises(DefocusError, match=rf"(?s)The {method} accountant does not give.*To fix: .*{other}"):
            budget.covers(account(Gaussian(4), method=method))
    with pytest.raises(UnsupportedEventError):
        Budget(mu=1).covers(account(Laplace(4), method="gdp"))


@pytest.mark.parametrize("stranger", [None, 0.5, Pure(1), Gaussian, Budget(1)], ids=repr)
def test_only_a_loss_is_covered(stranger: Any) -> None:
    with pytest.raises(
        InvalidParameterError, match=r"(?s)covers the loss of an event.*To fix: .*covers\(account\(event\)\)"
    ):
        Budget(1).covers(stranger)


def test_a_delta_well_below_one_over_n_costs_a_little_more_noise() -> None:
    """For n = 10⁶, from delta 1/n to 1/n^1.1 the classical noise grows by about 4.8 %, as √ln(1.25/delta)."""
    n = 10**6
    classical = math.sqrt(math.log(1.25 * n**1.1) / math.log(1.25 * n))
    assert classical == pytest.approx(1.048, abs=0.001)
    exact = gaussian_sigma(0.5, n**-1.1) / gaussian_sigma(0.5, 1 / n)
    assert 1.05 < exact < 1.08

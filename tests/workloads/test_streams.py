import json
from typing import Any

import numpy as np
import pytest
from tests.workloads.streaming import matrix

from defocus import Budget, rows, weight
from defocus.errors import BudgetExceededError, CannotCalibrateError, DefocusError, InvalidParameterError
from defocus.ledger import Ledger
from defocus.noise import Bits
from defocus.noise.testing import seeded
from defocus.privacy.accounting import account
from defocus.privacy.events import DiscreteGaussian, DiscreteLaplace
from defocus.workloads.streams import RunningSum

PRICE: dict[str, Any] = {"epsilon": 1, "delta": 1e-6}


def test_the_whole_stream_is_one_event_charged_once_before_the_first_step(ledger: Ledger) -> None:
    plan = RunningSum(40, **PRICE, entries=3)
    stream = plan.start(ledger=ledger, purpose="visits")
    assert [entry.kind for entry in ledger.entries()] == ["genesis", "charge"]
    assert ledger.events() == plan.event
    for _ in range(40):
        stream.add([1, 2, 3])
    assert len(ledger) == 2
    assert isinstance(plan.event, DiscreteGaussian)
    assert plan.event.dimension == 120


@pytest.mark.parametrize("price", [PRICE, {"epsilon": 0.1, "delta": 1e-8}, {"rho": 0.2}])
@pytest.mark.parametrize("method", ["square root", "binned", "banded", "tree"])
def test_the_event_is_within_the_price_and_hardly(price: dict[str, Any], method: str) -> None:
    plan = RunningSum(100, **price, method=method)
    assert plan.price == Budget(**price)
    accountant = "zcdp" if plan.price.rho is not None else "pld"
    assert plan.price.covers(account(plan.event, accountant))
    assert isinstance(plan.event, DiscreteGaussian)
    less = DiscreteGaussian(float(plan.event.sigma) * 0.999, plan.event.sensitivity, plan.event.dimension)
    assert not plan.price.covers(account(less, accountant))


def test_laplace_noise_needs_no_delta_and_takes_the_tree() -> None:
    plan = RunningSum(100, epsilon=1, noise="laplace")
    assert (plan.method, plan.event) == ("tree", DiscreteLaplace(7, 7))


def test_the_method_follows_length_and_participation() -> None:
    assert RunningSum(4096, **PRICE).method == "square root"
    assert RunningSum(4097, **PRICE).method == "binned"
    assert RunningSum(100, **PRICE, participations=3, separation=20).method == "banded"
    assert RunningSum(100, **PRICE, participations=3, separation=100).method == "square root"


def test_replaced_units_count_twice() -> None:
    once, twice = (RunningSum(50, **PRICE, unit=rows(replace=replace)) for replace in (False, True))
    assert twice.event.sensitivity == 2 * once.event.sensitivity
    assert twice.standard_error(50) == pytest.approx(2 * once.standard_error(50), rel=1e-3)


def test_a_larger_contribution_scales_the_error() -> None:
    one, ten = RunningSum(50, **PRICE), RunningSum(50, **PRICE, contribution=10)
    assert ten.standard_error(50) == pytest.approx(10 * one.standard_error(50), rel=1e-2)


def test_a_second_participation_costs_between_its_root_and_itself() -> None:
    one = RunningSum(50, **PRICE, method="banded", bandwidth=50)
    two = RunningSum(50, **PRICE, method="banded", bandwidth=50, participations=2)
    assert np.sqrt(2) < two.standard_error(50) / one.standard_error(50) < 2


class Watched(Bits):
    """Fails the test if a bit is drawn."""

    __slots__ = ()

    def words(self, n: int) -> Any:
        del n
        pytest.fail("a bit was drawn")

    def integer(self, nbits: int) -> int:
        return int(self.words(nbits))


def test_a_budget_that_is_spent_refuses_the_stream_and_draws_nothing(ledger: Ledger) -> None:
    plan = RunningSum(50, rho=4)
    with pytest.raises(BudgetExceededError):
        plan.start(ledger=ledger, purpose="too much", bits=Watched())
    assert len(ledger) == 1


def test_refusals_charge_nothing(ledger: Ledger, tmp_path: Any) -> None:
    plan = RunningSum(50, **PRICE)
    wrong: list[dict[str, Any]] = [{"purpose": ""}, {"purpose": "x", "bits": 7}, {"purpose": "x", "who": ""}]
    for arguments in wrong:
        with pytest.raises(DefocusError):
            plan.start(ledger=ledger, **arguments)
    assert len(ledger) == 1
    with pytest.raises(InvalidParameterError, match="charged to a Ledger"):
        plan.start(ledger="visits", purpose="x")  # type: ignore[arg-type]
    with pytest.raises(InvalidParameterError, match="charged to a Ledger"):
        RunningSum.resume(tmp_path / "none.state", ledger="visits")  # type: ignore[arg-type]
    unit = rows(replace=True)
    with Ledger.open(tmp_path / "r", budget=Budget(**PRICE), unit=unit, dataset="visits") as other:
        with pytest.raises(InvalidParameterError, match="added or removed, but the ledger protects one row, replaced"):
            plan.start(ledger=other, purpose="x")
        assert len(other) == 1
        RunningSum(50, epsilon=0.5, delta=1e-7, unit=unit).start(ledger=other, purpose="x")


@pytest.mark.parametrize(
    "arguments",
    [
        {"steps": bad}
        for bad in (0, -1, 1.5, True, "10", None, float("nan"), 2**24 + 1, 10**30)
    ]
    + [{name: bad} for name in ("participations", "separation", "spread", "largest") for bad in (0, -1, 1.5, True, "1")]
    + [{"entries": bad} for bad in (0, -1, 1.5, True, "3")]
    + [{"contribution": bad} for bad in (0, -1, 0.5, float("nan"), float("inf"), True, "1", 10**12)]
    + [{"method": "fft"}, {"noise": "cauchy"}, {"method": "banded", "bandwidth": 0}, {"bandwidth": 3}]
    + [{"noise": "laplace", "method": "square root"}, {"steps": 10**5, "method": "square root"}]
    + [{"epsilon": None}, {"epsilon": 0}, {"rho": 1}]
    + [{"unit": "patient"}, {"unit": weight(bound=5), "contribution": 4}],
)  # fmt: skip
def test_bad_parameters_are_refused_with_a_remedy(arguments: dict[str, Any]) -> None:
    plain: dict[str, Any] = {"steps": 50, **PRICE}
    with pytest.raises(DefocusError) as refusal:
        RunningSum(**plain | arguments)
    assert refusal.value.fix


def test_a_gaussian_stream_needs_a_delta() -> None:
    with pytest.raises(CannotCalibrateError, match="delta"):
        RunningSum(50, epsilon=1)


def test_a_long_stream_remembers_little(ledger: Ledger) -> None:
    plan = RunningSum(200_000, **PRICE)
    assert plan.memory < 250
    stream = plan.start(ledger=ledger, purpose="visits", bits=seeded(3))
    *_, step = [stream.add(1000) for _ in range(3000)]
    assert len(json.dumps(stream.save())) < 30_000
    assert abs(float(step.value) - 3_000_000) < 6 * step.standard_error


def test_an_adaptive_adversary_gains_nothing(ledger: Ledger) -> None:
    """Whenever the target takes part, chosen by what was seen, the rows move by no more than the sensitivity."""
    plan = RunningSum(24, **PRICE)
    C = matrix(plan._design.strategy)
    stream = plan.start(ledger=ledger, purpose="attack", bits=seeded(5))
    chosen = None
    for t in range(24):
        seen = stream.add(int(chosen is None)).value
        if chosen is None and float(seen) < t:
            chosen = t
    assert chosen is not None
    assert sum(int(x) ** 2 for x in C[:, chosen]) <= plan.event.sensitivity**2


def test_a_plan_in_words() -> None:
    assert "50 steps by square root, standard error" in str(RunningSum(50, **PRICE))
    assert "standard error" not in str(RunningSum(5000, **PRICE))


def test_a_plan_is_shown_in_words_and_as_a_table_for_notebooks() -> None:
    plan = RunningSum(50, **PRICE)
    assert plan == RunningSum(50, **PRICE)
    assert str(RunningSum(1, **PRICE, method="tree")).endswith("it remembers 1 partial sum")
    assert "over 1 step by" in str(RunningSum(1, **PRICE))
    page = plan._repr_html_()
    for words in ("over 50 steps by square root", "standard error", "50 partial sums", "one row", "epsilon=1"):
        assert words in page

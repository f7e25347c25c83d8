"""Searching for settings: one charge, before the first run, of what is known to cover all of them."""

import math
import random
import warnings
from collections import Counter
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy.stats import chisquare
from tests.learning.making import data, model
from torch import nn

from defocus import Budget, rows, user
from defocus.errors import BudgetExceededError, InvalidParameterError
from defocus.learning import search
from defocus.learning.clipping import FixedClipping
from defocus.learning.data import examples
from defocus.learning.hyperparameters import _One, _priced, number_of_runs
from defocus.ledger import Ledger
from defocus.noise.testing import seeded
from defocus.privacy.accounting import tightest
from defocus.privacy.events import Composed, DiscreteGaussian, Pure, Selected
from defocus.privacy.selection import expected_runs

pytestmark = pytest.mark.usefixtures("unchecked")
BUDGET = Budget(8, 1e-5)


class BrokenError(Exception):
    """What a user's own code raises."""


def make(rate: float) -> Any:
    net = model()
    return net, nn.CrossEntropyLoss(), torch.optim.SGD(net.parameters(), lr=rate)


def searched(folder: Path, **more: Any) -> Any:
    given: dict[str, Any] = {
        "settings": [1e-6, 1.0],
        "validation": data(seed=1),
        "unit": rows(),
        "epsilon": 8,
        "delta": 1e-5,
        "batch_size": 64,
        "steps": 3,
        "runs": 2,
        "ledger": folder / "search.ledger",
        "bits": seeded(4),
        **more,
    }
    return search(given.pop("make", make), given.pop("data", data()), **given)


def asked() -> dict[str, Any]:
    about: dict[str, Any] = {"unit": rows(), "size": 64, "batch_size": 64, "epochs": None, "steps": 3}
    return about | {
        "noise": None,
        "delta": 0.0,
        "sampling": "poisson",
        "clipping": FixedClipping(1),
        "metrics": "nothing",
    }


def test_the_charge_is_the_selected_event_of_one_run_and_fits_the_budget(tmp_path: Path) -> None:
    found = searched(tmp_path)
    whole, alone = _priced(asked(), BUDGET, 0.0, runs=2, eta=0)
    assert found.event == whole
    assert isinstance(whole, Selected)
    assert whole.event == alone.event
    assert 7.9 < tightest(whole).epsilon(1e-5) <= 8.000001
    assert tightest(alone.event).epsilon(1e-5) < 6.5
    with Ledger.open(tmp_path / "search.ledger", read_only=True) as ledger:
        charges = [entry for entry in ledger.entries() if entry.kind == "charge"]
        assert len(charges) == 1
        assert ledger.remaining().epsilon < 0.1
    assert found.setting in (1e-6, 1.0)
    assert 0 <= found.score <= 1
    assert "receipt" in str(found)
    assert "runs" not in found.__slots__


def test_a_score_on_private_rows_is_part_of_what_each_run_costs(tmp_path: Path) -> None:
    found = searched(tmp_path, private_validation=True, precision=0.1)
    assert isinstance(found.event, Selected)
    assert isinstance(found.event.event, Composed)
    assert (DiscreteGaussian(0.1 * 64), 1) in found.event.event.parts
    free, paid = (_priced(asked(), BUDGET, deviation, runs=2, eta=0)[1].ratio for deviation in (0.0, 0.1 * 64))
    assert paid > free


@pytest.mark.statistical
class Chatty(nn.Module):
    """A model that speaks of the examples it is scored on."""

    def __init__(self) -> None:
        super().__init__()
        self.net = model()

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        if not self.training:
            warnings.warn("ada is among them", stacklevel=1)
        found: torch.Tensor = self.net(inputs)
        return found


def test_no_warning_tells_of_examples_or_of_how_many_runs_there_were(tmp_path: Path) -> None:
    def chatty(rate: float) -> Any:
        net = Chatty()
        return net, nn.CrossEntropyLoss(), torch.optim.SGD(net.parameters(), lr=rate)

    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        searched(tmp_path, make=chatty, private_validation=True, precision=0.1)
    assert not [each for each in seen if "ada" in str(each.message)]


def test_the_noise_of_a_score_is_what_was_charged_for() -> None:
    """The number told right, of 40 examples, gets a standard deviation of 5, and none of 4.5 or 5.5."""
    draws, deviation, net = 2000, 5.0, model()
    held = examples(data(n=40))
    one = _One(make, (data(), None, None), held, seeded(3))
    exact = one._score(net, 0.0)
    moved = np.array([one._score(net, deviation) - exact for _ in range(draws)]) * 40
    assert np.allclose(moved, np.round(moved), atol=1e-6)
    spread, error = float(np.mean(moved**2)), np.sqrt(2 / draws)
    assert abs(spread / deviation**2 - 1) < 4 * error
    assert abs(spread / (1.1 * deviation) ** 2 - 1) > 4 * error
    assert abs(spread / (0.9 * deviation) ** 2 - 1) > 4 * error


class Choosy(nn.Linear):
    """Fails on a batch with a large number, and remembers it."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if float(x.max()) > 1e6:
            self.weight_of = -1.0
            raise ValueError
        return super().forward(x) * getattr(self, "weight_of", 1.0)


def test_one_validation_example_on_which_the_model_fails_moves_the_score_by_one() -> None:
    x, y = data(n=40)
    net = Choosy(5, 2)
    without = _One(make, (data(), None, None), examples((x[1:], y[1:])), seeded(3))._score(net, 0.0) * 39
    odd = torch.cat([torch.full((1, 5), 1e7), x[1:]])
    score = _One(make, (data(), None, None), examples((odd, y)), seeded(3))._score(net, 0.0) * 40
    assert abs(score - without) <= 1 + 1e-6
    assert not hasattr(net, "weight_of")


def test_it_is_charged_before_the_first_run(tmp_path: Path) -> None:
    made: list[float] = []

    def broken(rate: float) -> Any:
        made.append(rate)
        if len(made) > 4:  # both settings are looked at before, twice and without data
            raise BrokenError
        return make(rate)

    with pytest.raises(BrokenError):
        searched(tmp_path, make=broken)
    with Ledger.open(tmp_path / "search.ledger", read_only=True) as ledger:
        assert ledger.remaining().epsilon < 0.1


def test_a_spent_ledger_lets_no_run_begin(tmp_path: Path) -> None:
    searched(tmp_path)
    tried: list[float] = []

    def noted(rate: float) -> Any:
        tried.append(rate)
        return make(rate)

    with pytest.raises(BudgetExceededError):
        searched(tmp_path, make=noted)
    assert tried == [1e-6, 1.0] * 2  # looked at beforehand, and no run


def test_public_data_is_searched_whole_and_for_free(tmp_path: Path) -> None:
    tried: list[float] = []

    def noted(rate: float) -> Any:
        tried.append(rate)
        return make(rate)

    found = searched(tmp_path, make=noted, data=None, public=data(), ledger=None, settings=[1e-6, 0.5, 1.0])
    assert tried == [1e-6, 0.5, 1.0]
    assert found.event is None
    assert found.receipt is None
    assert "nothing: the data is public" in found._repr_html_()
    assert not list(tmp_path.iterdir())


def test_the_best_run_wins(tmp_path: Path) -> None:
    easy = (torch.eye(5).repeat(40, 1), torch.arange(5).repeat(40) % 2)
    right = {"validation": easy, "public": easy, "data": None, "ledger": None, "batch_size": 200, "steps": 30}
    found = searched(tmp_path, settings=[1e-9, 2.0], epsilon=50, delta=1e-5, **right)
    assert found.setting == 2.0


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"settings": []}, "list what to try"),
        ({"settings": "rates"}, "list what to try"),
        ({"public": data()}, "one of them"),
        ({"data": None}, "one of them"),
        ({"data": None, "public": data(), "private_validation": True}, "charges nothing"),
        ({"runs": 1}, "runs"),
        ({"runs": float("nan")}, "runs"),
        ({"eta": 2}, "eta"),
        ({"make": lambda _: None}, "model, loss, optimizer"),
        ({"precision": 0, "private_validation": True}, "precision"),
        ({"unit": user("who")}, "users="),
        ({"unit": user("who"), "users": torch.arange(64).numpy(), "private_validation": True}, "many examples"),
        ({"unit": rows(per_person=2), "private_validation": True}, "many examples"),
    ],
)
def test_what_has_no_known_price_is_refused(tmp_path: Path, given: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidParameterError, match=words) as refused:
        searched(tmp_path, **given)
    assert refused.value.fix
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("settings", [[1e-6, 1.0], [1.0]])
@pytest.mark.parametrize("how", ["model", "setting", "storage", "optimizer"])
def test_a_make_that_hands_out_one_model_twice_is_refused_before_anything_is_charged(
    tmp_path: Path, settings: list[float], how: str
) -> None:
    shared = model()
    by_setting = {rate: model() for rate in settings}
    once = torch.optim.SGD(shared.parameters(), lr=1.0)

    def again(rate: float) -> Any:
        net = {"model": shared, "setting": by_setting[rate]}.get(how) or model()
        if how == "storage":
            for mine, theirs in zip(net.parameters(), shared.parameters(), strict=True):
                mine.data = theirs.data
        if how == "optimizer":
            once.param_groups[0]["params"] = list(net.parameters())
        made = once if how == "optimizer" else torch.optim.SGD(net.parameters(), lr=rate)
        return net, nn.CrossEntropyLoss(), made

    with pytest.raises(InvalidParameterError, match="share"):
        searched(tmp_path, make=again, settings=settings)
    assert not (tmp_path / "search.ledger").exists()


def test_runs_may_share_what_is_not_trained(tmp_path: Path) -> None:
    below = nn.Linear(5, 5).requires_grad_(requires_grad=False)

    def on_top(rate: float) -> Any:
        net = nn.Sequential(below, model())
        return net, nn.CrossEntropyLoss(), torch.optim.SGD(net[1].parameters(), lr=rate)

    searched(tmp_path, make=on_top)


@pytest.mark.slow
def test_what_is_drawn_after_a_search_does_not_tell_how_many_runs_it_had(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()  # checks of models draw as well
    drawn = set()
    for seed in (0, 4):  # of one and of two runs
        torch.manual_seed(0)
        random.seed(0)
        np.random.seed(0)  # noqa: NPY002 -- what a model may draw from
        searched(tmp_path, make=drawing, settings=[1.0], bits=seeded(seed), ledger=tmp_path / f"{seed}.ledger")
        drawn.add((float(torch.rand(1)), random.random(), float(np.random.rand())))  # noqa: NPY002
    assert len(drawn) == 1


def drawing(rate: float) -> Any:
    net = model(5, int(torch.randint(100, (1,))) + random.randrange(9) + int(np.random.randint(9)))  # noqa: NPY002
    return net, nn.CrossEntropyLoss(), torch.optim.SGD(net.parameters(), lr=rate)


def test_scores_of_what_is_no_class_are_refused_before_anything_is_charged(tmp_path: Path) -> None:
    x, y = data(seed=1)
    for targets in (y.float(), torch.stack([y, y], 1)):
        with pytest.raises(InvalidParameterError, match="are not classes"):
            searched(tmp_path, validation=(x, targets))
    assert not list(tmp_path.iterdir())


def test_scores_that_cost_more_than_the_budget_say_what_would_not(tmp_path: Path) -> None:
    with pytest.raises(InvalidParameterError, match=r"scores with noise of 0\.32 rows") as caught:
        searched(tmp_path, private_validation=True, precision=0.005, epsilon=1, delta=1e-5)
    assert "precision=" in caught.value.fix


def test_a_result_says_who_is_protected_and_at_which_cost(tmp_path: Path) -> None:
    said = str(searched(tmp_path))
    assert "one row, added or removed" in said
    assert "Budget(epsilon=8, delta=1e-05) for all runs together" in said


DRAWS = 3000


def law(gamma: float, eta: float, most: int) -> list[float]:
    """P(K = k) for k from 1, the last one for all beyond: the formula, normalised by summing it up."""
    weights, weight = [], 1.0
    for k in range(1, 4000):
        weight *= (1 - gamma) * ((k - 1 + eta) / k if k > 1 else 1.0)
        weights.append(weight)
    total = math.fsum(weights)
    shares = [weight / total for weight in weights]
    return [*shares[: most - 1], math.fsum(shares[most - 1 :])]


def fit(drawn: list[int], gamma: float, eta: float, most: int = 12) -> float:
    seen = Counter(min(k, most) for k in drawn)
    wanted = [DRAWS * share for share in law(gamma, eta, most)]
    return float(chisquare([seen[k] for k in range(1, most + 1)], wanted).pvalue)


@pytest.mark.statistical
@pytest.mark.parametrize(("gamma", "eta"), [(0.1, 0), (0.2, 1), (0.1, Fraction(-1, 2)), (0.15, Fraction(1, 2))])
def test_the_number_of_runs_has_the_law_that_is_charged_and_no_other(gamma: float, eta: Fraction) -> None:
    bits = seeded(11)
    drawn = [number_of_runs(gamma, eta, bits) for _ in range(DRAWS)]
    assert min(drawn) == 1
    assert fit(drawn, gamma, float(eta)) > 1e-4
    assert fit(drawn, gamma * 1.6, float(eta)) < 1e-4
    assert fit(drawn, gamma, float(eta) + 0.4) < 1e-4
    mean = expected_runs(Selected(Pure(1), gamma, eta))
    assert sum(drawn) / DRAWS == pytest.approx(mean, rel=0.1)


@pytest.mark.slow
@pytest.mark.statistical
def test_long_searches_have_their_mean_too() -> None:
    bits = seeded(5)
    drawn = [number_of_runs(Fraction(1, 100), 1, bits) for _ in range(DRAWS)]
    error = 100 / math.sqrt(DRAWS)  # of a geometric law with mean 100
    assert abs(sum(drawn) / DRAWS - 100) < 4 * error
    assert abs(sum(drawn) / DRAWS - 110) > 4 * error
    assert max(drawn) > 400


@pytest.mark.parametrize(("gamma", "eta"), [(0, 0), (1, 0), (0.5, -1), (0.5, 1.5)])
def test_a_law_that_is_not_drawn_exactly_is_refused(gamma: float, eta: float) -> None:
    with pytest.raises(InvalidParameterError, match="eta"):
        number_of_runs(gamma, eta, seeded(1))

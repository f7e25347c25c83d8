"""Several owners of one example: nobody is in more of the used ones than the charge is for."""

import datetime as dt
from collections.abc import Iterator
from itertools import permutations, product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests.learning.making import BUDGET, data, model, trainer

from defocus import rows, user
from defocus.errors import BudgetExceededError, DefocusError, InvalidParameterError, UnfitDataError
from defocus.learning import AdaptiveClipping, Banded, PerLayerClipping, search, suggest
from defocus.learning.data import Units
from defocus.learning.ownership import Owned, bounded, owned
from defocus.learning.sampling import owed
from defocus.ledger import Ledger
from defocus.privacy.accounting import account, tightest
from defocus.privacy.events import Gaussian, SampledGaussian
from defocus.privacy.groups import group


def graphs(persons: int, examples: int) -> Iterator[Owned]:
    """All ways to own so many examples."""
    some = [tuple(who for who in range(persons) if mask >> who & 1) for mask in range(2**persons)]
    for owners in product(some, repeat=examples):
        yield Owned(owners, persons)


def most(found: Owned, used: Any) -> int:
    """How many of the used examples one person owns at most."""
    return max((sum(who in found.owners[i] for i in used) for who in range(found.persons)), default=0)


@pytest.mark.parametrize(("persons", "examples"), [(2, 4), (3, 3)])
def test_nobody_has_more_than_allowed_in_any_small_graph_and_any_order(persons: int, examples: int) -> None:
    for found in graphs(persons, examples):
        for order in permutations(range(examples)):
            for limit in (1, 2, 3):
                used = bounded(found, limit, order).tolist()
                assert most(found, used) <= limit
                for other in set(range(examples)) - set(used):  # none could be added
                    assert not found.owners[other] or most(found, [*used, other]) > limit


@given(st.lists(st.lists(st.integers(0, 9), max_size=6), min_size=1, max_size=60), st.integers(1, 5))
def test_units_are_examples_of_which_nobody_has_too_many(users: list[list[int]], limit: int) -> None:
    units = Units(len(users), users, limit)
    used, weights = units.examples_of(np.arange(units.count))
    assert set(weights) <= {1.0}
    assert len(set(used)) == len(used) == units.count
    for who in range(10):
        assert sum(who in users[i] for i in used) <= limit
    assert units.shared == len(users)
    assert units.nobody == sum(not each for each in users)


def test_which_are_used_does_not_depend_on_the_run() -> None:
    users = [[i % 7, i % 5] for i in range(100)]
    one, other = (Units(100, users, 3).examples_of(np.arange(5))[0].tolist() for _ in range(2))
    assert one == other
    assert Units(100, users, 3).examples_of(np.zeros(0, np.int64))[0].size == 0


DAY = dt.date(2020, 1, 2)


@pytest.mark.parametrize(
    ("users", "owners"),
    [
        ([["a", "b"], ["b"], []], ((0, 1), (1,), ())),
        ([["a", "a", "b"], ("b", None), {"a"}], ((0, 1), (1,), (0,))),
        (["ab", "ab", None], ((0,), (0,), ())),
        ([1, 1.0, "1"], ((0,), (0,), (1,))),
        ([[DAY, "x"], [DAY], [b"x"]], ((0, 1), (0,), (2,))),
        (np.array([[1, 2], [2, 2], [3, 1]]), ((0, 1), (1,), (2, 0))),
        (np.array([[1, np.nan], [np.nan, np.nan], [1, 2]]), ((0,), (), (0, 1))),
        (np.ma.masked_equal(np.array([[1, -1], [2, 1], [-1, -1]]), -1), ((0,), (1, 0), ())),
        (np.array([["a", None], ["b", "a"], [None, None]], dtype=object), ((0,), (1, 0), ())),
        (torch.tensor([[4, 5], [5, 6], [4, 4]]), ((0, 1), (1, 2), (0,))),
        (pa.array([["a", "b"], None, ["b"]]), ((0, 1), (), (1,))),
        (pd.Series([["a"], ["a", "b"], None]), ((0,), (0, 1), ())),
        (pd.array(["a", None, "b"], dtype="string"), ((0,), (), (1,))),
        (np.array([7, 8, 7]), ((0,), (1,), (0,))),
        ([np.array([7, 8]), np.array([]), [7]], ((0, 1), (), (0,))),
    ],
    ids=str,
)
def test_owners_are_read_from_lists_arrays_and_columns(users: Any, owners: Any) -> None:
    assert owned(users, 3).owners == owners


class Sullen:
    def __hash__(self) -> int:
        raise RuntimeError

    def __ne__(self, other: object) -> bool:
        raise RuntimeError


@pytest.mark.parametrize(
    ("users", "words"),
    [
        ([["a"], ["b"]], "for each example"),
        ([["a"]] * 4, "for each example"),
        ("abc", "for each example"),
        ({0: "a", 1: "b", 2: "c"}, "for each example"),
        (3, "for each example"),
        (np.array(3), "for each example"),
        ([["a"], ["b", ["c"]], []], "type list"),
        ([{"a": 1}, "b", "c"], "type dict"),
        ([[object()], [], []], "type object"),
        ([[Sullen()], [], []], "type Sullen"),
        (np.zeros((3, 2, 2)), "type list"),
    ],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_what_names_nobody_is_refused_without_a_value(users: Any, words: str) -> None:
    with pytest.raises(UnfitDataError, match=words) as refused:
        owned(users, 3)
    assert refused.value.fix


def circle(n: int = 64) -> list[list[int]]:
    """Everybody is in two examples, each time with another neighbour, and one of them in every fourth as well."""
    return [[i, (i + 1) % n, *([99] if i % 4 == 0 else [])] for i in range(n)]


def summed(folder: Path, name: str, x: torch.Tensor, y: torch.Tensor, **more: Any) -> torch.Tensor:
    """The sum of clipped gradients of all that are used, nearly without noise."""
    net = model()
    run = trainer(
        folder, model=net, data=(x, y), unit=rows(per_person=3), users=circle(), steps=1, noise_multiplier=1e-3,
        epsilon=10**8, delta=0.01, ledger=folder / f"{name}.ledger", metrics="nothing",
        **{"batch_size": Units(64, circle(), 3).count, **more},
    )  # fmt: skip
    run.fit(progress=False)
    return torch.cat([p.grad.reshape(-1) for p in net.parameters() if p.grad is not None]) * run.plan.batch_size


@pytest.mark.parametrize("clip", [1.0, PerLayerClipping(1.0)], ids=["fixed", "per layer"])
def test_a_person_moves_the_sum_as_far_as_so_many_clips(tmp_path: Path, clip: Any) -> None:
    """Whatever her examples are, and also where they do not count: all persons, without noise."""
    x, y = data(64)
    users = circle()
    base = summed(tmp_path, "base", x, y, max_grad_norm=clip)
    farthest = 0.0
    for who in (99, 0, 1, 5, 40):
        mine = [i for i, owners in enumerate(users) if who in owners]
        blank, odd = y.clone(), x.clone()
        blank[mine] = -100  # what the loss does not take counts as zero
        odd[mine] = 1e3 * x[5].abs()
        gone = float((summed(tmp_path, f"{who}", x, blank, max_grad_norm=clip) - base).norm())
        assert gone <= 3 + 0.05
        there = summed(tmp_path, f"odd{who}", odd, y, max_grad_norm=clip) - summed(
            tmp_path, f"gone{who}", odd, blank, max_grad_norm=clip
        )
        assert float(there.norm()) <= 3 + 0.05
        farthest = max(farthest, float(there.norm()))
    assert farthest > 1.2  # more than one clip: the bound is about persons, not examples


def test_what_is_charged_is_for_all_examples_of_a_person(tmp_path: Path) -> None:
    run = trainer(tmp_path, unit=rows(per_person=4), users=circle(), noise_multiplier=4.0, epsilon=50)
    n = Units(64, circle(), 4).count
    one = SampledGaussian(4.0, run.plan.sampling.rate)  # type: ignore[attr-defined]  # Poisson
    assert run.plan.size == n < 64
    assert run.plan.event == group(8 * one, 4)
    assert run.plan.event_after(3) == group(3 * one, 4)
    run.fit(progress=False)
    with Ledger.open(tmp_path / "run.ledger") as book:
        assert book.unit == rows(per_person=4)
        assert [entry.kind for entry in book.entries()] == ["genesis", "charge", "release"]


def test_the_noise_of_persons_is_found_for_the_price(tmp_path: Path) -> None:
    ratios = {}
    for many in (1, 2, 8):
        run = trainer(
            tmp_path, unit=rows(per_person=many), noise_multiplier=None, epsilon=2, ledger=tmp_path / f"{many}"
        )
        ratios[many] = run.plan.ratio
        assert account(run.plan.event).epsilon(1e-5) <= 2
    assert 1.5 * ratios[1] < ratios[2] < 2.3 * ratios[1]
    assert 3 * ratios[2] < ratios[8] < 4.3 * ratios[2]
    found = suggest(size=10_000, epsilon=2, delta=1e-5, parameters=1000, unit=rows(per_person=4))
    alone = suggest(size=10_000, epsilon=2, delta=1e-5, parameters=1000)
    assert found.noise_multiplier > alone.noise_multiplier
    assert found.growth_at(found.steps) <= 2


def test_batches_of_all_are_plain_gaussian_noise() -> None:
    assert owed(5 * Gaussian(6.0), 3) == 5 * Gaussian(2.0)


def test_what_is_public_is_said(tmp_path: Path) -> None:
    users: list[Any] = [*circle()[:62], [], None]
    much: dict[str, Any] = {"noise_multiplier": 6.0, "epsilon": 50}
    run = trainer(tmp_path, unit=rows(per_person=3), users=users, **much)
    left = 64 - Units(64, users, 3).count
    said = run.explain()
    assert "Protected: all rows of one person, at most 3, added or removed." in said
    assert "Public: who owns which example, and so which are used." in said
    assert (
        f"{left} of 64 are left out, so that nobody has more than 3 examples, 2 of them since nobody owns them." in said
    )
    assert "times what one row may add to a step" in str(run.plan)
    alone = trainer(tmp_path, unit=rows(per_person=3), ledger=tmp_path / "other.ledger", **much)
    assert "Assumed: nobody has more than 3 examples" in alone.explain()
    assert "Assumed" not in trainer(tmp_path, ledger=tmp_path / "rows.ledger").explain()


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"sampling": "shuffled"}, "depends on the others"),
        ({"sampling": "fixed size"}, "depends on the others"),
        ({"noise": Banded(3), "noise_multiplier": None}, "noise is correlated"),
        ({"users": [[]] * 64}, "names nobody"),
        ({"users": [["a"]] * 63}, "for each example"),
        ({"users": ["ann"] * 64, "batch_size": 16}, "cannot be drawn"),
        ({"unit": user("id"), "users": [["a", "b"]] * 64}, "names nobody"),
        ({"unit": rows(), "users": circle()}, "only with it"),
    ],
    ids=str,
)
def test_what_is_not_proven_or_not_understood_is_refused_before_the_charge(
    tmp_path: Path, more: dict[str, Any], words: str
) -> None:
    with pytest.raises(DefocusError, match=words) as refused:
        trainer(tmp_path, **{"unit": rows(per_person=3), "users": circle(), "epsilon": 500, **more})
    assert isinstance(refused.value, InvalidParameterError | UnfitDataError)
    assert refused.value.fix
    assert not (tmp_path / "run.ledger").exists()


@pytest.mark.parametrize(
    "more",
    [
        {"sampling": "balls in bins"},
        {"max_grad_norm": AdaptiveClipping()},
        {"unit": rows(per_person=2, replace=True)},
        {"users": None, "audit": 4},
        {"audit": 4},
    ],
    ids=str,
)
def test_what_is_proven_of_one_row_works_with_several_owners(tmp_path: Path, more: dict[str, Any]) -> None:
    given: dict[str, Any] = {"unit": rows(per_person=2), "users": circle(), "noise_multiplier": 6.0, "epsilon": 50}
    result = trainer(tmp_path, **{**given, **more}).fit(progress=False)
    assert result.steps == 8
    assert 0 < result.epsilon <= 50
    if "audit" in more:
        assert result.audit is not None
        assert result.audit.epsilon_lower <= result.epsilon
        assert "have one example each, of 2 that a person may have" in result.explain()


def test_a_run_is_not_resumed_with_other_owners(tmp_path: Path) -> None:
    same: dict[str, Any] = {"unit": rows(per_person=2), "epsilon": 50, "noise_multiplier": 6.0, "batch_size": 8}
    first = trainer(tmp_path, users=circle(), **same)
    for batch in first.batches():
        first.step(batch)
        if first.steps_taken == 4:
            break
    first.save(tmp_path / "c")
    first.close()
    turned = [owners[::-1] for owners in circle()][::-1]
    with pytest.raises(DefocusError, match=r"settings|data"):
        trainer(tmp_path, users=turned, **same).resume(tmp_path / "c")
    again = trainer(tmp_path, users=circle(), **same)
    again.resume(tmp_path / "c")
    assert again.fit(progress=False).steps == 8


def test_a_search_is_priced_for_all_examples_of_a_person(tmp_path: Path) -> None:
    def make(rate: float) -> Any:
        net = model()
        return net, torch.nn.CrossEntropyLoss(), torch.optim.SGD(net.parameters(), lr=rate)

    more: dict[str, Any] = {"settings": [0.1], "validation": data(16, seed=1), "batch_size": 8, "steps": 1, "runs": 2}
    more |= {"epsilon": 50, "delta": 1e-5, "ledger": tmp_path / "s.ledger", "users": circle()}
    found = search(make, data(), unit=rows(per_person=2), **more)
    assert found.event is not None
    assert found.event.event.parts[0][1] == 2  # type: ignore[attr-defined]  # two sums, one for each example
    assert 40 < tightest(found.event).epsilon(1e-5) <= 50


def test_a_ledger_of_persons_pays_for_examples_with_several_owners(tmp_path: Path) -> None:
    with Ledger.open(tmp_path / "p.ledger", budget=BUDGET, unit=user("person"), dataset="visits") as book:
        photos = book.data("photos", unit=rows(per_person=3))
        more: dict[str, Any] = {"users": circle(), "ledger": photos, "noise_multiplier": None}
        trainer(tmp_path, unit=photos.unit, epsilon=5, **more).fit(progress=False)
        assert float(book.remaining().epsilon or 0) < 3.5
        with pytest.raises(BudgetExceededError):
            trainer(tmp_path, unit=photos.unit, epsilon=5, **more).fit(progress=False)


def test_a_million_owners_are_bounded_in_seconds() -> None:
    rng = np.random.default_rng(0)
    users = rng.integers(0, 20_000, (100_000, 3))
    units = Units(len(users), users, 5)
    assert 0 < units.count < len(users)
    owners = [set(row) for row in users[units.examples_of(np.arange(units.count))[0]].tolist()]
    assert np.bincount([who for row in owners for who in row]).max() == 5

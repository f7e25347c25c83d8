"""What a ledger's whole history gives away: bounds by what was spent, and releases that differ by few people."""

import json
import math
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import defocus as dp
from defocus.audit import history
from defocus.errors import InvalidParameterError
from defocus.ledger import Ledger
from defocus.privacy import Gaussian, Laplace

PEOPLE = pa.table({"age": list(range(90)), "ward": ["A", "B", "B"] * 30})


def opened(folder: Path, budget: dp.Budget = dp.Budget(9)) -> Any:  # noqa: B008  # frozen
    return dp.open(PEOPLE, unit=dp.rows(), budget=budget, ledger=folder / "a.ledger", name="p")


def test_an_empty_ledger_gives_nothing_away(tmp_path: Path) -> None:
    with opened(tmp_path) as table:
        found = history(table.ledger)
    assert (found.charges, found.numbers, found.epsilon) == (0, 0, 0)
    assert found.attack[0.01][0] == pytest.approx(0.01)
    assert found.posterior[0.5][0] == pytest.approx(0.5)
    assert found.secret[0] == pytest.approx(0.5)
    assert not found.twins
    assert not found.repeated


def test_bounds_are_those_of_everything_that_was_spent_and_of_the_budget(tmp_path: Path) -> None:
    with opened(tmp_path, budget=dp.Budget(2)) as table:
        for _ in range(2):
            table.agg(n=dp.count()).release(epsilon=0.5)
        found = history(table.ledger)
    assert found.epsilon == pytest.approx(1)
    assert found.attack[0.01] == pytest.approx((0.01 * math.e, 0.01 * math.exp(2)), rel=1e-6)
    assert found.posterior[0.1] == pytest.approx(tuple(1 / (1 + 9 * math.exp(-e)) for e in (1, 2)), rel=1e-6)
    assert found.secret == pytest.approx(tuple(1 / (1 + math.exp(-2 * e)) for e in (1, 2)), rel=1e-6)


def test_a_secret_is_one_change_where_units_are_replaced(tmp_path: Path) -> None:
    unit = dp.rows(replace=True)
    with Ledger.open(tmp_path / "b", unit=unit, budget=dp.Budget(2), dataset="b") as book:
        book.charge(Laplace(1), purpose="one")
        assert history(book).secret[0] == pytest.approx(1 / (1 + math.exp(-1)), rel=1e-6)


def test_releases_that_differ_in_one_condition_are_told_with_what_their_difference_shows(tmp_path: Path) -> None:
    with opened(tmp_path) as table:
        for i, where in enumerate(("age > 30", "age > 31", "age > 31 and ward = 'A'", "ward = 'B' and age > 80")):
            table.where(where).agg(n=dp.count()).release(epsilon=0.5, request=f"r{i}")
        table.where("age > 30").agg(s=dp.sum("age", 0, 99)).release(epsilon=0.5)
        found = history(table.ledger)
    words = [each.words for each in found.twins]
    assert words == [
        "entries 1 and 3 differ in age > 30 and age > 31",
        "entries 3 and 5 differ in no condition and ward = 'A'",
    ]
    assert found.twins[0].epsilon == pytest.approx(1)
    assert found.twins[0].attack == pytest.approx(0.01 * math.e, rel=1e-6)
    assert found.twins[0].error == pytest.approx(math.sqrt(2) * 2.8, rel=0.05)
    assert found.numbers == 4


def test_selects_are_compared_by_their_conditions(tmp_path: Path) -> None:
    with opened(tmp_path) as table:
        table.sql_query("SELECT COUNT(*) AS n FROM p WHERE ward = 'A' AND age > 30").release(epsilon=0.5)
        table.sql_query("SELECT COUNT(*) AS n FROM p WHERE age > 31 AND ward = 'A'").release(epsilon=0.5)
        table.sql_query("SELECT COUNT(*) AS n FROM p").release(epsilon=0.5)
        (only,) = history(table.ledger).twins
    assert (only.only_first, only.only_second) == (("age > 30",), ("age > 31",))
    assert only.error is None  # an answer without a request is not kept


def test_a_question_that_is_asked_again_is_told_with_the_error_of_its_average(tmp_path: Path) -> None:
    with opened(tmp_path) as table:
        for i in range(4):
            table.agg(n=dp.count()).release(epsilon=0.5, request=f"r{i}")
        (only,) = history(table.ledger).repeated
    assert only.entries == (1, 3, 5, 7)
    assert only.epsilon == pytest.approx(2)
    assert only.error == pytest.approx(2.8 / 2, rel=0.05)


@pytest.mark.parametrize("budget", [dp.Budget(rho=0.5), dp.Budget(mu=1), dp.Budget(3, 1e-6)])
def test_every_kind_of_budget_has_bounds(tmp_path: Path, budget: dp.Budget) -> None:
    with Ledger.open(tmp_path / "b", unit=dp.rows(), budget=budget, dataset="b") as book:
        book.charge(Gaussian(4), purpose="one")
        found = history(book)
    for spent, allowed in (*found.attack.values(), *found.posterior.values(), found.secret):
        assert spent is not None
        assert 0 < spent < allowed <= 1


def test_it_is_told_and_drawn(tmp_path: Path) -> None:
    with opened(tmp_path) as table:
        for where in ("age > 30", "age > 31", "age > 31"):
            table.where(where).agg(n=dp.count()).release(epsilon=0.5, request=where)
        found = history(table.ledger)
    told = json.loads(json.dumps(found.to_json()))
    assert told["attack"]["1 %"][0] < told["attack"]["1 %"][1]
    page = found._repr_html_()
    assert "age &gt; 30" in page
    assert "Questions that were asked again" not in page  # the second was recalled from the ledger
    assert "recognised with at most" in str(found)
    found.plot().savefig(tmp_path / "a.svg")


def test_refuses_what_is_no_ledger() -> None:
    with pytest.raises(InvalidParameterError, match="no ledger"):
        history("a.ledger")  # type: ignore[arg-type]

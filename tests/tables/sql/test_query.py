"""A query in SQL is previewed, planned, released and remembered like any other."""

import pytest
from tests.tables.sql.hospital import hospital

from defocus.errors import BudgetExceededError, InvalidParameterError, NotDeclaredError
from defocus.noise.testing import seeded
from defocus.privacy.units import rows
from defocus.tables import Table

QUERY = "SELECT smoker, COUNT(*) AS n, MAX(days) AS most FROM visits GROUP BY smoker HAVING n > -1000 ORDER BY n DESC"


def test_a_preview_is_free_and_tells_what_the_release_costs(visits: Table) -> None:
    before = visits.ledger.spent()
    query = visits.sql_query(QUERY)
    seen = query.preview(epsilon=0.5)
    assert visits.ledger.spent() == before
    assert [column.name for column in seen.columns] == ["n", "most"]
    assert seen.event == query.plan(epsilon=0.5).event == query.release(epsilon=0.5).event
    assert seen.question == query.question == query.text
    assert "MAX is the quantile of 99.5 %: the very last value belongs to one person" in seen.rules


def test_one_select_is_one_charge(visits: Table) -> None:
    before = len(list(visits.ledger.entries()))
    answer = visits.sql(QUERY, epsilon=0.5)
    kinds = [entry.kind for entry in list(visits.ledger.entries())[before:]]
    assert kinds.count("charge") == 1
    assert answer.question == answer.receipt.purpose == " ".join(QUERY.split())


def test_the_same_bits_give_the_same_answer(visits: Table) -> None:
    one, two = (visits.sql(QUERY, epsilon=0.5, bits=seeded(7)) for _ in range(2))
    assert one["n"].values.tolist() == two["n"].values.tolist()


def test_a_request_is_answered_again_for_nothing(visits: Table) -> None:
    first = visits.sql(QUERY, epsilon=0.5, request="monthly report")
    before = visits.ledger.spent()
    again = visits.sql(QUERY, epsilon=0.5, request="monthly report")
    assert again.to_pandas().equals(first.to_pandas())
    assert again.processing == first.processing
    assert visits.ledger.spent() == before
    with pytest.raises(InvalidParameterError, match="another question"):
        visits.sql("SELECT COUNT(*) FROM visits", epsilon=0.5, request="monthly report")


def test_keys_that_nobody_knows_are_refused_before_the_charge(visits: Table) -> None:
    query = visits.sql_query("SELECT smoker, ward, COUNT(*) FROM visits GROUP BY smoker, ward")
    assert query.unknown == ("ward",)
    for ask in (query.preview, query.plan, query.release):
        with pytest.raises(NotDeclaredError, match="Nobody said which values of ward there are"):
            ask(epsilon=1)
    assert query.preview(epsilon=1, delta=1e-6).columns


@pytest.mark.parametrize("epsilon", [0, -1, float("nan"), float("inf"), True, "1", None])
def test_a_price_that_is_none_is_refused(visits: Table, epsilon: object) -> None:
    before = visits.ledger.spent()
    with pytest.raises(InvalidParameterError):
        visits.sql("SELECT COUNT(*) FROM visits", epsilon=epsilon)  # type: ignore[arg-type]  # bad input is the point
    assert visits.ledger.spent() == before


def test_a_spent_budget_refuses_sql_too() -> None:
    with hospital(unit=rows()) as table, pytest.raises(BudgetExceededError):
        table.sql("SELECT COUNT(*) FROM visits", epsilon=2 * 10**9)


def test_the_notes_tell_where_sql_means_something_else(visits: Table) -> None:
    said = visits.sql("SELECT STDDEV(days), MIN(days), COUNT(DISTINCT age) FROM visits", epsilon=1).explain()
    assert "STDDEV divides by the number of rows" in said
    assert "MIN is the quantile of 0.5 %" in said
    assert "brings at most 1 different values of age" in said


def test_epsilon_must_be_given(visits: Table) -> None:
    with pytest.raises(TypeError):
        visits.sql("SELECT COUNT(*) FROM visits")  # type: ignore[call-arg]  # that is the point

"""A SELECT asks the same question as the methods of a table: the same event, rows, groups and aggregates."""

from collections.abc import Callable
from typing import Any

import pytest
from tests.tables.sql.hospital import exact, hospital

import defocus as dp
from defocus.errors import InvalidParameterError
from defocus.tables import Query, Table

WARDS = ["A", "B"]
PAIRS: dict[str, Callable[[Table], Query]] = {
    "SELECT COUNT(*) AS n FROM visits": lambda t: t.agg(n=dp.count()),
    "SELECT COUNT(1) AS n FROM visits": lambda t: t.agg(n=dp.count()),
    "SELECT COUNT(age) AS n FROM visits": lambda t: t.agg(n=dp.count("age")),
    "SELECT COUNT(DISTINCT patient) AS n FROM visits": lambda t: t.agg(n=dp.count_units()),
    "SELECT COUNT(DISTINCT age) AS n FROM visits": lambda t: t.agg(n=dp.count_distinct("age")),
    "SELECT SUM(days) AS x FROM visits": lambda t: t.agg(x=dp.sum("days", 0, 30)),
    "SELECT AVG(days) AS x, COUNT(*) AS n FROM visits": lambda t: t.agg(x=dp.mean("days", 0, 30), n=dp.count()),
    "SELECT MEAN(days) AS x FROM visits": lambda t: t.agg(x=dp.mean("days", 0, 30)),
    "SELECT AVG(CLAMP(age, 0, 99)) AS x FROM visits": lambda t: t.agg(x=dp.mean("age", 0, 99)),
    "SELECT AVG(LEAST(GREATEST(age, -5), 99)) AS x FROM visits": lambda t: t.agg(x=dp.mean("age", -5, 99)),
    "SELECT AVG(GREATEST(0.5, LEAST(99, age))) AS x FROM visits": lambda t: t.agg(x=dp.mean("age", 0.5, 99)),
    'SELECT SUM("length of stay") AS x FROM visits': lambda t: t.agg(x=dp.sum('"length of stay"', 0, 10)),
    "SELECT VARIANCE(days) AS x FROM visits": lambda t: t.agg(x=dp.variance("days", 0, 30)),
    "SELECT VAR_POP(days) AS x FROM visits": lambda t: t.agg(x=dp.variance("days", 0, 30)),
    "SELECT STDDEV(days) AS x FROM visits": lambda t: t.agg(x=dp.std("days", 0, 30)),
    "SELECT CORR(days, CLAMP(age, 0, 9)) AS x FROM visits": lambda t: t.agg(
        x=dp.correlation("days", "age", x_bounds=(0, 30), y_bounds=(0, 9))
    ),
    "SELECT COVAR_POP(days, CLAMP(age, 0, 9)) AS x FROM visits": lambda t: t.agg(
        x=dp.covariance("days", "age", x_bounds=(0, 30), y_bounds=(0, 9))
    ),
    "SELECT MEDIAN(days) AS x FROM visits": lambda t: t.agg(x=dp.median("days", 0, 30)),
    "SELECT MIN(days) AS x FROM visits": lambda t: t.agg(x=dp.min("days", 0, 30)),
    "SELECT MAX(days) AS x FROM visits": lambda t: t.agg(x=dp.max("days", 0, 30)),
    "SELECT QUANTILE_CONT(days, 0.9) AS x FROM visits": lambda t: t.agg(x=dp.quantile("days", 0.9, 0, 30)),
    "SELECT APPROX_QUANTILE(days, 0.9) AS x FROM visits": lambda t: t.agg(x=dp.quantile("days", 0.9, 0, 30)),
    "SELECT PERCENTILE_CONT(0.9) WITHIN GROUP (ORDER BY days DESC) AS x FROM visits": lambda t: t.agg(
        x=dp.quantile("days", 0.1, 0, 30)
    ),
    "SELECT MEDIAN(days), QUANTILE_CONT(days, 0.25) FROM visits": lambda t: t.agg(
        quantiles_days=dp.quantiles("days", [0.25, 0.5], 0, 30)
    ),
    "SELECT COUNT(*) FILTER (WHERE age > 30) AS n FROM visits": lambda t: t.agg(
        n=dp.count("CASE WHEN age > 30 THEN 1 END")
    ),
    "SELECT COUNT_IF(age > 30) AS n FROM visits": lambda t: t.agg(n=dp.count("CASE WHEN age > 30 THEN 1 END")),
    "SELECT SUM(days) FILTER (WHERE smoker) AS x FROM visits": lambda t: t.agg(
        x=dp.sum("CASE WHEN smoker THEN days END", 0, 30)
    ),
    "SELECT SUM(CASE WHEN smoker THEN 1 ELSE 0 END) AS x FROM visits": lambda t: t.agg(
        x=dp.sum("CASE WHEN smoker THEN 1 ELSE 0 END", 0, 1)
    ),
    "SELECT COUNT(*) AS n FROM visits WHERE age >= 30 AND ward <> 'A'": lambda t: t.where(
        "age >= 30 AND ward <> 'A'"
    ).agg(n=dp.count()),
    "SELECT ward, COUNT(*) AS n FROM visits WHERE ward IN ('A', 'B') GROUP BY ward": lambda t: (
        t.where("ward IN ('A', 'B')").group_by("ward", keys=WARDS).agg(n=dp.count())
    ),
    "SELECT smoker, COUNT(*) AS n FROM visits GROUP BY smoker": lambda t: t.group_by("smoker").agg(n=dp.count()),
    "SELECT decade, COUNT(*) AS n FROM (SELECT age // 10 AS decade FROM visits) WHERE decade IN (2, 3) GROUP BY 1": (
        lambda t: (
            t.derive(decade="age // 10").where("decade IN (2, 3)").group_by("decade", keys=[2, 3]).agg(n=dp.count())
        )
    ),
    "SELECT COUNT(*) AS n FROM visits v JOIN patients p ON v.patient = p.patient WHERE p.sex = 'f'": lambda t: (
        t.join("patients", on="patient", how="inner").where("sex = 'f'").agg(n=dp.count())
    ),
    "SELECT building, COUNT(*) AS n FROM visits JOIN wards USING (ward) GROUP BY building": lambda t: (
        t.join("wards", on="ward", how="inner").group_by("building", keys=["north", "south"]).agg(n=dp.count())
    ),
    "SELECT COUNT(*) AS n FROM patients": lambda t: t.other("patients").agg(n=dp.count()),
}


@pytest.mark.parametrize("text", PAIRS)
@pytest.mark.parametrize("delta", [None, 1e-6])
def test_a_select_is_the_question_that_the_methods_ask(visits: Table, text: str, delta: float | None) -> None:
    asked, meant = visits.sql_query(text).query, PAIRS[text](visits)
    plan = asked.plan(epsilon=1, delta=delta)
    assert plan.event == meant.plan(epsilon=1, delta=delta).event
    assert asked.arrangement.aggregates == meant.arrangement.aggregates
    assert asked.arrangement.splits == meant.arrangement.splits
    assert (asked.by, asked.bound) == (meant.by, meant.bound)
    assert asked.rows.words == meant.rows.words
    assert asked.keys is not None
    assert meant.keys is not None
    assert asked.keys.table.equals(meant.keys.table)


@pytest.mark.parametrize("text", PAIRS)
def test_the_exact_statement_for_the_engine_is_that_of_the_methods(visits: Table, text: str) -> None:
    asked, meant = visits.sql_query(text).query.rows, PAIRS[text](visits).rows
    assert set(asked.schema.names) == set(meant.schema.names)
    assert asked.unit == meant.unit == "patient"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT COUNT(*) AS n, SUM(days) AS d FROM visits", {"n": [60.0], "d": [270.0]}),
        ("SELECT COUNT(DISTINCT patient) AS p FROM visits", {"p": [20.0]}),
        (
            "SELECT ward, COUNT(*) AS n FROM visits WHERE ward IN ('B', 'A') GROUP BY ward",
            {"ward": ["A", "B"], "n": [20.0, 20.0]},
        ),
        (
            "SELECT Ward AS w, COUNT(*) FILTER (WHERE smoker) AS s FROM Visits AS V WHERE V.ward = 'A' GROUP BY v.WARD",
            {"w": ["A"], "s": [5.0]},
        ),
        (
            "SELECT CASE WHEN age < 30 THEN 'young' ELSE 'old' END AS band, COUNT(*) AS n FROM visits GROUP BY band",
            {"band": ["old", "young"], "n": [30.0, 30.0]},
        ),
        (
            """WITH adults AS (SELECT *, age // 10 AS d FROM visits WHERE age >= 30), three AS (SELECT d FROM adults)
            SELECT d, COUNT(*) AS n FROM three WHERE d IN (2, 3) GROUP BY d""",
            {"d": [2, 3], "n": [0.0, 30.0]},
        ),
        (
            "SELECT EXTRACT(month FROM day) AS m, COUNT(*) AS n FROM visits GROUP BY m LIMIT 2",
            {"m": [1, 2], "n": [5.0, 6.0]},
        ),
        (
            "SELECT YEAR(day) AS y, COUNT(*) AS n FROM visits WHERE YEAR(day) BETWEEN 2023 AND 2024 GROUP BY YEAR(day)",
            {"y": [2023, 2024], "n": [34.0, 26.0]},
        ),
        (
            """SELECT sex, COUNT(*) AS n FROM visits v JOIN patients p ON p.patient = v.patient
            WHERE sex IN ('f', 'm') GROUP BY sex""",
            {"sex": ["f", "m"], "n": [30.0, 30.0]},
        ),
        (
            "SELECT building, SUM(w.beds) AS beds FROM visits v LEFT JOIN wards w ON v.ward = w.ward GROUP BY building",
            {"building": ["north", "south"], "beds": [600.0, 600.0]},
        ),
        (
            "SELECT UPPER(ward) AS ward, COUNT(*) AS n FROM visits WHERE UPPER(ward) = 'C' GROUP BY 1",
            {"ward": ["C"], "n": [20.0]},
        ),
        ('SELECT COUNT(*) AS n FROM visits WHERE "length of stay" = 3 AND "order" < 30', {"n": [4.0]}),
        ("SELECT COUNT(*) AS n FROM visits a JOIN visits b USING (patient) WHERE a.age = b.age", {"n": [180.0]}),
        ("FROM visits SELECT COUNT(*) AS n", {"n": [60.0]}),
        ("(SELECT COUNT(*) AS n FROM visits);", {"n": [60.0]}),
        ("SELECT COUNT(*) AS n /* all of them */ FROM visits -- the end", {"n": [60.0]}),
        ("SELECT SUM(smoker) AS s, AVG(NOT smoker) * 4 AS a FROM visits", {"s": [15.0], "a": [3.0]}),
        ("SELECT SUM(2 * days + 1) AS s FROM visits", {"s": [600.0]}),
    ],
)
def test_answers_are_those_of_sql(visits: Table, text: str, expected: dict[str, Any]) -> None:
    assert exact(visits, text) == expected


def test_found_keys_need_a_delta_and_then_come_from_the_data(visits: Table) -> None:
    answer = visits.sql("SELECT ward, COUNT(*) AS n FROM visits GROUP BY ALL", epsilon=100, delta=1e-3)
    assert {name: key.to_pylist() for name, key in answer.keys.items()} == {"ward": ["A", "B", "C"]}


def test_keys_can_be_given_beside_the_text(visits: Table) -> None:
    found = exact(visits, "SELECT ward AS w, COUNT(*) AS n FROM visits GROUP BY ward", keys=["C", "D"])
    assert found == {"w": ["C", "D"], "n": [20.0, 0.0]}
    with pytest.raises(InvalidParameterError, match="there is no GROUP BY"):
        visits.sql_query("SELECT COUNT(*) FROM visits", keys=["C"])


def test_declared_domains_are_keys(visits: Table) -> None:
    declared = visits.declare(ward=["A", "Z"])
    assert exact(declared, "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward") == {"ward": ["A", "Z"], "n": [20, 0]}


def test_conditions_of_where_meet_declared_domains(visits: Table) -> None:
    declared = visits.declare(ward=["A", "B", "C"])
    text = "SELECT ward, smoker, COUNT(*) AS n FROM visits WHERE ward = 'C' GROUP BY ward, smoker"
    assert exact(declared, text) == {"ward": ["C", "C"], "smoker": [False, True], "n": [15.0, 5.0]}


def test_bounds_can_be_found_privately(visits: Table) -> None:
    query = visits.sql_query("SELECT AVG(age) AS x FROM visits", bounds="find")
    assert query.query.arrangement.searched == ("age",)
    assert 20 < query.release(epsilon=500).columns[0].values[0] < 40


@pytest.mark.parametrize("bounds", ["guess", (0, 1), 3])
def test_other_bounds_than_find_are_refused(visits: Table, bounds: Any) -> None:
    with pytest.raises(InvalidParameterError, match="bounds is"):
        visits.sql_query("SELECT AVG(age) FROM visits", bounds=bounds)


@pytest.mark.parametrize("at_most", [0, -1, True, "2", 1.5])
def test_other_numbers_of_values_than_whole_ones_are_refused(visits: Table, at_most: Any) -> None:
    with pytest.raises(InvalidParameterError, match="at_most"):
        visits.sql_query("SELECT COUNT(DISTINCT age) FROM visits", at_most=at_most)


def test_names_of_columns_are_readable_and_unique(visits: Table) -> None:
    text = (
        "SELECT COUNT(*), COUNT(*), AVG(days), SUM(days) / COUNT(*), QUANTILE_CONT(days, 0.9), COUNT(age) FROM visits"
    )
    names = [output.name for output in visits.sql_query(text).finish.outputs]
    assert names == ["count", "count_2", "avg_days", "sum_days_count", "p90_days", "count_age"]


def test_equal_aggregates_are_measured_once(visits: Table) -> None:
    query = visits.sql_query("SELECT COUNT(*) AS a, COUNT(*) AS b, COUNT(*) / 2 FROM visits HAVING COUNT(*) > 3")
    assert len(query.query.arrangement.aggregates) == 1
    answer = query.release(epsilon=1)
    assert answer["a"].values.tolist() == answer["b"].values.tolist()


def test_the_bound_of_the_table_holds_for_its_own_rows_only(visits: Table) -> None:
    bounded = visits.bound(rows=7)
    assert str(bounded.sql_query("SELECT COUNT(*) FROM visits").query.bound) == "7 rows"
    assert (
        str(bounded.sql_query("SELECT COUNT(*) FROM patients").query.bound)
        == "a number of rows that is found privately"
    )


def test_a_filtered_table_is_asked_about_its_rows(visits: Table) -> None:
    assert exact(visits.where("ward = 'A'"), "SELECT COUNT(*) AS n FROM visits") == {"n": [20.0]}


def test_rows_can_be_the_unit() -> None:
    with hospital(unit=dp.rows()) as table:
        answer = table.sql("SELECT COUNT(*) AS n, COUNT(DISTINCT patient) AS p FROM visits", epsilon=500)
    assert [round(column.values[0]) for column in answer.columns] == [60, 20]


def test_purposes_of_the_owner_bind_sql_too() -> None:
    with hospital(purposes=["planning"]) as table:
        with pytest.raises(InvalidParameterError, match="named purposes only"):
            table.sql("SELECT COUNT(*) FROM visits", epsilon=1)
        assert table.sql("SELECT COUNT(*) FROM visits", epsilon=1, purpose="planning").receipt.purpose == "planning"


def test_rows_for_which_no_branch_of_a_case_holds_are_a_group_as_in_sql(visits: Table) -> None:
    text = "SELECT CASE WHEN ward = 'A' THEN 'first' WHEN ward = 'B' THEN NULL END AS k, COUNT(*) AS n FROM visits"
    assert exact(visits, f"{text} GROUP BY k ORDER BY n") == {"k": ["first", None], "n": [20, 40]}
    assert exact(visits, f"{text} WHERE ward = 'A' GROUP BY k", keys=["first"]) == {"k": ["first"], "n": [20]}
    whole = "SELECT CASE WHEN ward = 'A' THEN 1 ELSE 2 END AS k, COUNT(*) AS n FROM visits GROUP BY k ORDER BY k"
    assert exact(visits, whole) == {"k": [1, 2], "n": [20, 40]}

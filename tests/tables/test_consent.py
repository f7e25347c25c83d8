"""Consent: questions are about those who consent to the purpose, and nothing else changes."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import defocus as dp
from defocus.errors import DatasetFileError, InvalidParameterError, NotDeclaredError, WrongKindError
from defocus.tables.dataset_check import check
from defocus.tables.dataset_file import parsed

PEOPLE = pa.table({"person": range(1000), "age": [30 + i % 40 for i in range(1000)], "day": ["2026-01-01"] * 1000})
WILLING = pa.table({"person": [*range(300), *range(300), 7], "purpose": ["research"] * 600 + ["planning"]})
MANY: dict[str, Any] = {"epsilon": 50}


def opened(home: Path, consent: Any = WILLING, **more: Any) -> dp.tables.Table:
    how = {"unit": dp.user("person"), "budget": dp.Budget(10_000), "ledger": home / "a.ledger", "name": "visits"}
    return dp.open(PEOPLE, consent=consent, **{**how, **more})


def test_a_question_counts_each_person_who_consents_to_its_purpose_once(tmp_path: Path) -> None:
    with opened(tmp_path) as visits:
        research = visits.for_purpose("research").bound(rows=1).agg(rows=dp.count(), people=dp.count_units())
        answer = research.release(**MANY)
        assert abs(answer["rows"].values[0] - 300) < 5
        assert abs(answer["people"].values[0] - 300) < 5
        assert abs(visits.sql("SELECT COUNT(*) AS n FROM visits", **MANY, purpose="planning").value - 1) < 5
        assert abs(visits.sql("SELECT COUNT(*) AS n FROM visits", **MANY, purpose="sale").value) < 5


def test_restricting_by_consent_changes_no_price_and_no_error(tmp_path: Path) -> None:
    with opened(tmp_path) as visits, opened(tmp_path, None) as all_of_them:
        asked, plain = (one.bound(rows=3).agg(n=dp.count()) for one in (visits.for_purpose("research"), all_of_them))
        assert asked.plan(epsilon=1).event == plain.plan(epsilon=1).event
        assert asked.preview(epsilon=1).error == plain.preview(epsilon=1).error


def test_nothing_can_be_asked_before_a_purpose_is_named(tmp_path: Path) -> None:
    with opened(tmp_path) as visits:
        before = len(visits.ledger)
        for ask in (
            lambda: visits.agg(n=dp.count()),
            lambda: visits.group_by("age", keys=[30]).agg(n=dp.count()),
            lambda: visits.declare(age=[30, 31]).cube("age"),
            lambda: visits.examples("age"),
            lambda: visits.sql_query("SELECT COUNT(*) AS n FROM visits"),
            lambda: visits.sql("SELECT COUNT(*) AS n FROM visits", epsilon=1),
            lambda: visits.top("age", 1, keys=[30, 31]),
        ):
            with pytest.raises(NotDeclaredError, match="for_purpose"):
                ask()
        assert len(visits.ledger) == before


def test_what_people_consented_to_is_released_for_that_purpose_only(tmp_path: Path) -> None:
    with opened(tmp_path) as visits:
        asked = visits.for_purpose("research").agg(n=dp.count())
        with pytest.raises(InvalidParameterError, match="'planning' is none of them"):
            asked.release(epsilon=1, purpose="planning")
        assert asked.release(epsilon=1).receipt.purpose == "research"
        with pytest.raises(InvalidParameterError, match="named purposes only"):
            visits.for_purpose("research").ledger.charge(dp.privacy.Laplace(5), purpose="planning")


def test_another_private_table_is_restricted_too(tmp_path: Path) -> None:
    more = PEOPLE.select(["person"]).append_column("score", pa.array([1.0] * 1000))
    with opened(tmp_path, private={"scores": more}) as visits:
        asked = visits.for_purpose("research").other("scores").bound(rows=1).agg(n=dp.count())
        assert abs(asked.release(**MANY).value - 300) < 5
        text = "SELECT COUNT(*) AS n FROM visits JOIN scores USING (person)"
        assert abs(visits.bound(rows=1).sql(text, **MANY, purpose="research").value - 300) < 5


def dataset_file(home: Path, more: str = "") -> Path:
    pq.write_table(PEOPLE, home / "visits.parquet")
    (home / "consent.csv").write_text("patient,use\n" + "".join(f"{i},research\n" for i in range(300)))
    text = f"""
name = "visits"
data = "visits.parquet"
purposes = ["research"]
unit.column = "person"
budget.epsilon = 1000
bound.rows = 1
{more}
[consent]
data = "consent.csv"
unit = "patient"
purpose = "use"
[consent.columns.patient]
kind = "integer"
"""
    (home / "defocus.toml").write_text(text)
    return home / "defocus.toml"


def test_who_withdraws_counts_from_the_next_release(tmp_path: Path) -> None:
    file = dataset_file(tmp_path)
    assert check(dp.tables.dataset_file.read(file)).problems == []
    with dp.open(file) as visits:
        asked = visits.for_purpose("research").agg(n=dp.count())
        assert abs(asked.release(**MANY, request="first").value - 300) < 5
        (tmp_path / "consent.csv").write_text("patient,use\n" + "".join(f"{i},research\n" for i in range(100)))
        assert abs(asked.release(**MANY).value - 100) < 5
        assert abs(asked.release(**MANY, request="first").value - 300) < 5  # recorded, and public


def test_a_file_whose_consents_do_not_fit_is_refused(tmp_path: Path) -> None:
    file = dataset_file(tmp_path)
    unknown = file.read_text().replace('unit = "patient"', 'unit = "who"')
    assert "who" in check(parsed(unknown, file=file)).problems[0]
    with pytest.raises(DatasetFileError, match="which column names the person"):
        parsed(file.read_text().replace('unit = "patient"\n', ""))
    with pytest.raises(DatasetFileError, match="protects each row alone"):
        parsed(file.read_text().replace('unit.column = "person"', "unit.rows = true").replace("bound.rows = 1\n", ""))


def test_consents_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    numbers = pa.table({"person": [1], "purpose": [3]})
    with pytest.raises(WrongKindError, match="Purposes are text"):
        opened(tmp_path, numbers)
    with pytest.raises(InvalidParameterError, match="no other private table"):
        opened(tmp_path, unit=dp.rows())
    with pytest.raises(InvalidParameterError, match="does not say in which month"):
        opened(tmp_path, unit=dp.user("person", period="month", of="day"), types={"day": "date"})
    with opened(tmp_path) as visits, pytest.raises(InvalidParameterError, match="text on one line"):
        visits.for_purpose(" ")

from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.tables.opening import write_csv

from defocus.engines.schema import Column, Kind, Schema
from defocus.errors import DatasetFileError, InvalidParameterError, SourceError
from defocus.privacy.budgets import Budget
from defocus.privacy.units import user
from defocus.tables.dataset_check import check
from defocus.tables.dataset_draft import draft, heading, key, likely_units, value, write
from defocus.tables.dataset_file import parsed

HOSTILE = "x\"] #'; DROP TABLE t; --"


def visits(folder: Path, *ages: int) -> Path:
    table = {"patient_id": list(ages), "age": list(ages), HOSTILE: ["gout"] * len(ages), "l": [[1]] * len(ages)}
    pq.write_table(pa.table(table), folder / "visits.parquet")
    return folder / "visits.parquet"


def test_the_draft_does_not_depend_on_a_row(tmp_path: Path) -> None:
    drafts = {draft(visits(tmp_path, *ages), home=tmp_path) for ages in ([1], [99, 123456], range(500))}
    assert len(drafts) == 1
    (text,) = drafts
    assert "gout" not in text
    assert "123456" not in text


def test_the_draft_is_refused_until_its_questions_are_answered(tmp_path: Path) -> None:
    text = draft(visits(tmp_path, 1), home=tmp_path)
    with pytest.raises(DatasetFileError, match="Whom the file protects"):
        parsed(text)
    answered = text.replace('# column = "patient_id"', 'column = "patient_id"')
    with pytest.raises(DatasetFileError, match="what may be lost"):
        parsed(answered)
    answered = answered.replace("# epsilon = 1", "epsilon = 1")
    dataset = parsed(answered, file=tmp_path / "defocus.toml")
    assert dataset.unit == user("patient_id")
    assert check(dataset).problems == []


def test_the_draft_names_the_ledger_and_its_anchor(tmp_path: Path) -> None:
    (tmp_path / "books").mkdir()
    said: dict[str, Any] = {"unit": user("patient_id"), "budget": Budget(1, 1e-6), "name": "stays"}
    for home, ledger in ((tmp_path, "visits.ledger"), (tmp_path / "books", f"{tmp_path}/visits.ledger")):
        text = draft(visits(tmp_path, 1), home=home, **said)
        dataset = parsed(text, file=home / "defocus.toml")
        assert (dataset.ledger, dataset.anchor_file) == (ledger, f"{ledger}.anchor")
        assert "another disk" in text
    assert parsed(draft(str(tmp_path / "*.parquet"), home=tmp_path, **said)).ledger == "stays.ledger"


def test_every_place_is_valid_once_it_is_filled_in(tmp_path: Path) -> None:
    text = draft(visits(tmp_path, 1), unit=user("patient_id"), budget=Budget(1, 1e-6), home=tmp_path)
    places = ("# [bound]", "# rows", "# purposes")
    lines = [line[2:] if line.startswith(places) else line for line in text.split("\n")]
    for name, told in (("age", ["low = 0", "high = 100"]), (HOSTILE, ['values = ["first", "second"]'])):
        assert all(part in text for part in told)
        at = lines.index(heading("columns", name)) + 2
        lines[at:at] = told
    dataset = parsed("\n".join(lines), file=tmp_path / "defocus.toml")
    assert dataset.bound is not None
    assert (dataset.columns["age"].low, dataset.columns["age"].high) == (0, 100)
    assert dataset.columns[HOSTILE].values == ("first", "second")
    assert check(dataset).problems == []


def test_answers_that_were_given_make_a_whole_file(tmp_path: Path) -> None:
    text = draft(visits(tmp_path, 1), name="Hospital visits!", unit=user("patient_id"), budget=Budget(3, 1e-6))
    dataset = parsed(text)
    assert (dataset.name, dataset.unit, dataset.budget) == ("Hospital_visits", user("patient_id"), Budget(3, 1e-6))
    assert dataset.data == (f"{tmp_path}/visits.parquet",)
    assert dataset.columns["age"].kind is Kind.INTEGER
    assert "l" not in dataset.columns
    assert check(dataset).problems == []


def test_the_types_of_a_csv_file_are_asked_for(tmp_path: Path) -> None:
    path = write_csv(tmp_path / "2020 visits.csv", ["id", "age"], [[1, 2]])
    text = draft(path, unit=user("id"), budget=Budget(1))
    assert text.count('kind = "text", or boolean, integer') == 1
    assert text.count('kind = "text"\n') == 2
    assert parsed(text).name == "data_2020_visits"
    typed = draft(path, types={"age": "integer"}, unit=user("id"), budget=Budget(1))
    assert parsed(typed).columns["age"].kind is Kind.INTEGER


def test_what_may_be_said_of_a_column_is_told_once(tmp_path: Path) -> None:
    path = write_csv(tmp_path / "wide.csv", [f"c{i}" for i in range(24)], [range(24)])
    comments = [line for line in draft(path).split("\n") if line.startswith("#")]
    assert len(comments) == len(set(comments))


def test_a_table_of_a_database_is_drafted(tmp_path: Path) -> None:
    connection = duckdb.connect(str(tmp_path / "h.duckdb"))
    connection.execute("CREATE TABLE visits AS SELECT 1 AS patient, 2.5 AS days")
    connection.close()
    dataset = parsed(
        draft(tmp_path / "h.duckdb", table="visits", unit=user("patient"), budget=Budget(1), home=tmp_path),
        file=tmp_path / "defocus.toml",
    )
    assert (dataset.name, dataset.table, dataset.data) == ("visits", "visits", ("h.duckdb",))
    assert check(dataset).problems == []


def test_data_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SourceError):
        draft(tmp_path / "nothing.parquet")


@pytest.mark.parametrize(
    ("names", "likely"),
    [
        (["age", "patient_id", "id"], ["patient_id", "id"]),
        (["PatientID", "ward"], ["PatientID"]),
        (["userId", "visit-number"], ["userId", "visit-number"]),
        (["age", "days"], []),
        (["idea", "video"], []),
    ],
)
def test_units_are_guessed_from_names_alone(names: list[str], likely: list[str]) -> None:
    assert likely_units(Schema(Column(name, Kind.INTEGER) for name in names)) == likely


def test_a_column_that_cannot_name_a_person_is_not_guessed() -> None:
    assert likely_units(Schema([Column("patient", Kind.OTHER), Column("user", Kind.NUMBER)])) == []


def test_a_hostile_name_does_not_leave_its_quotes() -> None:
    hostile = 'x"\n[budget]\nepsilon = 1000 #'
    least = 'name = "t"\ndata = "t.csv"\nunit.rows = true\nbudget.epsilon = 1\n'
    dataset = parsed(f'{least}{heading("columns", hostile)}\nkind = "text"\n')
    assert list(dataset.columns) == [hostile]
    assert dataset.budget.epsilon == 1
    assert parsed(write(dataset)) == dataset


def test_the_comments_teach_what_may_be_changed() -> None:
    text = write(
        parsed('name = "t"\ndata = "t.csv"\nunit.column = "p"\nbudget.rho = 0.5\nbound.rows = 5\npurposes = "x"')
    )
    for lesson in (
        "without looking at the rows",
        "whom to protect",
        "for ever",
        "how much one person may count",
        "must name",
    ):
        assert lesson in text


def test_keys_are_quoted_only_where_they_must_be() -> None:
    assert key("patient_id") == "patient_id"
    assert key("a b") == '"a b"'
    assert heading("columns", "a.b") == '[columns."a.b"]'


@pytest.mark.parametrize("bad", [None, object(), {}, b"x", 1j, "\ud800"])
def test_what_toml_cannot_hold_is_refused(bad: object) -> None:
    with pytest.raises(InvalidParameterError):
        value(bad)


def test_where_spark_computes_is_written_and_read_again() -> None:
    text = 'name = "v"\ndata = "s3a://bucket/day=*/"\nengine = "spark://host:7077"\nunit.rows = true\nbudget.rho = 1\n'
    dataset = parsed(text)
    assert dataset.engine == "spark://host:7077"
    assert dataset.paths() == ["s3a://bucket/day=*/"]
    assert parsed(write(dataset)) == dataset


@pytest.mark.parametrize("promise", ["", 'people = "in one part"\n'])
def test_what_divides_the_data_is_written_and_read_again(promise: str) -> None:
    text = f'name = "v"\ndata = "v.csv"\nunit.column = "p"\nbudget.rho = 1\n[parts]\ncolumn = "the day"\n{promise}'
    dataset = parsed(text)
    assert dataset.parts is not None
    assert (dataset.parts.people is None) == (not promise)
    assert parsed(write(dataset)) == dataset

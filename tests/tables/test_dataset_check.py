"""A dataset file beside a ledger that was made before."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.tables.opening import column, write_csv

import defocus as dp
from defocus.engines.sources import Source, source
from defocus.errors import DefocusError, EngineError
from defocus.tables.dataset_check import check, compared, open_dataset
from defocus.tables.dataset_file import Dataset, parsed, read

LEAST = 'name = "v"\ndata = "v.parquet"\nunit.column = "patient"\nbudget.epsilon = 1\n'


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("home")
    table = {"patient": [1, 2], "age": [30, -1], "ward": ["A", "?"], "days": [1.5, 2.5], "tags": [[1], [2]]}
    pq.write_table(pa.table(table), folder / "v.parquet")
    write_csv(folder / "t.csv", ["pid", "score"], [[1, 5], [2, "bad"]])
    return folder


def dataset(home: Path, more: str = "") -> Dataset:
    return parsed(LEAST + more, file=home / "defocus.toml")


def test_a_file_that_fits_has_no_problems(home: Path) -> None:
    fits = dataset(home, 'columns.age.low = 0\ncolumns.age.high = 120\ncolumns.ward.values = ["A"]\n')
    assert check(fits).problems == []


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ('columns.agee.kind = "integer"', "There is no column 'agee'. did you mean 'age'"),
        ("columns.ward.low = 0\ncolumns.ward.high = 1", "has bounds but is of kind text"),
        ("columns.days.low = 2020-01-01\ncolumns.days.high = 2021-01-01", "has bounds but is of kind number"),
        ("columns.days.values = [1]", "has a domain but is of kind number"),
        ("columns.ward.values = [1]", "values of another kind"),
        ('columns.age.missing = ["x"]', "values of another kind"),
        ('columns.tags.kind = "text"', "no question can be about"),
        ('private.t.data = "t.csv"\nprivate.t.unit = "id"', "[private.t] The unit: There is no column 'id'"),
        ('public.t.data = "nothing.csv"', "[public.t] There is no file"),
        ('public.t.data = "t.csv"\npublic.t.columns.scor.kind = "integer"', "did you mean 'score'"),
    ],
)
def test_what_does_not_fit_is_said_and_opening_it_is_refused_or_harmless(home: Path, more: str, why: str) -> None:
    problems = check(dataset(home, more)).problems
    assert len(problems) == 1
    assert why in problems[0]


def test_all_problems_are_told_at_once(home: Path) -> None:
    assert (
        len(
            check(
                dataset(home, 'columns.x.kind = "text"\ncolumns.y.kind = "text"\ncolumns.tags.kind = "text"')
            ).problems
        )
        == 3
    )


@pytest.mark.parametrize(
    ("unit", "why"), [("patiend", "did you mean 'patient'"), ("days", "cannot name a person"), ("tags", "kind other")]
)
def test_the_unit_must_be_a_column_that_can_name_a_person(home: Path, unit: str, why: str) -> None:
    (problem,) = check(parsed(LEAST.replace("patient", unit), file=home / "defocus.toml")).problems
    assert why in problem


def test_a_unit_that_would_make_one_person_of_two_is_a_problem(home: Path) -> None:
    (problem,) = check(dataset(home, 'columns.patient.kind = "boolean"')).problems
    assert problem.startswith("The unit: 'patient' holds integer and was declared boolean")
    private = 'private.t.data = "t.csv"\nprivate.t.unit = "pid"\nprivate.t.columns.pid.kind = '
    assert check(dataset(home, private + '"integer"')).problems == []
    (problem,) = check(dataset(home, private + '"date"')).problems
    assert problem.startswith("[private.t] The unit: 'pid' holds text and was declared date")


def test_a_dataset_is_opened_with_everything_that_is_declared(home: Path) -> None:
    opened = open_dataset(dataset(home, "columns.age.low = 0\ncolumns.age.high = 120\ncolumns.age.missing = -1\n"))
    assert (opened.schema["age"].low, opened.schema["age"].high) == (0, 120)
    assert column(opened, "age") == [30, None]


def test_other_tables_are_opened_with_their_own_facts(home: Path) -> None:
    whole = dataset(
        home, 'private.t.data = "t.csv"\nprivate.t.unit = "pid"\nprivate.t.columns.score.kind = "integer"\n'
    )
    assert check(whole).problems == []
    assert column(open_dataset(whole, whole.private["t"]), "score") == [5, None]


def test_a_file_that_does_not_fit_is_refused_when_it_is_opened(home: Path) -> None:
    for more in ('columns.agee.kind = "integer"', 'columns.ward.values = ["A"]\ncolumns.ward.missing = [1]'):
        with pytest.raises(DefocusError, match="To fix"):
            open_dataset(dataset(home, more))


def test_each_table_is_opened_once_and_closed(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[Source] = []

    def counted(*words: Any, **more: Any) -> Source:
        opened.append(source(*words, **more))
        return opened[-1]

    monkeypatch.setattr("defocus.tables.dataset_check.source", counted)
    found = check(dataset(home, 'parts.column = "ward"\nprivate.t.data = "t.csv"\nprivate.t.unit = "pid"\n'))
    assert found.problems == []
    assert [note for note in found.notes if note.startswith("the data is in parts by ward")] == found.notes != []
    assert [one.name for one in opened] == ["v", "t"]
    for one in opened:
        with pytest.raises(EngineError):
            one.engine.run(one.relation)


def test_data_that_cannot_be_divided_is_a_problem_and_nothing_is_noted(home: Path) -> None:
    found = check(dataset(home, 'parts.column = "days"\n'))
    assert found.notes == []
    (problem,) = found.problems
    assert problem.startswith("[parts] The column 'days' is of kind number")


FILE = """name = "visits"
data = "visits"
[unit]
rows = true
[budget]
epsilon = 1
[parts]
column = "day"
[columns.day]
kind = "date"
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A file about a folder with one day, and its ledger."""
    (tmp_path / "visits" / "day=2026-11-14").mkdir(parents=True)
    pq.write_table(pa.table({"x": [1, 2]}), tmp_path / "visits" / "day=2026-11-14" / "0.parquet")
    made = tmp_path / "defocus.toml"
    made.write_text(FILE, encoding="utf-8")
    assert compared(read(made)) == ([], [])
    assert not (tmp_path / "visits.ledger").exists()
    dp.open(made).close()
    return made


def changed(file: Path, old: str, new: str) -> tuple[list[str], list[str]]:
    assert old in FILE
    file.write_text(FILE.replace(old, new), encoding="utf-8")
    return compared(read(file))


def test_a_file_that_says_what_its_ledger_does_is_as_it_should_be(file: Path) -> None:
    assert compared(read(file)) == ([], [])


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("epsilon = 1", "epsilon = 2", "the ledger has Budget(epsilon=1), you gave Budget(epsilon=2)"),
        ('name = "visits"', 'name = "stays"\nledger = "visits.ledger"', "the ledger has visits, you gave stays"),
        ('"date"', '"text"', 'declare types={"day": "date"}'),
        ('[columns.day]\nkind = "date"\n', "", 'declare types={"day": "date"}'),
    ],
)
def test_what_contradicts_the_ledger_is_told(file: Path, old: str, new: str, told: str) -> None:
    (problem,), notes = changed(file, old, new)
    assert told in problem
    assert notes == []


def test_a_file_without_the_parts_of_its_ledger_is_told(file: Path) -> None:
    problems, (note,) = changed(file, '[parts]\ncolumn = "day"\n', "")
    assert problems == []
    assert "charged to everybody" in note


def test_a_ledger_that_cannot_be_reached_is_told(file: Path) -> None:
    problems, (note,) = changed(
        file, 'name = "visits"', 'name = "visits"\nledger = "postgresql://nobody@127.0.0.1:1/none"'
    )
    assert problems == []
    assert note.startswith("the ledger was not compared")


def test_a_ledger_that_is_none_contradicts_the_file(file: Path) -> None:
    (file.parent / "visits.ledger").write_bytes(b"no database, although it is long enough to be one" * 100)
    problems, notes = compared(read(file))
    assert len(problems) + len(notes) == 1

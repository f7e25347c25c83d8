from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.tables.opening import column, write_csv

from defocus.engines.sources import Source, source
from defocus.errors import DefocusError, EngineError
from defocus.tables.checking import check, open_dataset
from defocus.tables.datasets import Dataset, parsed

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

    monkeypatch.setattr("defocus.tables.checking.source", counted)
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

"""A table is opened without a look at its rows, for the same terms as its ledger; a mistake leaves nothing behind."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import defocus as dp
from defocus.engines.duckdb import DuckDbEngine
from defocus.errors import (
    DatasetFileError,
    DefocusError,
    InvalidParameterError,
    LedgerMismatchError,
    LedgerUnavailableError,
    NotDeclaredError,
    SourceError,
    UnknownColumnError,
    WrongKindError,
)
from defocus.ledger import Ledger
from defocus.tables.contribution import Bound

DATA = pa.table({"u": [1, 2], "x": [1.0, 2.0], "l": [[1], [2]]})
STAYS = pa.table({"p": [1, 1, 2, 3], "w": ["A", "B", "A", "A"], "x": [1.0, 2.0, 3.0, 4.0]})
FILE = 'name = "visits"\ndata = "visits.parquet"\nbudget.epsilon = 1\n'
PEOPLE = FILE + 'unit.column = "p"\n'


def opened(where: Path, data: Any = DATA, **more: Any) -> Any:
    terms: dict[str, Any] = {"unit": dp.user("u"), "budget": dp.Budget(1), "ledger": where / "t.ledger", "name": "t"}
    return dp.open(data, **terms | more)


def test_the_ledger_outlives_the_table(tmp_path: Path) -> None:
    with opened(tmp_path) as table:
        table.agg(n=dp.count()).release(epsilon=0.75)
    with opened(tmp_path) as again, pytest.raises(DefocusError):
        again.agg(n=dp.count()).release(epsilon=0.5)


def test_another_unit_or_budget_does_not_start_anew(tmp_path: Path) -> None:
    opened(tmp_path).close()
    for other in ({"unit": dp.rows()}, {"budget": dp.Budget(2)}, {"unit": dp.user("u", replace=True)}):
        with pytest.raises(DefocusError):
            opened(tmp_path, **other)


def test_a_ledger_that_is_open_says_the_rest(tmp_path: Path) -> None:
    with Ledger.open(tmp_path / "a.ledger", budget=dp.Budget(1), unit=dp.user("u"), dataset="t") as ledger:
        assert dp.open(DATA, ledger=ledger).rows.unit == "u"
        with pytest.raises(DefocusError):
            dp.open(DATA, ledger=ledger, unit=dp.rows())


def test_the_person_is_named_by_a_column_that_can(tmp_path: Path) -> None:
    for column, error in (("x", WrongKindError), ("l", WrongKindError), ("nothing", UnknownColumnError)):
        with pytest.raises(error):
            opened(tmp_path, unit=dp.user(column), ledger=tmp_path / f"{column}.ledger")
    with pytest.raises(InvalidParameterError, match="rows or people"):
        opened(tmp_path, unit=dp.edge(), ledger=tmp_path / "edge.ledger")


def test_a_frame_has_no_place_for_its_ledger() -> None:
    with pytest.raises(NotDeclaredError, match="no place of its own"):
        dp.open(DATA, unit=dp.user("u"), budget=dp.Budget(1))


def test_declared_bounds_are_checked_before_anything_is_asked(tmp_path: Path) -> None:
    for i, wrong in enumerate([(1, 1), (2, 1), (0, float("inf")), (2**53, 2**53 + 1), (-1e308, 1e308), "0-1", (0,)]):
        with pytest.raises(DefocusError):
            opened(tmp_path, columns={"x": wrong}, ledger=tmp_path / f"{i}.ledger")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A folder with a table and another one about the same people."""
    pq.write_table(STAYS, tmp_path / "visits.parquet")
    pq.write_table(pa.table({"p": [1, 2], "age": [30, 40]}), tmp_path / "people.parquet")
    return tmp_path


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Callable[..., Ledger]]:
    """Ledgers for people, or with other terms, which are closed at the end."""
    made: list[Ledger] = []

    def make(**terms: Any) -> Ledger:
        known = {"unit": dp.user("p"), "budget": dp.Budget(1), "dataset": "visits"}
        made.append(Ledger.open(tmp_path / f"{len(made)}.ledger", **{**known, **terms}))
        return made[-1]

    yield make
    for one in made:
        one.close()


def written(home: Path, text: str) -> Path:
    (home / "defocus.toml").write_text(text, encoding="utf-8")
    return home / "defocus.toml"


@pytest.mark.parametrize(
    ("terms", "differs"),
    [
        ({"unit": dp.rows()}, "unit: the ledger has one row"),
        ({"unit": dp.user("w")}, "unit: the ledger has everything about one w"),
        ({"unit": dp.user("p", replace=True)}, "unit: .* replaced"),
        ({"budget": dp.Budget(2)}, "budget"),
    ],
)
def test_an_open_ledger_must_agree_with_what_is_said(
    home: Path, ledger: Callable[..., Ledger], terms: dict[str, Any], differs: str
) -> None:
    book = ledger(**terms)
    with pytest.raises(LedgerMismatchError, match=differs):
        dp.open(written(home, PEOPLE), ledger=book)
    with pytest.raises(LedgerMismatchError, match=differs):
        dp.open(home / "visits.parquet", unit=dp.user("p"), budget=dp.Budget(1), ledger=book)
    with pytest.raises(LedgerMismatchError, match=differs):
        dp.open(STAYS, unit=dp.user("p"), budget=dp.Budget(1), name="visits", ledger=book)
    assert len(book) == 1  # and it stays open


def test_an_open_ledger_that_agrees_is_used(home: Path, ledger: Callable[..., Ledger]) -> None:
    book = ledger()
    for table in (
        dp.open(written(home, PEOPLE), ledger=book),
        dp.open(home / "visits.parquet", ledger=book),
        dp.open(STAYS, ledger=book),
        dp.open(STAYS, ledger=book, unit=dp.user("p"), budget=dp.Budget(1), name="visits"),
    ):
        assert table.ledger.terms == book.terms
        assert table.name == "visits"
        assert table.rows.unit == "p"


def test_a_ledger_that_is_there_says_the_unit(home: Path) -> None:
    first = dp.open(home / "visits.parquet", unit=dp.user("p"), budget=dp.Budget(1))
    assert first.ledger.where == str(home / "visits.ledger")
    first.close()
    with dp.open(home / "visits.parquet") as again:
        assert again.rows.unit == "p"
    with pytest.raises(LedgerUnavailableError, match="There is no ledger"):
        dp.open(home / "people.parquet")
    with dp.open(home / "people.parquet", ledger=home / "visits.ledger") as other:  # other data about the same people
        assert (other.ledger.dataset, other.ledger.person) == ("people", dp.user("p"))


def test_other_data_under_the_name_of_a_data_set_is_refused(home: Path) -> None:
    dp.open(home / "visits.parquet", unit=dp.user("p"), budget=dp.Budget(1)).close()
    with pytest.raises(LedgerMismatchError, match="other data under the name 'visits'") as refused:
        dp.open(home / "people.parquet", ledger=home / "visits.ledger", name="visits")
    assert "renew=True" in refused.value.fix
    with Ledger.open(home / "visits.ledger") as ledger:
        ledger.declare("visits", renew=True, why="a new extract of the same people")
    dp.open(home / "people.parquet", ledger=home / "visits.ledger", name="visits").close()
    with pytest.raises(LedgerMismatchError, match="other data"):
        dp.open(home / "visits.parquet")


def test_a_ledger_that_is_opened_without_its_purposes_still_has_them(home: Path) -> None:
    said: dict[str, Any] = {"unit": dp.user("p"), "budget": dp.Budget(1)}
    dp.open(home / "visits.parquet", purposes=["care"], **said).close()
    with dp.open(home / "visits.parquet") as table, pytest.raises(InvalidParameterError, match="named purposes only"):
        table.agg(n=dp.count()).release(epsilon=0.5, purpose="marketing")
    with pytest.raises(LedgerMismatchError, match="it may be used for care"):
        dp.open(home / "visits.parquet", purposes=["care", "marketing"], **said)


@pytest.mark.parametrize(
    "wrong",
    [
        {"unit": dp.user("q")},
        {"unit": dp.user("x")},
        {"unit": dp.edge()},
        {"unit": "p"},
        {"budget": 1},
        {"columns": {"y": (0, 1)}},
        {"columns": {"w": [1, 2]}},
        {"types": {"w": "integr"}},
        {"table": "t"},
        {"bound": 5},
        {"unit": dp.rows(), "bound": Bound(rows=5)},
        {"private": {"o": 5}},
        {"private": {"o": pa.table({"q": [1]})}},
        {"unit": dp.rows(), "private": {"o": pa.table({"p": [1]})}},
        {"purposes": []},
        {"purposes": 5},
        {"purposes": ["a\nb"]},
        {"purposes": [""]},
    ],
)
def test_a_mistake_leaves_no_ledger_and_no_engine_behind(
    home: Path, monkeypatch: pytest.MonkeyPatch, wrong: dict[str, Any]
) -> None:
    opened_engines: set[int] = set()
    start, close = DuckDbEngine.__init__, DuckDbEngine.close

    def starting(self: DuckDbEngine, *given: Any, **named: Any) -> None:
        start(self, *given, **named)
        opened_engines.add(id(self))

    def closing(self: DuckDbEngine) -> None:
        opened_engines.discard(id(self))
        close(self)

    monkeypatch.setattr(DuckDbEngine, "__init__", starting)
    monkeypatch.setattr(DuckDbEngine, "close", closing)
    given = {"unit": dp.user("p"), "budget": dp.Budget(1), **wrong}
    with pytest.raises((InvalidParameterError, SourceError)) as caught:
        dp.open(home / "visits.parquet", **given)
    assert caught.value.fix
    assert not list(home.glob("*.ledger*"))
    assert not opened_engines
    with dp.open(home / "visits.parquet", unit=dp.user("p"), budget=dp.Budget(1)) as mended:
        assert len(mended.ledger) == 1
    assert not opened_engines


@pytest.mark.parametrize(
    ("text", "error"),
    [
        (FILE + 'unit.column = "q"\n', UnknownColumnError),
        (FILE + 'unit.column = "x"\n', WrongKindError),
        (PEOPLE + "columns.y.low = 0\ncolumns.y.high = 1\n", UnknownColumnError),
        (PEOPLE + 'public.o.data = "nowhere.parquet"\n', SourceError),
        (PEOPLE + 'private.o.data = "people.parquet"\nprivate.o.unit = "q"\n', UnknownColumnError),
        (FILE + "unit.rows = true\nbound.rows = 5\n", DatasetFileError),
        (FILE + 'unit.rows = true\nprivate.o.data = "people.parquet"\nprivate.o.unit = "p"\n', DatasetFileError),
    ],
)
def test_a_mistake_in_a_file_leaves_no_ledger_behind(home: Path, text: str, error: type[DefocusError]) -> None:
    with pytest.raises(error):
        dp.open(written(home, text))
    assert not list(home.glob("*.ledger*"))


@pytest.mark.parametrize(
    "given",
    [
        {"unit": dp.user("p")},
        {"budget": dp.Budget(1)},
        {"name": "visits"},
        {"bound": Bound(rows=1)},
        {"purposes": ["research"]},
        {"anchor_file": "anchor"},
        {"public": {}},
    ],
)
def test_nothing_that_a_file_says_can_be_said_beside_it(home: Path, given: dict[str, Any]) -> None:
    with pytest.raises(InvalidParameterError, match=f"{next(iter(given))} cannot be given beside a dataset file"):
        dp.open(written(home, PEOPLE), **given)
    assert not list(home.glob("*.ledger*"))


def test_private_tables_of_a_file_are_about_the_same_people(home: Path) -> None:
    text = PEOPLE + 'purposes = "report"\n[bound]\ngroups = 3\n[private.people]\ndata = "people.parquet"\nunit = "p"\n'
    with dp.open(written(home, text)) as table:
        assert table.ledger.purposes == ("report",)
        assert table.contribution == Bound(find=True, groups=3)
        other = table.other("people")
        assert (other.rows.unit, other.contribution) == ("p", None)
        assert other.rows.engine is table.rows.engine
        assert "age" in table.join("people", on="p").schema


def test_one_purpose_may_be_given_as_text(home: Path) -> None:
    with dp.open(home / "visits.parquet", unit=dp.user("p"), budget=dp.Budget(1), purposes="research") as table:
        assert table.ledger.purposes == ("research",)
        with pytest.raises(InvalidParameterError, match="research"):
            table.agg(n=dp.count()).release(epsilon=1, purpose="r")
        assert len(table.ledger) == 1


def test_what_is_missing_for_a_new_ledger_is_named(tmp_path: Path) -> None:
    frame, place = pa.table({"x": [1]}), tmp_path / "x.ledger"
    with pytest.raises(LedgerUnavailableError, match="give budget= as well"):
        dp.open(frame, unit=dp.rows(), ledger=place, name="x")
    with pytest.raises(LedgerUnavailableError, match="give unit= as well"):
        dp.open(frame, budget=dp.Budget(1), ledger=place, name="x")
    with pytest.raises(LedgerUnavailableError, match="give unit= and budget= as well"):
        dp.open(frame, ledger=place)
    assert not place.exists()


def test_a_closed_table_says_to_open_it_again(tmp_path: Path) -> None:
    table = dp.open(pa.table({"x": [1]}), unit=dp.rows(), budget=dp.Budget(1), ledger=tmp_path / "x.ledger", name="x")
    table.close()
    with pytest.raises(LedgerUnavailableError, match="open the table"):
        table.agg(n=dp.count()).release(epsilon=0.5)


def test_a_hint_about_the_name_is_given_only_where_the_name_differs(tmp_path: Path) -> None:
    frame, place = pa.table({"x": [1]}), tmp_path / "x.ledger"
    dp.open(frame, unit=dp.rows(), budget=dp.Budget(1), ledger=place, name="data").close()
    with pytest.raises(LedgerMismatchError, match="open it without repeating these") as refused:
        dp.open(frame, unit=dp.rows(), budget=dp.Budget(2), ledger=place)
    assert "nobody named" not in refused.value.fix


def test_a_person_who_is_called_otherwise_is_asked_for(ledger: Callable[..., Ledger]) -> None:
    book = ledger(unit=dp.user("patient"), dataset="hospital")
    with pytest.raises(UnknownColumnError) as refused:
        dp.open(STAYS, ledger=book, name="stays")
    assert "unit=dp.user(" in refused.value.fix
    assert len(book) == 1

"""Parts of a table: who is charged for them, and that nobody outside of them is in what is computed."""

import itertools
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import date, datetime
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import defocus as dp
from defocus.errors import (
    BudgetExceededError,
    InvalidParameterError,
    LedgerMismatchError,
    SourceError,
    UnknownColumnError,
    WrongKindError,
)
from defocus.ledger import Parts
from defocus.privacy.units import Unit
from defocus.tables import Table
from defocus.tables.parts import Declared

DAY = date(2026, 11, 14)
VISITS = pa.table(
    {
        "patient": [1, 1, 2, 3, 4, None],
        "ward": ["a", "a", "b", "b ", "A", "a"],
        "day": [DAY, DAY, date(2026, 11, 15), date(2026, 11, 15), None, DAY],
        "number": [1, 1, 2, 10, None, 1],
        "urgent": [True, False, True, True, None, True],
        "cost": [1.0, 2.0, 3.0, 4.0, 5.0, 6.0],
        "moment": [datetime(2026, 11, 14, 12)] * 6,  # noqa: DTZ001  # moments have no zone here
    }
)
LABS = pa.table({"patient": [1, 2, 2, 3, 4], "result": [1.0, 2.0, 3.0, 4.0, 5.0], "place": list("xyxyx")})
Opening = Callable[..., Table]


@pytest.fixture
def opening(tmp_path: Path) -> Iterator[Opening]:
    opened: list[Table] = []
    numbers = itertools.count()

    def opener(data: Any = VISITS, **said: Any) -> Table:
        usual: dict[str, Any] = {"unit": dp.rows(), "budget": dp.Budget(1), "name": "visits"}
        usual["ledger"] = tmp_path / f"{next(numbers)}.ledger"
        opened.append(dp.open(data, **usual | said))
        return opened[-1]

    yield opener
    for table in opened:
        table.close()


def number(table: Table) -> int:
    """How many rows there are, without noise."""
    select = table.rows.select([pa_count()])
    return int(table.rows.engine.run(select).column(0)[0].as_py())


def pa_count() -> Any:
    from sqlglot import exp  # noqa: PLC0415  # only here

    return exp.alias_(exp.Count(this=exp.Star()), "n", quoted=True)


KINDS: list[tuple[str, list[Any], list[int]]] = [
    ("day", [DAY, date(2026, 11, 15)], [3, 2]),
    ("day", ["2026-11-14"], [3]),
    ("ward", ["a", "b", "b ", "A"], [3, 1, 1, 1]),
    ("number", [1, 2, 10], [3, 1, 1]),
    ("number", ["1", "10"], [3, 1]),
    ("urgent", [True, False], [4, 1]),
    ("urgent", ["true"], [4]),
]


@pytest.mark.parametrize(("column", "values", "numbers"), KINDS)
def test_a_part_is_the_rows_with_that_value(
    opening: Opening, column: str, values: list[Any], numbers: list[int]
) -> None:
    table = opening(parts=column)
    assert [number(table.part(value)) for value in values] == numbers
    assert number(table.part(*values)) == sum(numbers)


def test_the_largest_whole_numbers_name_parts(opening: Opening) -> None:
    edges = [-(2**63), 2**63 - 1, 0, -1]
    table = opening(pa.table({"number": edges}), parts="number")
    assert [number(table.part(edge)) for edge in edges] == [1, 1, 1, 1]
    assert number(table.part(*edges)) == 4


@pytest.mark.slow
def test_each_row_is_in_the_part_of_one_label_at_most(opening: Opening) -> None:
    """Labels that select a common row would each pay only for themselves."""
    candidates: list[Any] = [
        *(1, 2, 10, 0, -1, "1", "01", "1.0", "+1", " 1", "1 ", "-0", "1e0", "0x1", 1.0, 1.5, True, False, "True"),
        *("true", "false", "a", "A", "a ", " a", "b", "b ", "B", "a\u0300", "à", "\uff41", "", "NULL", None),
        *(DAY, "2026-11-14", "20261114", "2026-W46-6", "2026-11-14 00:00:00", " 2026-11-14", "14.11.2026"),
        *(datetime(2026, 11, 14), "a\0", "a\n", b"a", float("nan"), float("inf"), 10**30, "x" * 400),  # noqa: DTZ001
    ]
    for column in ("day", "ward", "number", "urgent"):
        table = opening(parts=column)
        labels: dict[str, set[int]] = {}
        for value in candidates:
            try:
                part = table.part(value)
            except InvalidParameterError:
                continue
            (label,) = part.rows.charged
            assert labels.setdefault(label, {number(part)}) == {number(part)}
        assert labels
        everywhere = Counter[int]({0: sum(next(iter(found)) for found in labels.values())})
        assert everywhere[0] <= VISITS.num_rows
        for one, two in itertools.combinations(labels, 2):
            together = number(table.part(one, two))
            assert together == next(iter(labels[one])) + next(iter(labels[two]))


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("number", 1.0),
        ("number", True),
        ("number", "01"),
        ("number", "1.0"),
        ("number", 2**63),
        ("number", None),
        ("urgent", 1),
        ("urgent", "True"),
        ("day", datetime(2026, 11, 14)),  # noqa: DTZ001  # moments have no zone here
        ("day", "20261114"),
        ("day", "2026-02-30"),
        ("ward", 1),
        ("ward", b"a"),
        ("ward", "a\0"),
        ("ward", None),
    ],
)
def test_a_value_of_another_kind_names_no_part(opening: Opening, column: str, value: Any) -> None:
    with pytest.raises(InvalidParameterError, match="names no part"):
        opening(parts=column).part(value)


@pytest.mark.parametrize("value", ["", "  ", "a\n", "x" * 301, "\u202e"])
def test_a_part_whose_label_no_ledger_can_show_is_refused(opening: Opening, value: str) -> None:
    with pytest.raises(InvalidParameterError, match="the label of a part"):
        opening(parts="ward").part(value)


@pytest.mark.parametrize("column", ["cost", "moment"])
def test_numbers_with_a_fraction_and_moments_divide_nothing(opening: Opening, column: str) -> None:
    with pytest.raises(WrongKindError, match="can be written in several ways"):
        opening(parts=column)


def test_parts_need_a_column_that_is_there(opening: Opening) -> None:
    with pytest.raises(UnknownColumnError):
        opening(parts="date")
    for wrong in ("", 3, None):
        with pytest.raises(InvalidParameterError, match="name of a column"):
            dp.parts(wrong)


def test_parts_are_named_once_and_at_least_one(opening: Opening) -> None:
    table = opening(parts="ward")
    with pytest.raises(InvalidParameterError, match="No part was named"):
        table.part()
    with pytest.raises(InvalidParameterError, match="already"):
        table.part("a").part("b")
    with pytest.raises(InvalidParameterError, match="Nothing divides these rows"):
        opening().part("a")
    assert table.part("a", "a", "b").rows.charged == ("a", "b")


def test_rows_and_events_are_charged_by_part(opening: Opening) -> None:
    for unit in (dp.rows(), dp.item()):
        table = opening(parts="day", unit=unit)
        assert table.ledger.terms.parts == Parts("day", "date", "rows")
        for day in ("2026-11-14", "2026-11-15", "2026-11-16"):
            receipt = table.part(day).agg(n=dp.count()).release(epsilon=0.75).receipt
            assert receipt.parts == (day,)
        with pytest.raises(BudgetExceededError, match="from the part 2026-11-15"):
            table.part("2026-11-15").agg(n=dp.count()).release(epsilon=0.5)
        with pytest.raises(BudgetExceededError):
            table.agg(n=dp.count()).release(epsilon=0.5)
        assert table.agg(n=dp.count()).release(epsilon=0.25).receipt.parts == ()
        assert table.ledger.verify().ok


SEQUENTIAL: list[Unit] = [dp.user("patient"), dp.user("patient", replace=True), dp.rows(replace=True)]


@pytest.mark.parametrize("unit", SEQUENTIAL, ids=str)
def test_people_who_may_be_in_many_parts_and_replaced_rows_are_charged_in_all(opening: Opening, unit: Unit) -> None:
    table = opening(parts="day", unit=unit)
    assert table.ledger.terms.parts is None
    part = table.part("2026-11-14")
    assert part.rows.charged == ()
    assert part.agg(n=dp.count()).release(epsilon=0.75).receipt.parts == ()
    with pytest.raises(BudgetExceededError):
        table.part("2026-11-15").agg(n=dp.count()).release(epsilon=0.5)
    said = table.part("2026-11-15").agg(n=dp.count()).preview(epsilon=0.25).explain()
    assert "parts by day are charged to everybody, since one" in said
    assert ("patient may be in several" in said) == (unit.column is not None)


def test_people_in_one_part_only_are_charged_by_part_and_the_promise_is_written_down(opening: Opening) -> None:
    table = opening(parts=dp.parts("ward", people="in one part"), unit=dp.user("patient"))
    assert table.ledger.terms.to_dict()["parts"] == {"column": "ward", "kind": "text", "apart": "people"}
    for ward in ("a", "b", "c"):
        assert table.part(ward).agg(n=dp.count()).release(epsilon=1).receipt.parts == (ward,)
    asked = table.part("d").agg(n=dp.count())
    promise = "only each patient of ward d is charged, and no other: the owner declares that each is in one part only"
    assert promise in asked.preview(epsilon=1).explain().replace("\n", " ")
    assert asked.preview(epsilon=1).fits
    assert not table.agg(n=dp.count()).preview(epsilon=0.01).fits
    assert promise in asked.release(epsilon=1).explain().replace("\n", " ")
    assert "the owner of the data declares that each person is in one part only" in str(table)


@pytest.mark.parametrize("unit", [dp.rows(), dp.user("patient", replace=True), dp.item()], ids=str)
def test_a_promise_about_people_is_refused_where_it_changes_nothing(opening: Opening, unit: Unit) -> None:
    with pytest.raises(InvalidParameterError, match="changes nothing where the unit is"):
        opening(parts=dp.parts("ward", people="in one part"), unit=unit)
    with pytest.raises(InvalidParameterError, match="says nothing about parts"):
        dp.parts("ward", people="mostly")


def test_a_ledger_holds_the_column_its_kind_and_the_promise(opening: Opening, tmp_path: Path) -> None:
    place = tmp_path / "one.ledger"
    opening(parts="day", ledger=place)
    opening(ledger=place).agg(n=dp.count()).release(epsilon=0.1)  # who says nothing charges everybody
    with pytest.raises(LedgerMismatchError, match="divide the data as when the ledger was made, into parts by day"):
        opening(parts="ward", ledger=place)
    texts = VISITS.set_column(2, "day", VISITS.column("day").cast(pa.string()))
    with pytest.raises(
        LedgerMismatchError, match=r'\(date\)[^:]*, you gave [^:]*To fix: declare types=\{"day": "date"\}'
    ):
        opening(texts, parts="day", ledger=place)
    opening(texts, parts="day", types={"day": "date"}, ledger=place)


def test_a_ledger_without_parts_is_not_divided_later(opening: Opening, tmp_path: Path) -> None:
    place = tmp_path / "one.ledger"
    opening(ledger=place).agg(n=dp.count()).release(epsilon=0.1)
    with pytest.raises(LedgerMismatchError, match=r"the ledger has none(.|\n)*leave parts out"):
        opening(parts="day", ledger=place)
    with dp.Ledger.open(place) as book, pytest.raises(LedgerMismatchError, match="the ledger has none"):
        opening(parts="day", ledger=book)


def test_a_filter_on_the_column_is_charged_to_everybody(opening: Opening) -> None:
    table = opening(parts="ward")
    assert table.where("ward = 'a'").agg(n=dp.count()).release(epsilon=0.1).receipt.parts == ()
    assert table.sql("SELECT COUNT(*) AS n FROM visits WHERE ward = 'a'", epsilon=0.1).receipt.parts == ()
    assert table.part("a").sql("SELECT COUNT(*) AS n FROM visits", epsilon=0.1).receipt.parts == ("a",)
    public = pa.table({"number": [1, 2], "size": [10, 20]})
    steps = table.where("cost > 1").derive(twice="cost * 2").join(public, on="number").part("a").where("size = 10")
    assert steps.agg(n=dp.count()).release(epsilon=0.1).receipt.parts == ("a",)
    assert number(steps) == 2


def test_nothing_can_take_the_place_of_the_column_that_divides(opening: Opening) -> None:
    table = opening(parts="ward")
    with pytest.raises(InvalidParameterError, match="cannot be called 'ward'"):
        table.derive(ward="'a'")
    with pytest.raises(SourceError, match="two columns"):
        table.join(pa.table({"number": [1, 2], "ward": ["a", "a"]}), on="number")


def test_cubes_are_charged_by_part(opening: Opening) -> None:
    table = opening(parts="day", columns={"ward": ["a", "b"]})
    cube = table.part("2026-11-14").cube("ward")
    assert "only each row of day 2026-11-14 is charged" in cube.preview(epsilon=0.5).explain()
    assert cube.release(epsilon=0.5).receipt.parts == ("2026-11-14",)


def joined(opening: Opening, how: str = "left") -> tuple[Table, Table]:
    table = opening(parts=dp.parts("ward", people="in one part"), unit=dp.user("patient"), private={"labs": LABS})
    return table, table.part("a").join("labs", on="patient", how=how)


@pytest.mark.parametrize("how", ["left", "inner"])
def test_a_private_join_brings_nobody_into_a_part_who_has_no_row_in_it(opening: Opening, how: str) -> None:
    """By taking each person out of all tables: only the part of their own rows may change."""
    _, base = joined(opening, how)
    there = number(base)
    for patient in (1, 2, 3, 4):
        less = [
            t.filter(pa.compute.field("patient").is_null() | (pa.compute.field("patient") != patient))
            for t in (VISITS, LABS)
        ]
        table = opening(
            less[0], parts=dp.parts("ward", people="in one part"), unit=dp.user("patient"), private={"labs": less[1]}
        )
        changed = number(table.part("a").join("labs", on="patient", how=how)) != there
        assert changed == (patient == 1)
    assert base.rows.charged == ("a",)


def test_another_private_table_is_divided_by_nothing(opening: Opening) -> None:
    table, _ = joined(opening)
    labs = table.other("labs")
    with pytest.raises(InvalidParameterError, match="Nothing divides these rows"):
        labs.part("a")
    with pytest.raises(InvalidParameterError, match="Nothing divides these rows"):
        labs.join(table, on="patient").part("a")
    assert labs.join(table.part("a"), on="patient").rows.charged == ()
    assert table.part("a").other("labs").rows.charged == ()
    of_labs = table.part("a").sql_query("SELECT COUNT(*) AS n FROM labs")
    assert of_labs.release(epsilon=0.25).receipt.parts == ()
    other_way = "SELECT COUNT(*) AS n FROM labs JOIN visits ON labs.patient = visits.patient"
    assert table.part("a").sql(other_way, epsilon=0.25).receipt.parts == ()
    this_way = "SELECT COUNT(*) AS n FROM visits JOIN labs ON labs.patient = visits.patient"
    assert table.part("a").sql(this_way, epsilon=0.25).receipt.parts == ("a",)


def test_a_recorded_answer_of_one_part_is_not_given_for_another(opening: Opening) -> None:
    table = opening(parts="day")
    first = table.part("2026-11-14").agg(n=dp.count()).release(epsilon=0.5, request="r")
    again = table.part("2026-11-14").agg(n=dp.count()).release(epsilon=0.5, request="r")
    assert again.receipt == first.receipt
    with pytest.raises(InvalidParameterError, match="another question"):
        table.part("2026-11-15").agg(n=dp.count()).release(epsilon=0.5, request="r")


def test_texts_that_a_database_takes_for_equal_are_different_parts(opening: Opening) -> None:
    connection = duckdb.connect()
    connection.execute("CREATE TABLE visits (ward VARCHAR COLLATE NOCASE)")
    connection.execute("INSERT INTO visits VALUES ('a'), ('A'), ('á')")
    table = opening(connection, table="visits", parts="ward")
    assert [number(table.part(ward)) for ward in ("a", "A", "á")] == [1, 1, 1]
    connection.close()


@pytest.mark.parametrize("type_", ["text", "varchar(9)", "char(3)"])
def test_texts_that_a_server_takes_for_equal_are_different_parts(opening: Opening, server: str, type_: str) -> None:
    import psycopg  # noqa: PLC0415  # only here

    with psycopg.connect(server) as connection:
        connection.execute("DROP TABLE IF EXISTS part_texts")
        connection.execute(f"CREATE TABLE part_texts (ward {type_})")
        connection.execute("INSERT INTO part_texts VALUES ('a'), ('A'), ('b')")
    table = opening(server, table="part_texts", parts="ward")
    found = {label: number(table.part(label)) for label in ("a", "A", "a ", "a  ", "b", "B")}
    assert sum(found.values()) <= 3
    assert found["a"] + found["a "] + found["a  "] == 1


def test_a_dataset_file_can_divide_the_data(tmp_path: Path) -> None:
    duckdb.from_arrow(VISITS).write_parquet(str(tmp_path / "visits.parquet"))
    head = 'name = "visits"\ndata = "visits.parquet"\nbudget.epsilon = 1\n'
    file = tmp_path / "defocus.toml"
    file.write_text(f'{head}unit.column = "patient"\n[parts]\ncolumn = "ward"\npeople = "in one part"\n')
    with dp.open(file) as table:
        assert table.part("a").agg(n=dp.count()).release(epsilon=0.5).receipt.parts == ("a",)
        assert "parts by ward (text)" in str(table)
    with pytest.raises(InvalidParameterError, match="parts cannot be given beside a dataset file"):
        dp.open(file, parts="ward")


def folders(root: Path, *names: str) -> Path:
    for size, name in enumerate(names, 1):
        (root / name).mkdir(parents=True)
        pq.write_table(pa.table({"x": [1.0] * size}), root / name / "0.parquet")
    return root


def read_files(table: Table) -> int:
    return table.rows.relation.sql("duckdb").count(".parquet'")


NUMBERS = ("day=1", "day=2", "day=02", "day=x", "day=__HIVE_DEFAULT_PARTITION__")
FOLDERS: list[tuple[tuple[str, ...], str, Any, tuple[int, int]]] = [
    (("day=2026-11-13", "day=2026-11-14", "day=2026-11-15"), "date", "2026-11-14", (1, 2)),
    (NUMBERS, "integer", 2, (3, 5)),
    (NUMBERS, "text", "2", (1, 2)),
    (("day=a%20b", "day=a b ", "day=a"), "text", "a b", (1, 1)),
    (("day=1", "day=2"), "integer", 7, (1, 0)),
    (("day=true", "day=false", "day=1"), "boolean", True, (2, 4)),
]
"""Folders, the kind of their key, a part, and how many files are read for it and rows are in it."""


@pytest.mark.parametrize("case", FOLDERS, ids=str)
def test_a_part_of_folders_reads_its_own_files_and_those_that_may_hold_it(
    opening: Opening, tmp_path: Path, case: tuple[tuple[str, ...], str, Any, tuple[int, int]]
) -> None:
    names, kind, value, found = case
    table = opening(folders(tmp_path / "visits", *names), parts="day", types={"day": kind})
    part = table.part(value)
    assert read_files(table) == len(names)
    assert (read_files(part), number(part)) == found


def test_an_answer_about_a_day_is_recalled_when_more_days_have_come(opening: Opening, tmp_path: Path) -> None:
    root = folders(tmp_path / "visits", "day=2026-11-13", "day=2026-11-14")
    place = tmp_path / "one.ledger"
    table = opening(root, parts="day", ledger=place)
    first = table.part("2026-11-14").agg(n=dp.count()).release(epsilon=0.75, request="14")
    folders(root, "day=2026-11-15")
    again = opening(root, parts="day", ledger=place).part("2026-11-14").agg(n=dp.count())
    assert again.release(epsilon=0.75, request="14").receipt == first.receipt


def test_the_files_of_another_table_in_the_same_folders_are_all_read(opening: Opening, tmp_path: Path) -> None:
    root = folders(tmp_path / "visits", "ward=a", "ward=b")
    for name in ("a", "b"):
        pq.write_table(pa.table({"patient": [1, 2]}), root / f"ward={name}" / "0.parquet")
    one = dp.parts("ward", people="in one part")
    table = opening(root, parts=one, unit=dp.user("patient"), private={"again": root})
    renamed = table.other("again").derive(place="ward")
    assert read_files(table.part("a")) == 1
    assert read_files(renamed) == 2
    joined_ = table.part("a").sql_query(
        "SELECT COUNT(*) AS n FROM visits JOIN (SELECT patient FROM again) AS g ON g.patient = visits.patient"
    )
    assert joined_.preview(epsilon=0.5).fits


def test_a_day_made_of_moments_divides_nothing(tmp_path: Path) -> None:
    """Engines round moments in different ways, so that one row would be in two parts."""
    moments = pa.table({"seen": pa.array([0], pa.timestamp("ns")), "x": [0.5]})
    for column, kind in (("seen", "date"), ("x", "integer")):
        with pytest.raises(WrongKindError, match="in two parts"):
            dp.open(
                moments,
                unit=dp.rows(),
                budget=dp.Budget(1),
                ledger=tmp_path / "ledger",
                name="t",
                types={column: kind},
                parts=column,
            )


def test_a_part_whose_folder_was_not_there_is_told(opening: Opening, tmp_path: Path) -> None:
    """It is charged and answered as any other, since it is no less private; but names of folders are public."""
    root = folders(tmp_path / "visits", "day=2026-11-13", "day=2026-11-14", "day=__HIVE_DEFAULT_PARTITION__")
    table = opening(root, parts="day", types={"day": "date"})
    folders(root, "day=2026-11-15")
    late = table.part("2026-11-14", "2026-11-15").agg(n=dp.count())
    told = "no folder day=2026-11-15 was there when the table was opened"
    foreseen = late.preview(epsilon=0.5)
    assert any(rule.startswith(told) for rule in foreseen.rules)
    answer = late.release(epsilon=0.5)
    for text in (str(foreseen), foreseen.explain(), str(answer), answer.explain(), answer._repr_html_()):
        assert told in text
    assert told in str(table.part("2026-11-15").where("x > 0").agg(n=dp.count()).preview(epsilon=0.5))
    for present in (table, table.part("2026-11-14")):
        assert "no folder" not in present.agg(n=dp.count()).preview(epsilon=0.5).explain()


def test_a_folder_that_may_be_another_spelling_of_a_part_is_not_called_absent(opening: Opening, tmp_path: Path) -> None:
    root = folders(tmp_path / "visits", "day=01", "day=2")
    table = opening(root, parts="day", types={"day": "integer"})
    assert "no folder" not in table.part(1).agg(n=dp.count()).preview(epsilon=0.5).explain()


def test_what_an_interval_does_not_tell_is_said_of_parts_too(opening: Opening) -> None:
    table = opening(unit=dp.user("patient"), parts="ward").bound(rows=1)
    assert "not in the intervals: one patient counts" in str(table.part("a").agg(n=dp.count()).release(epsilon=0.5))


@pytest.mark.parametrize(
    ("column", "value", "form"), [("day", "14.11.2026", '"2026-11-14"'), ("number", "1.0", "7"), ("urgent", 1, "true")]
)
def test_the_form_of_a_label_is_shown(opening: Opening, column: str, value: Any, form: str) -> None:
    with pytest.raises(InvalidParameterError, match=f"write it as {form}"):
        opening(parts=column).part(value)


FRESH = "left for a part that was not charged yet:"


WARDS = pa.table({"patient": [1, 2, 3], "ward": ["a", "b", "b"]})


def lines(place: Path, unit: Unit, parts: str | Declared | None, *asked: str, restricted: bool = False) -> list[str]:
    """What a table says after a release of epsilon 0.75 about these parts, or about everybody."""
    opened = dp.open(WARDS, unit=unit, budget=dp.Budget(1), ledger=place, name="visits", parts=parts)
    with opened as table:
        about = table.part(*asked) if asked else table
        about.agg(n=dp.count()).release(epsilon=0.75 if asked else 0.125)
        return str(about if restricted else table).split("\n")[1:]


def test_everybody_and_a_part_that_was_not_charged_are_told_apart(tmp_path: Path) -> None:
    said = lines(tmp_path / "l", dp.rows(), "ward", "a")
    assert said == [
        "protects one row, added or removed; left for everybody: one release of epsilon 0.25",
        f"in parts by ward (text); each row is in one part; {FRESH} one release of epsilon 1",
    ]
    said = lines(tmp_path / "l", dp.rows(), "ward")
    assert said[0].endswith("left for everybody: one release of epsilon 0.125")
    assert said[1].endswith(f"{FRESH} one release of epsilon 0.875")


def test_rows_of_a_part_say_what_is_left_for_it(tmp_path: Path) -> None:
    said = lines(tmp_path / "l", dp.rows(), "ward", "a", restricted=True)
    assert said[0].endswith("left for these parts: one release of epsilon 0.25")


def test_parts_that_everybody_pays_for_have_nothing_of_their_own(tmp_path: Path) -> None:
    said = lines(tmp_path / "l", dp.user("patient"), "ward", "a")
    assert said == [
        "protects everything about one patient, added or removed; one release of epsilon 0.25",
        "in parts by ward (text), of which each is charged to everybody",
    ]


@pytest.mark.parametrize(
    ("unit", "parts", "remedy"),
    [
        (dp.rows(), "ward", 'declare parts="ward"'),
        (
            dp.user("patient"),
            dp.parts("ward", people="in one part"),
            'declare parts=dp.parts("ward", people="in one part")',
        ),
    ],
)
def test_a_ledger_with_parts_that_is_opened_without_them_says_so(
    tmp_path: Path, unit: Unit, parts: str | Declared, remedy: str
) -> None:
    lines(tmp_path / "l", unit, parts, "a")
    (_, told) = lines(tmp_path / "l", unit, None)
    assert told.startswith("the ledger has parts by ward (text)")
    assert "charged to everybody" in told
    assert told.endswith(remedy)

from dataclasses import replace
from datetime import date, datetime
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from defocus.engines.schema import Kind
from defocus.errors import DatasetFileError
from defocus.ledger.anchors import AnchorFile
from defocus.privacy.budgets import Budget
from defocus.privacy.units import rows, user
from defocus.tables.contribution import Bound
from defocus.tables.dataset_draft import heading, key, value, write
from defocus.tables.dataset_file import Dataset, Facts, OtherTable, parse, parsed, read

LEAST = 'name = "visits"\ndata = "visits.parquet"\nunit.column = "patient"\nbudget.epsilon = 1\n'
WHOLE = """
name = "visits"
data = ["a.parquet", "b.parquet"]
ledger = "books/visits.ledger"
anchor_file = "/mnt/anchor"
purposes = ["monthly report", "research"]
[unit]
column = "patient"
replace = true
[budget]
epsilon = "1/10"
delta = 1e-6
[bound]
groups = 3
per_group = 2
by = "sampling"
[columns.age]
kind = "integer"
low = 0
high = 120
missing = [-1, 999]
[columns.ward]
values = ["A", "B"]
missing = "?"
[columns."admitted on"]
kind = "date"
values = [2020-01-01, 2020-01-02]
[public.wards]
data = "wards.csv"
columns.beds.kind = "integer"
[private.tests]
data = "lab.duckdb"
table = "tests"
unit = "pid"
"""


def test_everything_a_file_can_say_is_read() -> None:
    assert parsed(WHOLE) == Dataset(
        name="visits",
        data=("a.parquet", "b.parquet"),
        ledger="books/visits.ledger",
        anchor_file="/mnt/anchor",
        purposes=("monthly report", "research"),
        unit=user("patient", replace=True),
        budget=Budget(Fraction(1, 10), 1e-6),
        bound=Bound(groups=3, per_group=2, by="sampling"),
        columns={
            "age": Facts(Kind.INTEGER, 0, 120, None, (-1, 999)),
            "ward": Facts(None, None, None, ("A", "B"), ("?",)),
            "admitted on": Facts(Kind.DATE, values=(date(2020, 1, 1), date(2020, 1, 2))),
        },
        public={"wards": OtherTable(("wards.csv",), columns={"beds": Facts(Kind.INTEGER)})},
        private={"tests": OtherTable(("lab.duckdb",), "tests", "pid")},
    )


@pytest.mark.parametrize(
    ("lines", "bound"),
    [
        ("groups = 3", Bound(find=True, groups=3)),
        ("per_group = 9", Bound(rows=9, per_group=9)),
        ('rows = "find"\ngroups = 2', Bound(find=True, groups=2)),
    ],
)
def test_a_file_fills_in_the_same_rows_as_the_method(lines: str, bound: Bound) -> None:
    assert parsed(f"{LEAST}[bound]\n{lines}").bound == bound


def test_paths_are_seen_from_the_file(tmp_path: Path) -> None:
    (tmp_path / "defocus.toml").write_text(WHOLE)
    dataset = read(tmp_path / "defocus.toml")
    assert dataset.paths() == [f"{tmp_path}/a.parquet", f"{tmp_path}/b.parquet"]
    assert dataset.ledger_place == f"{tmp_path}/books/visits.ledger"
    assert dataset.anchor_place == "/mnt/anchor"
    (tmp_path / "least.toml").write_bytes(LEAST.replace("\n", "\r\n").encode())
    least = read(str(tmp_path / "least.toml"))
    assert least.ledger_place == f"{tmp_path}/visits.ledger"
    assert least.anchor_place is None
    assert parsed(LEAST + 'ledger = "postgresql://host/x"').ledger_place == "postgresql://host/x"


@pytest.mark.parametrize(
    ("data", "ledger"),
    [
        ('"../data/v.csv"', "data/v.ledger"),
        ('["a.csv", "b.csv"]', "books/clinic.ledger"),
        ('"*.csv"', "books/clinic.ledger"),
        ('"postgresql://host/clinic"\ntable = "public.stays"', "books/stays.ledger"),
        ('"clinic.duckdb"\ntable = "stays"', "books/stays.ledger"),
    ],
)
def test_the_ledger_is_where_the_data_is_whatever_that_is_called(tmp_path: Path, data: str, ledger: str) -> None:
    (tmp_path / "books").mkdir()
    file = tmp_path / "books" / "clinic.toml"
    for name in ("visits", "stays", "nights"):
        text = f'name = "{name}"\ndata = {data}\n[unit]\nrows = true\n[budget]\nepsilon = 1\n'
        assert parsed(text, file=file).ledger_place == str(tmp_path / ledger)
        on_server = parsed(f'ledger = "postgresql://host/x"\n{text}', file=file).anchor_place
        assert isinstance(on_server, AnchorFile)
        assert on_server.first_use
        assert on_server.path == tmp_path / "books" / f"{Path(ledger).name}.anchor"


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ('name = "../../etc/x"', "The name must be"),
        ('name = "a b"', "The name must be"),
        ("name = 5", "text on one line"),
        ('name = ""', "text on one line"),
        ("data = 5", "one text or a list"),
        ("data = []", "one text or a list"),
        ('data = ["a", "a"]', "one text or a list"),
        ('unit.rows = true\nunit.column = "x"', "in one way"),
        ("unit.rows = false", "in one way"),
        ('unit.column = ""', "text on one line"),
        ("unit = 5", "must be a section"),
        ('unit.colum = "x"', "did you mean column"),
        ('unit.column = "x"\nunit.replace = 1', "true or false"),
        ("budget.epsilon = 0", "must be positive"),
        ("budget.epsilon = inf", "finite"),
        ("budget.epsilon = nan", "finite"),
        ("budget.epsilon = true", "finite"),
        ('budget.epsilon = "1; DROP TABLE"', "finite"),
        ("budget.epsilon = 1\nbudget.rho = 1", "one of"),
        ("budget.delta = 0.1", "one of"),
        ("budget = {}", "what may be lost"),
        ("budget.epsilon = 1\nbudget.delta = 1", "delta"),
        ("bound.rows = 0", "whole number"),
        ("bound.rows = 5.0", "whole number"),
        ('bound.rows = "all"', "whole number"),
        ("unit.rows = true\nbound.rows = 5", "protected alone"),
        ('unit.rows = true\nprivate.x.data = "t"\nprivate.x.unit = "p"', "protects each row alone"),
        ('bound.rows = 5\nbound.by = "luck"', "by weights or by sampling"),
        ("bound.row = 5", "did you mean rows"),
        ("columns.age = 5", "must be a section"),
        ('columns.age.kind = "int"', "There is no kind"),
        ('columns.age.kind = "other"', "There is no kind"),
        ("columns.age.low = 5", "belong together"),
        ("columns.age.low = 5\ncolumns.age.high = 5", "belong together"),
        ("columns.age.low = 5\ncolumns.age.high = inf", "finite"),
        ('columns.age.kind = "text"\ncolumns.age.low = 1\ncolumns.age.high = 2', "has no bounds"),
        ('columns.age.kind = "number"\ncolumns.age.low = 2020-01-01\ncolumns.age.high = 2021-01-01', "has no bounds"),
        ('columns.age.kind = "date"\ncolumns.age.low = 1\ncolumns.age.high = 2', "has no bounds"),
        ("columns.age.low = 2020-01-01\ncolumns.age.high = 5", "belong together"),
        ("columns.age.low = 2020-01-01\ncolumns.age.high = 2020-01-01", "belong together"),
        ("columns.age.low = 2020-01-01T00:00:00Z\ncolumns.age.high = 2021-01-01T00:00:00Z", "belong together"),
        ("columns.age.values = []", "must list values"),
        ("columns.age.values = [1, 1]", "names a value twice"),
        ('columns.age.values = [1, "a"]', "must list values"),
        ("columns.age.values = [1, true]", "must list values"),
        ("columns.age.values = [[1]]", "must list values"),
        ("columns.age.values = [10:00:00]", "must list values"),
        ("columns.age.values = [2020-01-01T00:00:00Z]", "must list values"),
        ("columns.age.values = [9223372036854775808]", "must list values"),
        ('columns.age.values = ["a\\u0000"]', "must list values"),
        ('columns.age.kind = "number"\ncolumns.age.values = [1.5]', "no domain"),
        ('columns.age.kind = "integer"\ncolumns.age.missing = ["x"]', "must list values"),
        ("columns.age.missing = [nan]", "must list values"),
        ("columns.age.lo = 5", "did you mean low"),
        ('public.x.table = "t"', "where the data is"),
        ('public."x y".data = "t"', "name of a table"),
        ('public.x.data = "t"\npublic.x.unit = "p"', "'unit' means nothing"),
        ('private.x.data = "t"', "which column names the person"),
        ("purposes = 5", "one text or a list"),
        ('purposes = ["a\\nb"]', "one text or a list"),
        ('ledger = ""', "text on one line"),
        ("tables = 5", "did you mean table"),
    ],
)
def test_what_is_not_understood_is_refused_with_its_place(line: str, why: str) -> None:
    keys = {one.partition("=")[0].split(".")[0].strip() for one in line.split("\n")}
    text = "\n".join(one for one in LEAST.split("\n") if one.split(".")[0].split(" ")[0] not in keys) + line
    with pytest.raises(DatasetFileError) as caught:
        parsed(text)
    assert why in str(caught.value)
    assert "(in [" in caught.value.what or "(at the top" in caught.value.what
    assert caught.value.fix


@pytest.mark.parametrize("missing", ["name", "data", "unit", "budget"])
def test_what_must_be_said_must_be_said(missing: str) -> None:
    text = "\n".join(line for line in LEAST.split("\n") if not line.startswith(missing))
    with pytest.raises(DatasetFileError, match="To fix: write"):
        parsed(text)


def test_a_file_that_is_not_there_or_no_text_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DatasetFileError, match="defocus init") as caught:
        read(tmp_path / "defocus.toml")
    assert caught.value.__context__ is None
    (tmp_path / "bad.toml").write_bytes(b"\xff\xfe")
    for path in (tmp_path / "bad.toml", tmp_path):
        with pytest.raises(DatasetFileError, match="cannot be read"):
            read(path)


names = st.text(min_size=1, max_size=12).filter(lambda text: not any(0xD800 <= ord(c) < 0xE000 for c in text))
words = names.filter(lambda text: bool(text.strip()) and not any(ord(c) < 32 or ord(c) == 127 for c in text))
plain = st.from_regex(r"[A-Za-z_][A-Za-z0-9_-]{0,20}", fullmatch=True)
texts = st.text(max_size=10).filter(lambda text: "\0" not in text and not any(0xD800 <= ord(c) < 0xE000 for c in text))
domains = st.one_of(
    st.tuples(st.none() | st.just(Kind.TEXT), st.lists(texts, min_size=1, max_size=3, unique=True)),
    st.tuples(st.none() | st.just(Kind.INTEGER), st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, unique=True)),
    st.tuples(st.just(Kind.DATE), st.lists(st.dates(), min_size=1, max_size=3, unique=True)),
    st.tuples(st.just(Kind.TIMESTAMP), st.lists(st.datetimes(), min_size=1, max_size=3, unique=True)),
    st.tuples(st.just(Kind.BOOLEAN), st.lists(st.booleans(), min_size=1, max_size=2, unique=True)),
)
numbers = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
bounds = st.tuples(numbers, numbers).filter(lambda pair: pair[0] < pair[1])
facts = st.one_of(
    st.builds(Facts, st.none() | st.sampled_from([Kind.TEXT, Kind.DATE])),
    st.builds(lambda kind, pair: Facts(kind, *pair), st.sampled_from([None, Kind.INTEGER, Kind.NUMBER]), bounds),
    st.builds(
        lambda kind, pair: Facts(kind, *sorted(pair)),
        st.sampled_from([None, Kind.DATE]),
        st.lists(st.dates(), min_size=2, max_size=2, unique=True),
    ),
    st.builds(
        lambda pair: Facts(Kind.TIMESTAMP, *sorted(pair)),
        st.lists(st.datetimes(), min_size=2, max_size=2, unique=True),
    ),
    st.builds(lambda pair: Facts(pair[0], values=tuple(pair[1]), missing=tuple(pair[1])), domains),
)
others = st.builds(OtherTable, st.lists(words, min_size=1, max_size=2, unique=True).map(tuple), st.none() | words)
datasets = st.builds(
    Dataset,
    name=plain,
    data=st.lists(words, min_size=1, max_size=3, unique=True).map(tuple),
    table=st.none() | words,
    unit=st.builds(user, words, replace=st.booleans()),
    budget=st.one_of(
        st.builds(Budget, st.fractions(Fraction(1, 100), 10), st.sampled_from([0, 1e-6, Fraction(1, 3)])),
        st.builds(lambda rho: Budget(rho=rho), st.floats(1e-300, 1e300)),
        st.builds(lambda mu: Budget(mu=mu), st.integers(1, 100)),
    ),
    ledger=st.none() | words,
    anchor_file=st.none() | words,
    bound=st.none()
    | st.builds(lambda n, by: Bound(rows=n, by=by), st.integers(1, 99), st.sampled_from(["weights", "sampling"])),
    purposes=st.lists(words, max_size=3, unique=True).map(tuple),
    columns=st.dictionaries(names, facts, max_size=3),
    public=st.dictionaries(plain, others, max_size=2),
    private=st.dictionaries(
        plain, st.builds(lambda one, unit: OtherTable(one.data, one.table, unit), others, words), max_size=1
    ),
)
by_rows = st.builds(
    lambda one, unit: replace(one, unit=unit, bound=None, private={}), datasets, st.builds(rows, replace=st.booleans())
)


@settings(max_examples=100)
@given(datasets | by_rows)
def test_writing_and_reading_are_inverse_whatever_the_strings(dataset: Dataset) -> None:
    assert parsed(write(dataset)) == dataset


def test_moments_are_written_without_a_zone() -> None:
    dataset = parsed(LEAST + "columns.t.values = [2020-01-01T10:00:00]")
    assert dataset.columns["t"].values == (datetime(2020, 1, 1, 10),)  # noqa: DTZ001 - moments have no zone
    assert parsed(write(dataset)) == dataset


short = st.text(min_size=1, max_size=10).filter(lambda text: not any(0xD800 <= ord(c) < 0xE000 for c in text))


@given(st.lists(short, min_size=1, max_size=3), short)
def test_a_refusal_names_the_line_whatever_the_names_are(path: list[str], name: str) -> None:
    text = f"# a comment\n{heading(*path)}\n\n{key(name)} = 5\n"
    section = parse(text)
    for part in path:
        section = section.section(part)
    with pytest.raises(DatasetFileError, match=r"line 4\)"):
        section.refuse(name, "no", "yes.")


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("= 1", "line 1"),
        ("a = 1\na = 2", "overwrite|line 2"),
        ("a = [", "line 1|end of document"),
        ("a = " + "[" * 3000, "nested too deeply|end of document"),
        ("a = 99999-99-99", "line 1|not TOML"),
        ('a = "\\ud800"', "not TOML"),
    ],
)
def test_what_is_no_toml_is_refused_with_the_line(text: str, line: str) -> None:
    with pytest.raises(DatasetFileError, match=line):
        parse(text)


def test_a_giant_file_is_refused() -> None:
    with pytest.raises(DatasetFileError, match="10 MB"):
        parse("#" * 10_000_001)


def test_unknown_keys_are_named_with_what_was_meant() -> None:
    with pytest.raises(DatasetFileError, match=r"'epsilom' means nothing \(at the top, line 2\)") as caught:
        parse("# x\nepsilom = 1").only("epsilon", "delta")
    assert caught.value.fix == "did you mean epsilon? It can be epsilon, delta."


@pytest.mark.parametrize("bad", [5, "", " ", "a\nb", "\x7f", ["a"], True, {}])
def test_a_word_is_text_on_one_line(bad: Any) -> None:
    section = parse(f"w = {value(bad)}" if not isinstance(bad, dict) else "w = {}")
    with pytest.raises(DatasetFileError, match="line 1"):
        section.word("w")


@pytest.mark.parametrize("bad", [5, [], ["a", "a"], ["a", 5], [""], True])
def test_words_are_different_texts(bad: Any) -> None:
    with pytest.raises(DatasetFileError, match="line 1"):
        parse(f"w = {value(bad)}").words("w")


@pytest.mark.parametrize("bad", ["0", "-1", "1.0", "true", '"5"', "9223372036854775808", "[1]", "nan"])
def test_a_whole_number_is_one(bad: str) -> None:
    with pytest.raises(DatasetFileError, match="line 1"):
        parse(f"n = {bad}").whole("n")


@pytest.mark.parametrize("bad", ["nan", "inf", "-inf", "true", '"x"', '"1/0"', '"1/3/5"', "[1]", "2020-01-01"])
def test_a_number_is_finite(bad: str) -> None:
    with pytest.raises(DatasetFileError, match="line 1"):
        parse(f"n = {bad}").number("n")


@given(
    short,
    st.one_of(short, st.integers(), st.floats(allow_nan=False), st.booleans(), st.lists(short, max_size=3)),
)
def test_what_is_written_is_read_back_and_stays_on_its_line(name: str, thing: Any) -> None:
    line = f"{key(name)} = {value(thing)}"
    assert "\n" not in line
    assert "\r" not in line
    assert parse(line).values == {name: thing}

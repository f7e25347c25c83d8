"""Tables: every way to open one, and everything that can be asked, on neighbours that differ in odd rows."""

import inspect
import math
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
import pymysql
import pytest
from tests.soundness.sources import BASE, TYPES, UNTYPED, WAYS, Added, Way, both, neighbours, opened, table_of
from tests.soundness.watching import Base, Difference, attempt, compared, no_differences

import defocus as dp
from defocus import synthesis, tables
from defocus.tables.aggregates import Aggregate

SETTINGS: dict[str, Any] = {
    "column": "x", "x": "x", "y": "n", "numerator": "x", "denominator": "n", "weight": "n",
    "level": 0.5, "levels": [0.25, 0.75], "edges": [0, 0.5, 1], "buckets": 8,
}  # fmt: skip
"""What a parameter of an aggregate is given, by its name."""


def aggregates() -> Iterator[tuple[str, Aggregate]]:
    """Every function of the room that makes something to ask, with its usual parameters."""
    for name in tables.__all__:
        made = getattr(tables, name)
        if inspect.isfunction(made) and issubclass(inspect.signature(made).return_annotation, Aggregate):
            wanted = inspect.signature(made).parameters.values()
            given = {each.name: SETTINGS[each.name] for each in wanted if each.name in SETTINGS}
            quick = {"buckets": 8} if any(each.kind is each.VAR_KEYWORD for each in wanted) else {}
            if "Distinct" in str(inspect.signature(made).return_annotation):
                given["column"] = "k"  # floats are never quite equal
            yield name, made(**given, **quick)


ALL = dict(aggregates())


def release(query: Any, **price: Any) -> Any:
    """Everything that a question shows: its words, its preview and its plan, and the answer in every form."""
    price = price or {"epsilon": 3}
    return [
        repr(query),
        attempt(lambda: str(query.preview(**price))),
        attempt(lambda: str(query.plan(**price))),
        attempt(lambda: shown(query.release(**price))),
    ]


def shown(answer: Any) -> Any:
    return [answer, str(answer), answer.explain(), answer.to_arrow(), answer.to_csv(), answer.to_json()]


def _name(row: Any) -> str:
    try:
        return str(int(row["person"]))
    except Exception:  # noqa: BLE001  # odd values may refuse in any way
        return ""


def driven(way: Way, ask: Callable[[Any], Any], *, apart: bool = False, **opening: Any) -> list[Difference]:
    """One way to open and one thing to ask, on every neighbour."""

    def drive(home: Path, added: Sequence[Added]) -> Any:
        rows, line = both(added)
        with opened(home, way, rows, line, **opening) as table:
            return [str(table), repr(table), str(table.schema), ask(table)]

    def by_rows(added: Sequence[Added]) -> int:
        return sum(len(rows) + (line is not None) for rows, line in added)

    def by_persons(added: Sequence[Added]) -> int:
        """Who is there already and gets one row more is another person: one goes and one comes."""
        there = set(map(_name, BASE))
        return sum(2 if any(_name(row) in there for row in rows) else 1 for rows, _ in added)

    entry = f"{way.name}, {getattr(ask, '__name__', ask)}"
    found, first = [], Base(entry, lambda home: drive(home, ()))
    for whose, odds in neighbours(way).items():
        one = whose == "one person"
        units: Callable[[Sequence[Added]], int] = by_rows if "unit" in opening else (lambda _: 1) if one else by_persons
        found += compared(entry, drive, odds, units=units, apart=apart, first=first)
    return found


def usual(table: dp.tables.Table) -> Any:
    """Counts, means and quantiles of public groups, and what every kind of column is used for."""
    made = table.derive(late="year(t)").where("n >= 0 OR n IS NULL").group_by("k")
    return release(made.agg(rows=dp.count(), x=dp.mean("x"), n=dp.median("n", buckets=8), late=dp.sum("late", 0, 3000)))


OFTEN = (
    "arrow",
    "parquet",
    "csv",
    "duckdb file",
    "pandas text as objects",
    "pandas objects",
    "polars",
)
"""Ways that are tried each time; those that differ little from them take their turn with what is slow."""
SLOW = [pytest.mark.slow]


@pytest.mark.parametrize("way", [pytest.param(way, marks=[] if way in OFTEN else SLOW) for way in WAYS])
def test_no_row_is_told_by_any_way_to_open_a_table(way: str) -> None:
    no_differences(driven(WAYS[way], usual))


def test_no_row_is_told_by_columns_without_a_type() -> None:
    def texts(table: Any) -> Any:
        made = table.derive(number="CAST(x AS double)", whole="CAST(n AS integer)", day="CAST(t AS date)")
        return release(made.group_by("k").agg(x=dp.mean("number", 0, 1), n=dp.sum("whole", 0, 4), d=dp.count("day")))

    no_differences(driven(UNTYPED, texts, columns={"k": ["a", "b"]}))


# --- What can be asked ----------------------------------------------------------------------------------------------


def all_aggregates(table: Any) -> Any:
    return release(table.group_by("k").agg(**ALL))


def all_aggregates_with_gaussian_noise(table: Any) -> Any:
    return release(table.group_by("k").agg(**ALL), epsilon=3, delta=1e-4)


def found_groups(table: Any) -> Any:
    return release(table.group_by("k", keys=None).agg(rows=dp.count(), x=dp.mean("x")), epsilon=3, delta=1e-4)


def groups_by_every_kind(table: Any) -> Any:
    counted = {"rows": dp.count(), "people": dp.count_units()}
    return [
        release(table.group_by("n", "k", keys={"n": [0, 1], "k": ["a", None]}).agg(**counted)),
        release(table.group_by("n", keys=None).agg(**counted), epsilon=3, delta=1e-4),
        attempt(lambda: release(table.group_by("t", keys=None).agg(**counted), epsilon=3, delta=1e-4)),
        attempt(lambda: table.group_by("x", keys=None).agg(**counted), refused="cannot be grouped"),
    ]


def in_files(table: Any) -> Any:
    """Answers that are written, of named and of found groups: which files there are, and all that is in them."""
    several = dp.count_distinct("n", at_most=2)
    counted = {"rows": dp.count(), "x": dp.mean("x"), "people": dp.count_units(), "n": several}
    named, found = table.group_by("k").agg(**counted), table.group_by("k", keys=None).agg(rows=dp.count())
    return [
        attempt(lambda: written(named, epsilon=3)),
        attempt(lambda: written(named, epsilon=3, delta=1e-4)),
        attempt(lambda: written(table.bound(rows=2).group_by("n", "k", keys=[(0, "a"), (1, "b")]).agg(x=dp.mean("x")))),
        attempt(lambda: written(found, epsilon=3, delta=1e-4)),
    ]


def written(query: Any, **price: Any) -> Any:
    home = Path(query.ledger.where).parent
    made = query.release_to(home / f"answer {len(list(home.iterdir()))}", **(price or {"epsilon": 3}))
    files = [(file.name, file.stat().st_size) for file in sorted(made.folder.iterdir()) if file.name[0] != "_"]
    return [files, made.dataset().to_table(), str(made), made.to_dict()]


def found_bounds(table: Any) -> Any:
    found = {"x": dp.mean("x", bounds="find"), "n": dp.sum("n", bounds="find"), "t": dp.count_distinct("t")}
    return release(table.agg(**found))


def a_found_bound(table: Any) -> Any:
    return release(table.bound(rows="find").group_by("k").agg(rows=dp.count(), x=dp.mean("x")))


def people_in_found_numbers_of_groups(table: Any) -> Any:
    counted = {"people": dp.count_units(), "t": dp.count_distinct("t")}
    mixed = table.group_by("k", "n", keys={"k": None, "n": [0, 1, 2]}).agg(**counted)
    return [
        release(table.group_by("n", keys=list(range(8))).agg(**counted)),
        release(table.group_by("n", keys=list(range(8))).agg(**counted), epsilon=3, delta=1e-4),
        release(mixed, epsilon=3, delta=1e-4),
        attempt(lambda: table.group_by("person", keys=None).agg(n=dp.count()), refused="."),
    ]


def a_bound_by_sampling(table: Any) -> Any:
    return release(table.bound(rows=2, by="sampling").group_by("k").agg(people=dp.count_units()))


def a_cube(table: Any) -> Any:
    return release(table.declare(n=[0, 1, 2]).cube("k", "n"), epsilon=3)


def several_sets(table: Any) -> Any:
    known = table.declare(n=[0, 1, 2])
    asked = {"rows": dp.count(), "x": dp.mean("x")}
    return [
        release(known.group_by("k", "n", sets="rollup").agg(**asked)),
        release(known.group_by("k", "n", sets="cube").agg(**asked), epsilon=3, delta=1e-4),
        release(known.group_by("k", "n", keys=None, sets="rollup").agg(rows=dp.count()), epsilon=3, delta=1e-4),
    ]


def a_hierarchy(table: Any) -> Any:
    places = pa.table({"region": ["e", "e", "w"], "k": ["a", "b", None], "n": [0, 1, 2]})
    return [
        release(table.hierarchy("k", "n", keys=places)),
        release(table.hierarchy("region", "k", keys=places)),
        attempt(lambda: table.hierarchy("k", "n", keys=places, invariants=["k"]), refused="Which totals are exact"),
        attempt(lambda: table.where("n > 0").hierarchy("k", keys=["a"], invariants=["all"]), refused="Which totals"),
        attempt(lambda: shown(table.sql("SELECT k, COUNT(*) AS c FROM v GROUP BY ROLLUP (k)", epsilon=3))),
    ]


def the_most_frequent(table: Any) -> Any:
    return [
        release(table.mode("k")),
        release(table.top("k", 2)),
        release(table.declare(n=[0, 1, 2]).group_by("n").mode("k")),
        release(table.top("k", 2, keys=None), epsilon=3, delta=1e-4),
    ]


def hypotheses(table: Any) -> Any:
    known = table.declare(x=(0, 1), n=[0, 1, 2], k=["a", "b"]).bound(rows=1)
    tests = (
        known.ttest("x", by="k"),
        known.ttest("x", mean=0.5),
        known.chi2("k", "n"),
        known.rank_test("x", by="k", steps=4),
    )
    return [[repr(query), attempt(lambda query=query: shown(query.release(epsilon=3)))] for query in tests]  # type: ignore[misc]


def a_survival_curve(table: Any) -> Any:
    made = table.derive(late="n > 1").bound(rows=1)
    return [
        release(made.survival("x", "late", 1, steps=4)),
        release(made.survival("x", "late", 1, steps=4, by="k", keys=["a", "b"]), epsilon=3, delta=1e-4),
    ]


def sql(table: Any) -> Any:
    texts = (
        "SELECT k, COUNT(*) AS c, AVG(x) AS m FROM v GROUP BY k",
        "SELECT COUNT(DISTINCT k) AS c, SUM(CASE WHEN x > 0.5 THEN n ELSE 0 END) AS s FROM v WHERE t > '2026-01-02'",
        "SELECT upper(k) AS u, COUNT(*) AS c FROM v WHERE upper(k) IN ('A', 'B') GROUP BY u HAVING c > 0 LIMIT 2",
        "SELECT COUNT(*) AS c, AVG(x) AS m FROM v WHERE person IN (SELECT person FROM v WHERE n > 1)",
        "SELECT COUNT(*) AS c FROM v a WHERE NOT EXISTS (SELECT 1 FROM v b WHERE b.person = a.person AND b.k = 'a')",
        "SELECT COUNT(*) AS c, AVG(x) AS m FROM (SELECT DISTINCT ON (person) person, x FROM v ORDER BY person, t, n) o",
        "SELECT k, COUNT(*) AS c FROM (SELECT DISTINCT person, k FROM v) o WHERE k IN ('a', 'b') GROUP BY k",
        "SELECT COUNT(*) AS c, AVG(x > 0.5) AS m, SUM(SQRT(x)) AS s FROM v WHERE t + INTERVAL 1 MONTH > '2026-01-02'",
        "SELECT k, COUNT(*) / SUM(COUNT(*)) OVER () AS c, RANK() OVER (ORDER BY AVG(x)) AS r FROM v GROUP BY k",
        "SELECT AVG(c) AS a, MAX(m) AS b FROM (SELECT k, COUNT(*) AS c, AVG(x) AS m FROM v GROUP BY k) WHERE c > 1",
    )
    return [attempt(lambda text=text: shown(table.sql(text, epsilon=3, delta=1e-4))) for text in texts]  # type: ignore[misc]


def bounds_that_follow(table: Any) -> Any:
    """Bounds and groups that nobody declared: what conditions say about numbers and dates, and shares of one group."""
    texts = (
        "SELECT SUM(n) AS s, AVG(x) AS m FROM v WHERE n BETWEEN 1 AND 3 AND x >= 0.2 AND x < 0.7",
        "SELECT SUM(x) FILTER (WHERE x > 0.2 AND x < 2) AS s, AVG(n) FILTER (WHERE NOT n > 3 AND n >= 0) AS m FROM v",
        "SELECT SUM(CASE WHEN x BETWEEN 0 AND 1 THEN x WHEN n IN (1, 2) THEN n ELSE -1 END) AS s FROM v",
        "SELECT SUM(DATE_DIFF('day', DATE '2026-01-01', t)) AS s FROM v WHERE t BETWEEN '2026-01-03' AND '2026-01-09'",
        "SELECT DATE_TRUNC('week', t) AS w, COUNT(*) FROM v WHERE t > '2026-01-01' AND t < '2026-01-20' GROUP BY 1",
        "SELECT year(t) AS y, SUM(n) FROM v WHERE n IN (0, 2) AND t BETWEEN '2025-03-01' AND '2027-01-01' GROUP BY 1",
        "SELECT SUM(m) AS s FROM (SELECT person, MAX(n) AS m FROM v WHERE n BETWEEN 0 AND 3 GROUP BY person) o",
    )
    asked = [attempt(lambda text=text: shown(table.sql(text, epsilon=3, delta=1e-4))) for text in texts]  # type: ignore[misc]
    wide = table.bound(rows="find").agg(share=dp.mean("x > 0.5"), truth=dp.mean("n = 1"), rows=dp.count())
    return [asked, release(wide), release(wide, epsilon=3, delta=1e-4)]


def expressions(table: Any) -> Any:
    """Functions that could stumble over a value: casts, dates, logarithms, divisions, texts."""
    texts = (
        "CAST(k AS integer)", "CAST(k AS double)", "CAST(k AS date)", "CAST(x AS integer)", "CAST(t AS text)", "ln(x)",
        "sqrt(x)", "1 / x", "n // n", "n % n", "x * 1e308", "n * n * n", "n + 9223372036854775807", "-n", "abs(n)",
        "round(x, n)", "length(k)", "upper(k)", "substr(k, n, n)", "year(t)", "t - t", "x > n", "k || k", "exp(x)",
        "power(x, n)", "coalesce(n, 0)", "k = 'a'", "k LIKE '%a'", "n IN (1, 2)", "x BETWEEN 0 AND 1", "k ILIKE '%A'",
        "t + INTERVAL 4000 YEAR", "t - INTERVAL 1 MONTH", "CAST(t AS date) - 1460000", "last_day(t)", "dayname(t)",
        "strftime(t, '%Y-%m-%d %H')", "position(k IN k)", "contains(k, 'a')", "trunc(x)", "CAST(x AS DECIMAL(3, 1))",
        "concat(k, n, t)",
    )  # fmt: skip
    known = {
        f"c{i}": text
        for i, text in enumerate(texts)
        if attempt(lambda text=text: table.derive(c=text), refused="constant|needs")[0] == "result"  # type: ignore[misc]
    }
    made = table.derive(**known)
    either = " AND ".join(f"(({text}) IS NULL OR ({text}) IS NOT NULL)" for text in known.values())
    counts = {f"n{name}": dp.count(name) for name in known}
    return [list(known.values()), release(made.agg(**counts)), release(table.where(either).agg(rows=dp.count()))]


def features_of_a_person(table: Any) -> Any:
    """Aggregates and windows over the rows of one person, of every kind of value, and the rows that they are beside."""
    made = table.per_person(
        visits="COUNT(*)", total="SUM(n)", mean="AVG(x)", kinds="COUNT(DISTINCT k)", word="MAX(k)", last="MAX(t)",
        span="DATE_DIFF('day', MIN(t), MAX(t))", ever="BOOL_OR(x > 0.5)", power="SUM(x) * SUM(n)",
    )  # fmt: skip
    beside = table.derive(
        gap="DATE_DIFF('day', LAG(t) OVER (ORDER BY t), t)", place="ROW_NUMBER() OVER (ORDER BY x DESC)",
        so_far="SUM(n) OVER (ORDER BY t)", before="LAG(k, 2) OVER (ORDER BY n)", mean="AVG(x) OVER ()",
    )  # fmt: skip
    bounds = {"visits": (0, 9), "total": (0, 50), "mean": (0, 1), "span": (0, 99), "power": (0, 9)}
    sums = {name: dp.mean(name, *ends) for name, ends in bounds.items()}
    words = made.group_by("word", keys=["a", "b", None])
    text = (
        "SELECT COUNT(*) AS c, AVG(CASE WHEN g <= 30 THEN 1 ELSE 0 END) AS s FROM (SELECT person, DATE_DIFF('day',"
        " LAG(t) OVER (PARTITION BY person ORDER BY t), t) AS g FROM v) JOIN (SELECT person, COUNT(*) AS n FROM v"
        " GROUP BY person HAVING COUNT(*) > 1) w USING (person)"
    )
    return [
        release(made.agg(**sums, people=dp.count_units())),
        release(words.agg(rows=dp.count(), kinds=dp.sum("kinds", 0, 3))),
        release(beside.agg(gap=dp.mean("gap", 0, 99), place=dp.sum("place", 0, 9), so_far=dp.mean("so_far", 0, 50))),
        release(beside.where("place = 1").agg(rows=dp.count(), before=dp.count("before"), mean=dp.mean("mean", 0, 1))),
        release(table.per_person("k", n="COUNT(*)").group_by("k").agg(n=dp.sum("n", 0, 5))),
        attempt(lambda: shown(table.sql(text, epsilon=3))),
    ]


def joins(table: Any) -> Any:
    wards = {"k": ["a", "b"], "size": [1, 2]}
    joined = table.join(pa.table(wards), on="k")
    return release(joined.agg(size=dp.sum("size", 0, 5), rows=dp.count("size")))


def models(table: Any) -> Any:
    """Estimators that take the rows of a table, all of them, none of them, and some by a derived column."""
    known = table.declare(x=(0, 1), n=(0, 5), k=["a", "b", "c"])
    price: dict[str, Any] = {"epsilon": 1, "delta": 1e-6}
    few = known.derive(m="n * 2").declare(m=(0, 10)).where("x > 100").examples(["m", "x"], "k")
    made = [
        dp.learning.LogisticRegression(**price, max_iter=2).fit(known.examples(["x", "n"], "k")),
        dp.learning.NaiveBayes(**price).fit(few),
        dp.learning.LinearRegression(**price, solver="moments").fit(known.examples("n", "x")),
        dp.learning.KMeans(2, **price, max_iter=1).fit(known.examples(["x", "n"])),
        dp.learning.StandardScaler(**price).fit(known.examples(["x"])),
    ]
    wards = known.examples(["x", "n"], "k", group="k")
    evaluated = dp.learning.evaluate(lambda rows: np.tile([0.2, 0.3, 0.5], (len(rows), 1)), wards).release(epsilon=1)
    return [*([model.released(), model.explain()] for model in made), shown(evaluated), shown(evaluated.groups)]


def remaining(table: Any) -> Any:
    release(table.agg(rows=dp.count()))
    return [str(table.remaining()), table.ledger.words(), str(table), table._repr_html_(), table.ledger.history()]


def a_request(table: Any) -> Any:
    query = table.group_by("k", keys=None).agg(rows=dp.count())
    return [shown(query.release(epsilon=3, delta=1e-4, request="again")) for _ in range(2)]


def a_report(table: Any) -> Any:
    answer = table.group_by("k").agg(rows=dp.count()).release(epsilon=3)
    where = Path(table.ledger.where).with_name("report.html")
    dp.report(answer, where, title="a report", ledger=table.ledger)
    return where.read_text("utf-8")


def synthetic_data(table: Any) -> Any:
    facts = {"k": None, "x": (0, 1)}
    wanted = synthesis.Synthesiser(table, columns=facts, only=["k", "x"], rows=40)

    preview = str(wanted.preview(epsilon=3, delta=1e-4))
    made = wanted.fit(epsilon=3, delta=1e-4)
    return [repr(wanted), preview, made.explain(), made.quality, made.to_json(), made.sample(20).schema]


def synthetic_people(table: Any) -> Any:
    facts = {"k": ["a", "b"], "x": (0, 1), "n": (0, 5)}
    wanted = synthesis.PeopleSynthesiser(table.bound(rows=2), "n", ["k"], columns=facts, only=["x", "n"])
    preview = str(wanted.preview(epsilon=3, delta=1e-4))
    made = wanted.fit(epsilon=3, delta=1e-4)
    return [repr(wanted), preview, made.explain(), made.quality, made.to_json(), made.sample(9).schema]


QUESTIONS = (
    synthetic_data, synthetic_people,
    all_aggregates, all_aggregates_with_gaussian_noise, found_groups, groups_by_every_kind, in_files, found_bounds,
    a_found_bound, people_in_found_numbers_of_groups, a_bound_by_sampling, a_cube, several_sets, a_hierarchy,
    the_most_frequent, hypotheses, a_survival_curve, models, sql, bounds_that_follow,
    joins, features_of_a_person, remaining, a_request,
    a_report,
)  # fmt: skip


LONG = (
    synthetic_people,
    found_bounds,
    bounds_that_follow,
    all_aggregates_with_gaussian_noise,
    groups_by_every_kind,
    features_of_a_person,
    a_report,
)


@pytest.mark.parametrize(
    "ask", [pytest.param(ask, marks=SLOW if ask in LONG else []) for ask in QUESTIONS], ids=lambda ask: ask.__name__
)
def test_no_row_is_told_by_anything_that_is_asked(ask: Callable[[Any], Any]) -> None:
    no_differences(driven(WAYS["arrow"], ask))


@pytest.mark.slow
@pytest.mark.parametrize("way", ["arrow", pytest.param("csv", marks=pytest.mark.long)])
def test_no_row_is_told_by_any_expression(way: str) -> None:
    no_differences(driven(WAYS[way], expressions))


@pytest.mark.slow
def test_no_row_is_told_where_rows_are_protected() -> None:
    no_differences(driven(WAYS["arrow"], all_aggregates, unit=dp.rows()))


def test_no_row_is_told_by_parts() -> None:
    def asked_of_a_part(table: Any) -> Any:
        part = table.part("a")
        return [str(part), release(part.agg(rows=dp.count())), str(part.remaining()), str(table.remaining())]

    no_differences(driven(WAYS["parquet"], asked_of_a_part, unit=dp.rows(), parts="k", columns={"x": (0, 1)}))


def test_no_row_is_told_by_another_private_table() -> None:
    def joined(table: Any) -> Any:
        text = "SELECT COUNT(*) AS c FROM v WHERE person IN (SELECT person FROM others WHERE z > 0.5)"
        return [
            release(table.join("others", on="person").agg(x=dp.sum("z", 0, 1), rows=dp.count())),
            attempt(lambda: shown(table.sql(text, epsilon=3))),
        ]

    others = table_of(BASE).select(["person", "x"]).rename_columns(["person", "z"])
    no_differences(driven(WAYS["arrow"], joined, private={"others": others}))
    assert TYPES


def test_no_row_is_told_where_people_consent() -> None:
    def consented(table: Any) -> Any:
        research = table.for_purpose("research")
        return [
            release(research.group_by("k").agg(rows=dp.count(), people=dp.count_units(), x=dp.mean("x"))),
            attempt(lambda: shown(table.sql("SELECT COUNT(*) AS c FROM v", epsilon=3, purpose="research"))),
            attempt(lambda: table.agg(rows=dp.count()), refused="none was named"),
        ]

    persons = table_of(BASE).column("person").to_pylist()
    willing = pa.table({"person": [*persons, *persons], "purpose": ["research"] * 2 * len(persons)})
    no_differences(driven(WAYS["arrow"], consented, consent=willing))


@pytest.mark.slow
def test_no_row_is_told_by_postgresql(server: str) -> None:
    def put(home: Path, rows: Sequence[Any], line: bytes | None) -> tuple[Any, dict[str, Any]]:
        del home, line
        held = table_of(rows).to_pydict()
        with psycopg.connect(server, autocommit=True) as connection, connection.cursor() as cursor:
            cursor.execute("DROP TABLE IF EXISTS soundness")
            cursor.execute("CREATE TABLE soundness (person bigint, k text, x double precision, n bigint, t timestamp)")
            with cursor.copy("COPY soundness FROM STDIN") as copy:
                for row in zip(*held.values(), strict=True):
                    copy.write_row(row)
        return server, {"table": "soundness"}

    def fits(name: str, value: Any) -> Any:
        """What Arrow can hold and PostgreSQL too: no NUL, no time after the year 9999 that Python cannot write."""
        held = pa.array([value], TYPES[name]).to_pylist()[0]
        if isinstance(held, str) and "\x00" in held:
            raise ValueError
        return held

    no_differences(driven(Way("postgresql", put, fits), usual))


@pytest.mark.slow
def test_no_row_is_told_by_mariadb(mariadb: str) -> None:
    def put(home: Path, rows: Sequence[Any], line: bytes | None) -> tuple[Any, dict[str, Any]]:
        del home, line
        held = table_of(rows).to_pydict()
        socket = mariadb.partition("unix_socket=")[2]
        with (
            pymysql.connect(unix_socket=socket, user="root", database="hospital", autocommit=True) as connection,
            connection.cursor() as cursor,
        ):
            cursor.execute("SET sql_mode = ''")
            cursor.execute("DROP TABLE IF EXISTS soundness")
            cursor.execute("CREATE TABLE soundness (person bigint, k longtext, x double, n bigint, t datetime(6))")
            lines = list(zip(*held.values(), strict=True))
            cursor.executemany("INSERT INTO soundness VALUES (%s, %s, %s, %s, %s)", lines)
        return mariadb, {"table": "soundness"}

    def fits(name: str, value: Any) -> Any:
        """What Arrow can hold and MariaDB too: no infinity and no NaN."""
        held = pa.array([value], TYPES[name]).to_pylist()[0]
        if isinstance(held, float) and not math.isfinite(held):
            raise ValueError
        return held

    no_differences(driven(Way("mariadb", put, fits), usual))


@pytest.mark.slow
def test_no_row_is_told_by_spark(spark: Any) -> None:
    def put(home: Path, rows: Sequence[Any], line: bytes | None) -> tuple[Any, dict[str, Any]]:
        del line
        pq.write_table(table_of(rows), home / "v.parquet")
        return spark.read.parquet(str(home / "v.parquet")), {}

    def fits(name: str, value: Any) -> Any:
        return pa.array([value], TYPES[name]).to_pylist()[0]

    no_differences(driven(Way("spark", put, fits), usual))


@pytest.mark.long
@pytest.mark.parametrize("way", ["csv"])
def test_no_row_is_told_by_itself(way: str) -> None:
    def counted(table: Any) -> Any:
        return attempt(lambda: table.group_by("k").agg(rows=dp.count(), x=dp.mean("x")).release(epsilon=3))

    no_differences(driven(WAYS[way], counted, apart=True))

"""Attacks on whole releases: whatever one person does to a table, nothing but noise tells."""

import json
import math
import signal
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.tables.worlds import HOSTILE
from tests.waiting import HANGS

import defocus as dp
from defocus import audit
from defocus.errors import (
    BudgetExceededError,
    DefocusError,
    InvalidParameterError,
    QuestionFailedError,
    SourceError,
)
from defocus.ledger import verify
from defocus.noise.testing import seeded
from defocus.tables.query import Query
from defocus.tables.table import Table

COLUMNS = {"u": pa.int64(), "k": pa.string(), "x": pa.float64()}


def frame(rows: Sequence[tuple[Any, ...]], names: Sequence[str] = tuple(COLUMNS)) -> pa.Table:
    types = list(COLUMNS.values())
    return pa.table({name: pa.array([row[i] for row in rows], types[i]) for i, name in enumerate(names)})


def opened(where: Path, data: Any, name: str = "t", budget: dp.Budget | None = None, **more: Any) -> Table:
    unit = more.pop("unit", dp.user("u"))
    return dp.open(
        data, unit=unit, budget=budget or dp.Budget(1000, 1e-4), ledger=where / f"{name}.ledger", name="t", **more
    )


BASE = [(u, "ab"[u % 2], float(u)) for u in range(30)]
OFTEN: list[tuple[Any, ...]] = [(99, "a", 1e308)] * 2000
STRANGE: list[list[tuple[Any, ...]]] = [
    [],
    [(99, "a", math.nan), (98, "a", math.inf), (98, "b", -math.inf), (97, None, None), (None, "a", 5.0)],
    [(99, "new", 1e308), (-(2**63), "a", 5e-324), (2**63 - 1, "a", 2.0**1023)],
    [(99, text, -0.0) for text in HOSTILE],
    OFTEN,
    [(99, f"key {i}", 1.0) for i in range(500)],
]
QUESTIONS: list[Callable[[Table], Query]] = [
    lambda t: t.agg(n=dp.count(), m=dp.mean("x", 0, 10), s=dp.sum("x", -1e75, 1e75), v=dp.std("x", 0, 1e-74)),
    lambda t: t.group_by("k", keys=["a", "b", "c"]).agg(
        n=dp.count(), people=dp.count_units(), d=dp.count_distinct("k")
    ),
    lambda t: t.where("x / 0 > 1 OR LN(x) < 3 OR x * 1e308 > 0").agg(n=dp.count("x * x")),
    lambda t: t.derive(y="CAST(x AS BIGINT)", w="CAST(k AS BIGINT)").agg(y=dp.mean("y", 0, 9), w=dp.sum("w", 0, 1)),
    lambda t: (
        t.bound(rows=5)
        .group_by("k", keys=["a"])
        .agg(q=dp.quantiles("x", [0.1, 0.5], 0, 1), h=dp.histogram("x", [0, 1, 2]))
    ),
    lambda t: t.bound(rows=2, by="sampling").agg(m=dp.mean("x", bounds="find"), h=dp.median("x", bounds="find")),
    lambda t: t.bound(rows="find").agg(c=dp.correlation("x", "x * 2", x_bounds=(0, 1), y_bounds=(0, 2))),
]


@pytest.mark.slow
@pytest.mark.parametrize("which", range(len(QUESTIONS)))
def test_no_row_makes_a_question_fail_change_its_shape_or_change_its_price(tmp_path: Path, which: int) -> None:
    seen = set()
    for i, rows in enumerate(STRANGE):
        with opened(tmp_path, frame([*BASE, *rows]), str(i)) as table:
            answer = QUESTIONS[which](table).release(epsilon=1)
            found = answer.to_arrow()
            seen.add(
                (
                    str(found.schema.remove_metadata()),
                    json.dumps(found.select(list(answer.keys)).to_pydict()),
                    str(answer.receipt.event),
                    tuple(column.how for column in answer.columns),
                    tuple(rule for rule in answer.rules if "found" not in rule),
                )
            )
            nothing = any("no bounds were found" in rule for rule in answer.rules)  # which noise decides
            assert all(np.isfinite(column.values).all() != nothing for column in answer.columns)
    assert len(seen) == 1


def test_an_empty_table_is_answered_like_any_other(tmp_path: Path) -> None:
    with opened(tmp_path, frame([])) as table:
        answer = QUESTIONS[1](table).release(epsilon=1)
        assert answer.keys["k"].to_pylist() == ["a", "b", "c"]
        assert np.abs(answer.columns[0].values).max() > 0
        found = table.group_by("k", keys=None).agg(n=dp.count(), q=dp.quantiles("x", [0.5], 0, 1))
        assert found.release(epsilon=1, delta=1e-6).to_arrow().num_rows == 0


def test_a_key_of_one_person_is_never_shown_unless_chance_has_it(tmp_path: Path) -> None:
    """A person alone in 500 keys may show each with probability delta / groups at most."""
    rows = [(1, f"key {i}", 1.0) for i in range(500)] + [(u, "common", 1.0) for u in range(2, 400)]
    shown: list[str] = []
    with opened(tmp_path, frame(rows)) as table:
        query = table.bound(rows=4, groups=4).group_by("k", keys=None).agg(n=dp.count())
        for seed in range(5):
            shown += query.release(epsilon=2, delta=1e-6, bits=seeded(seed)).keys["k"].to_pylist()
    assert shown == ["common"] * 5


@pytest.mark.statistical
def test_a_key_is_shown_as_often_as_its_number_of_people_allows(tmp_path: Path) -> None:
    """Many keys of as many people as are shown half of the time, one key a person."""

    def ask(name: str, rows: list[tuple[Any, ...]]) -> Query:
        return opened(tmp_path, frame(rows), name).bound(rows=1).group_by("k", keys=None).agg(n=dp.count())

    selection = ask("empty", []).plan(epsilon=3, delta=1e-5).selection
    assert selection is not None
    people, keys = selection.threshold(), 400
    query = ask("full", [(people * i + j, f"key {i}", 1.0) for i in range(keys) for j in range(people)])
    expected = selection.probability(people)
    number = len(query.release(epsilon=3, delta=1e-5, bits=seeded(3)))
    assert 0.4 < expected < 0.9
    assert abs(number / keys - expected) < 4 * math.sqrt(expected * (1 - expected) / keys)


def test_the_order_of_private_keys_does_not_tell_who_was_there(tmp_path: Path) -> None:
    wards = [f"ward {i}" for i in range(8)]
    base = [(u, wards[(5 * u + u // 8) % 8], 1.0) for u in range(400)]
    for i, first in enumerate([[], [(999, "ward 0", 1.0)], [(999, "ward 6", 1.0)]]):
        with opened(tmp_path, frame([*first, *base]), str(i)) as table:
            keys = table.group_by("k", keys=None).agg(n=dp.count()).release(epsilon=50, delta=1e-6).keys
            assert keys["k"].to_pylist() == wards


@pytest.mark.parametrize("text", HOSTILE[5:])
def test_hostile_texts_are_values_wherever_they_stand(tmp_path: Path, text: str) -> None:
    if text == "\n":
        return
    names = ("u", text, "x") if text.strip() else tuple(COLUMNS)
    key = names[1]
    data = frame([(u, text if u < 40 else "other", 1.0) for u in range(60)], names)
    with opened(tmp_path, data) as table:
        quoted = text.replace("'", "''")
        column = key.replace('"', '""')
        asked = table.where(f"\"{column}\" = '{quoted}'").group_by(key, keys=[text, "other"])
        answer = asked.agg(n=dp.count()).release(epsilon=500)
        assert answer.keys[key].to_pylist() == sorted([text, "other"], key=lambda each: each.encode())
        counts = dict(zip(answer.keys[key].to_pylist(), answer.columns[0].values.round().tolist(), strict=True))
        assert counts == {text: 40, "other": 0}
        found = table.group_by(key, keys=None).agg(n=dp.count()).release(epsilon=100, delta=1e-6)
        assert set(found.keys[key].to_pylist()) == {text, "other"}


def test_names_that_look_alike_are_refused(tmp_path: Path) -> None:
    for names in (["u", "u"], ["u", "U"], ["u", "\uff55"], ["ﬁ", "fi"], ["é", "e\u0301"]):
        data = pa.table([pa.array([1]), pa.array([1])], names=names)
        with pytest.raises(SourceError):
            opened(tmp_path, data, unit=dp.rows())


def test_a_person_with_a_million_rows_weighs_no_more_than_the_bound(tmp_path: Path) -> None:
    data = pa.table({"u": np.zeros(1_000_000, np.int64), "k": ["a"] * 1_000_000, "x": np.full(1_000_000, 9.0)})
    with opened(tmp_path, data) as table:
        answer = table.bound(rows=3).agg(n=dp.count(), s=dp.sum("x", 0, 10)).release(epsilon=200, bits=seeded(1))
    assert answer.columns[0].values[0] < 3.5
    assert answer.columns[1].values[0] < 30


def test_sums_at_the_edge_of_floats_and_integers_are_exact(tmp_path: Path) -> None:
    """In floats, 2**53 ones added to 2**53 vanish; here every row counts, in any order."""
    for i, values in enumerate(([2.0**53] + [1.0] * 50, [1.0] * 50 + [2.0**53], [-1e308, 1e308, *[0.0] * 49])):
        data = frame([(u, "a", x) for u, x in enumerate(values)])
        with opened(tmp_path, data, str(i), unit=dp.rows()) as table:
            answer = table.agg(n=dp.count("x"), s=dp.sum("x", 0, 1)).release(epsilon=300, bits=seeded(i))
        assert round(answer.columns[0].values[0]) == 51
        assert answer.columns[1].values[0] == pytest.approx(1 if i == 2 else 51, abs=0.2)


def test_the_same_question_is_charged_each_time_and_a_named_request_once(tmp_path: Path) -> None:
    with opened(tmp_path, frame(BASE), budget=dp.Budget(1)) as table:
        query = table.agg(n=dp.count())
        first, again = (query.release(epsilon=0.25, request="monday") for _ in range(2))
        assert first.columns[0].values.tolist() == again.columns[0].values.tolist()
        assert again.receipt.sequence == first.receipt.sequence
        other = query.release(epsilon=0.25)
        assert other.columns[0].values.tolist() != first.columns[0].values.tolist()
        with pytest.raises(InvalidParameterError, match="another question"):
            table.where("x > 3").agg(n=dp.count()).release(epsilon=0.25, request="monday")
        query.release(epsilon=0.5)
        with pytest.raises(BudgetExceededError):
            query.release(epsilon=0.01)


def test_threads_never_spend_more_than_the_budget(tmp_path: Path) -> None:
    granted: list[float] = []
    with opened(tmp_path, frame(BASE), budget=dp.Budget(1)) as table:

        def ask() -> None:
            for _ in range(6):
                try:
                    granted.append(table.agg(n=dp.count()).release(epsilon=0.125).columns[0].values[0])
                except BudgetExceededError:
                    return

        threads = [threading.Thread(target=ask) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(granted) == 8
        assert len(set(granted)) == 8


KILLED = """
    import os, signal, sys
    from pathlib import Path
    import pyarrow as pa
    import defocus as dp
    from defocus.engines.duckdb import DuckDbEngine
    table = dp.open(pa.table({"u": [1, 2]}), unit=dp.user("u"), budget=dp.Budget(1), ledger=sys.argv[1], name="t")
    DuckDbEngine.run = lambda *_, **__: os.kill(os.getpid(), signal.SIGKILL)
    table.agg(n=dp.count()).release(epsilon=0.75)
"""


@pytest.mark.slow
def test_a_release_killed_between_charge_and_answer_stays_charged(tmp_path: Path) -> None:
    done = subprocess.run(  # noqa: S603  # our own script
        [sys.executable, "-c", textwrap.dedent(KILLED), str(tmp_path / "t.ledger")], check=False, timeout=HANGS
    )
    assert done.returncode == -signal.SIGKILL
    assert verify(tmp_path / "t.ledger")
    with opened(tmp_path, frame(BASE), budget=dp.Budget(1)) as table:
        with pytest.raises(BudgetExceededError):
            table.agg(n=dp.count()).release(epsilon=0.5)
        table.agg(n=dp.count()).release(epsilon=0.25)


@pytest.mark.parametrize("harm", ["deleted", "truncated", "replaced"])
def test_a_file_lost_after_it_was_opened_fails_without_a_word_of_it_and_keeps_the_charge(
    tmp_path: Path, harm: str
) -> None:
    path = tmp_path / "secret.parquet"
    pq.write_table(frame([(u, "Jane Doe", 1.0) for u in range(5000)]), path)
    with opened(tmp_path, path, budget=dp.Budget(1)) as table:
        query = table.agg(n=dp.count(), m=dp.mean("x", 0, 1))
        if harm == "deleted":
            path.unlink()
        elif harm == "truncated":
            path.write_bytes(path.read_bytes()[:200])
        else:
            pq.write_table(pa.table({"other": ["Jane Doe"]}), path)
        with pytest.raises(QuestionFailedError) as failed:
            query.release(epsilon=0.75)
        assert "Jane" not in str(failed.value)
        assert "secret" not in str(failed.value)
        assert failed.value.__cause__ is None
        assert failed.value.__context__ is None
        with pytest.raises(BudgetExceededError):
            query.release(epsilon=0.5)


def test_whatever_fails_after_the_charge_says_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise ZeroDivisionError("Jane Doe, born 1970")

    monkeypatch.setattr("defocus.tables.measurement.Measuring.cells", fail)
    with opened(tmp_path, frame(BASE), budget=dp.Budget(1)) as table:
        with pytest.raises(QuestionFailedError) as failed:
            table.agg(n=dp.count()).release(epsilon=1)
        assert "Jane" not in f"{failed.value} {failed.value.__cause__} {failed.value.__context__}"
        with pytest.raises(BudgetExceededError):
            table.agg(n=dp.count()).release(epsilon=0.1)


def test_a_refused_question_costs_nothing(tmp_path: Path) -> None:
    with opened(tmp_path, frame(BASE), budget=dp.Budget(1), purposes=["report"]) as table:
        wrong: list[Callable[[], Any]] = [
            lambda: table.agg(n=dp.count()).release(epsilon=1),
            lambda: table.agg(n=dp.count()).release(epsilon=1, purpose="else"),
            lambda: table.agg(n=dp.count("nothing")).release(epsilon=1, purpose="report"),
            lambda: table.agg(n=dp.mean("x")).release(epsilon=1, purpose="report"),
            lambda: table.group_by("k", keys=None).agg(n=dp.count()).release(epsilon=1, purpose="report"),
            lambda: table.agg(n=dp.count()).release(epsilon=1, purpose="report", bits=7),  # type: ignore[arg-type]
            lambda: table.agg(n=dp.count()).release(epsilon=math.nan, purpose="report"),
        ]
        for ask in wrong:
            with pytest.raises(DefocusError):
                ask()
        table.agg(n=dp.count()).release(epsilon=1, purpose="report")


@pytest.mark.long
@pytest.mark.statistical
def test_the_auditor_cannot_tell_neighbours_apart_by_whole_releases(tmp_path: Path) -> None:
    """With and without a person of 2000 rows; the same auditor notices when the bound is not held."""
    tables = [opened(tmp_path, frame([*BASE, *more]), str(i), dp.Budget(10_000)) for i, more in enumerate([[], OFTEN])]

    def release(which: int, rows: int) -> float:
        answer = tables[which].bound(rows=rows).agg(n=dp.count(), m=dp.mean("x", 0, 10)).release(epsilon=rows)
        return float(answer.columns[0].values[0])

    held = audit.lower_bound(lambda which: release(which, 1), (0, 1), trials=80, claimed=1)
    loose = audit.lower_bound(lambda which: release(which, 16), (0, 1), trials=80, claimed=1)
    for table in tables:
        table.close()
    assert held.verdict != "violation"
    assert loose.verdict == "violation"


RACING = """
    import sys
    import pyarrow as pa
    import defocus as dp
    table = dp.open(pa.table({"u": [1, 2]}), unit=dp.user("u"), budget=dp.Budget(1), ledger=sys.argv[1], name="t")
    granted = 0
    for _ in range(6):
        try:
            table.agg(n=dp.count()).release(epsilon=0.125)
            granted += 1
        except dp.errors.BudgetExceededError:
            break
    print(granted)
"""


@pytest.mark.slow
def test_processes_never_spend_more_than_the_budget(tmp_path: Path) -> None:
    with opened(tmp_path, frame(BASE), budget=dp.Budget(1)):
        command = [sys.executable, "-c", textwrap.dedent(RACING), str(tmp_path / "t.ledger")]
        racing = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(3)]  # noqa: S603  # our own
        granted = [int(each.communicate(timeout=HANGS)[0].strip().splitlines()[-1]) for each in racing]
    assert sum(granted) == 8
    assert verify(tmp_path / "t.ledger")

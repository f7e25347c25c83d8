"""Whatever goes wrong after the charge: it is told, the charge stays, nothing is shown, and the next question works."""

import contextlib
import os
import shutil
import signal
import socket
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import duckdb
import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.tables.opening import unlooked
from tests.waiting import again_and_again

import defocus as dp
from defocus.engines.duckdb import DuckDbEngine
from defocus.errors import BudgetExceededError, LedgerUnavailableError, NotRecordedError, QuestionFailedError
from defocus.ledger.chain import Chain
from defocus.tables import Table

ENDLESS = "SELECT range AS patient, 'A' AS ward, (range % 7)::DOUBLE AS x FROM range(1000000000000)"


@pytest.fixture
def owner(server: str) -> Iterator[Any]:
    """Makes what a test needs in the database, under a schema of its own."""
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute("DROP SCHEMA IF EXISTS failing CASCADE")
        connection.execute("CREATE SCHEMA failing")
        connection.execute(
            "CREATE TABLE failing.visits AS SELECT n AS patient, 'A' AS ward, n % 7 AS x FROM generate_series(1, 100) n"
        )
        connection.execute(
            "CREATE VIEW failing.endless AS WITH s AS MATERIALIZED (SELECT pg_sleep(3600)) SELECT v.* FROM"
            " failing.visits AS v, s"
        )
        yield connection
        connection.execute("DROP SCHEMA IF EXISTS failing CASCADE")


def opened(data: Any, tmp_path: Path, table: str | None = None, **said: Any) -> Table:
    usual: dict[str, Any] = {"unit": dp.rows(), "budget": dp.Budget(1), "name": "visits"}
    return dp.open(data, table=table, ledger=tmp_path / "visits.ledger", **usual | said)


@pytest.fixture(params=["duckdb", "postgresql", pytest.param("spark", marks=pytest.mark.slow)])
def endless(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Table]:
    """A table of which no question is ever answered, and another that answers: ``other`` opens it."""
    unlooked(monkeypatch)
    if request.param == "duckdb":
        connection = duckdb.connect()
        connection.execute(f"CREATE VIEW endless AS {ENDLESS}")
        connection.execute("CREATE TABLE visits AS SELECT 1 AS patient, 'A' AS ward, 1.0 AS x")
        with opened(connection, tmp_path, "endless") as table:
            yield table
        connection.close()
        return
    if request.param == "spark":
        rows = request.getfixturevalue("spark").range(10**13)
        with opened(rows.selectExpr("id AS patient", "'A' AS ward", "DOUBLE(id % 7) AS x"), tmp_path) as table:
            yield table
        return
    request.getfixturevalue("owner")
    with opened(request.getfixturevalue("server"), tmp_path, "failing.endless") as table:
        yield table


def ask(table: Table, epsilon: float = 0.75) -> Any:
    return table.agg(n=dp.count(), s=dp.sum("x", 0, 7)).release(epsilon=epsilon)


def sound(table: Table, *, charges: int, releases: int = 0) -> None:
    """The ledger is consistent, and holds what was charged and what was released."""
    found = table.ledger.verify()
    assert found.ok
    assert (found.charges, found.releases) == (charges, releases)


def test_a_question_cancelled_from_another_thread_stays_charged(endless: Table) -> None:
    with again_and_again(endless.rows.engine.cancel), pytest.raises(QuestionFailedError, match="cancelled"):
        ask(endless)
    sound(endless, charges=1)
    with pytest.raises(BudgetExceededError):
        ask(endless, 0.5)
    assert endless.rows.engine.run(_one()).num_rows == 1


@pytest.mark.usefixtures("interrupts")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # an interrupt that Python ignored
def test_ctrl_c_stops_the_engine_at_once_and_says_that_the_charge_stays(
    endless: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    late = 3.0 if endless.rows.engine.name == "Spark" else 0.7  # it takes a while to begin
    working, done = threading.Event(), threading.Event()
    real = type(endless.rows.engine).run

    def watched(*given: Any, **how: Any) -> Any:
        working.set()
        try:
            return real(*given, **how)
        finally:
            done.set()

    monkeypatch.setattr(type(endless.rows.engine), "run", watched)
    impatient = threading.Thread(target=press_ctrl_c, args=(late, working, done))
    impatient.start()
    with pytest.raises(KeyboardInterrupt) as stopped:
        ask(endless)  # it would compute for an hour or forever
    impatient.join()
    assert stopped.value.__notes__ == ["The question was charged (entry 1) before it was interrupted; that stays."]
    assert stopped.value.__context__ is None
    sound(endless, charges=1)
    assert endless.rows.engine.run(_one()).num_rows == 1


def press_ctrl_c(late: float, working: threading.Event, done: threading.Event) -> None:
    """Again after a while: Python ignores an interrupt that comes while it collects garbage."""
    working.wait()
    while not done.wait(late):
        os.kill(os.getpid(), signal.SIGINT)
        late = 20.0


def _one() -> Any:
    from sqlglot import exp  # noqa: PLC0415  # only here

    return exp.select(exp.alias_(exp.Literal.number(1), "one", quoted=True))


def test_a_server_that_allows_no_more_time_is_told_as_such(
    owner: Any, server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    unlooked(monkeypatch)
    owner.execute("DROP ROLE IF EXISTS hurried")
    owner.execute("CREATE ROLE hurried LOGIN")
    owner.execute("GRANT USAGE ON SCHEMA failing TO hurried")
    owner.execute("GRANT SELECT ON failing.visits, failing.endless TO hurried")
    try:
        with opened(server.replace("postgres:", "hurried:"), tmp_path, "failing.endless") as table:
            owner.execute("ALTER ROLE hurried SET statement_timeout = '500ms'")  # for connections made from now on
            owner.execute("SELECT pg_terminate_backend(pid, 600000) FROM pg_stat_activity WHERE usename = 'hurried'")
            with pytest.raises(QuestionFailedError, match="it was cancelled, or took too long"):
                ask(table)
            sound(table, charges=1)
            table.ledger.charge(dp.privacy.Pure(0.25), purpose="goes on")
            table.ledger.declare(renew=True, why="the same people without the wait")
        owner.execute("ALTER ROLE hurried RESET statement_timeout")
        with (
            opened(server.replace("postgres:", "hurried:"), tmp_path, "failing.visits") as table,
            pytest.raises(BudgetExceededError),
        ):
            ask(table, 0.5)
    finally:
        owner.execute("DROP OWNED BY hurried")
        owner.execute("DROP ROLE hurried")


def test_a_server_out_of_room_for_temporary_files_is_told_as_such(owner: Any, server: str, tmp_path: Path) -> None:
    owner.execute(
        "CREATE TABLE failing.many AS SELECT n AS patient, md5(n::text) AS note, 1.0::float AS x"
        " FROM generate_series(1, 60000) n"
    )
    owner.execute("DROP ROLE IF EXISTS cramped")
    owner.execute("CREATE ROLE cramped LOGIN")
    owner.execute("GRANT USAGE ON SCHEMA failing TO cramped")
    owner.execute("GRANT SELECT ON failing.many TO cramped")
    owner.execute("ALTER ROLE cramped SET temp_file_limit = '64kB'")
    owner.execute("ALTER ROLE cramped SET work_mem = '64kB'")
    try:
        where = server.replace("postgres:", "cramped:")
        with opened(where, tmp_path, "failing.many", unit=dp.user("patient")) as table:
            with pytest.raises(QuestionFailedError, match="ran out"):
                table.agg(d=dp.count_distinct("note", at_most=1)).release(epsilon=0.5)
            sound(table, charges=1)
            assert table.agg(n=dp.count()).preview(epsilon=0.5).fits
    finally:
        owner.execute("DROP OWNED BY cramped")
        owner.execute("DROP ROLE cramped")


def test_an_engine_out_of_memory_is_told_as_such_and_answers_smaller_questions(tmp_path: Path) -> None:
    path = tmp_path / "visits.parquet"
    notes = "SELECT range AS patient, repeat(md5(range::VARCHAR), 30) AS note, 1.0 AS x FROM range(100000)"
    duckdb.execute(f"COPY ({notes}) TO '{path}'")
    with opened(path, tmp_path, unit=dp.user("patient"), memory="16MB", threads=1) as table:
        with pytest.raises(QuestionFailedError, match="memory, or room for temporary files, ran out") as failed:
            table.agg(d=dp.count_distinct("note", at_most=1)).release(epsilon=0.5)
        assert failed.value.__context__ is None
        sound(table, charges=1)
        assert table.agg(n=dp.count()).release(epsilon=0.5).to_arrow().num_rows == 1
        sound(table, charges=2, releases=1)


def test_a_part_whose_file_is_gone_fails_and_the_others_go_on(tmp_path: Path) -> None:
    for day in ("2026-11-13", "2026-11-14", "2026-11-15"):
        folder = tmp_path / "visits" / f"day={day}"
        folder.mkdir(parents=True)
        pq.write_table(pa.table({"x": [1.0, 2.0]}), folder / "0.parquet")
    with opened(tmp_path / "visits", tmp_path, parts="day") as table:
        (tmp_path / "visits" / "day=2026-11-14" / "0.parquet").unlink()
        with pytest.raises(QuestionFailedError, match="a file is missing"):
            ask(table.part("2026-11-14"))
        sound(table, charges=1)
        with pytest.raises(BudgetExceededError, match="from the part 2026-11-14"):
            ask(table.part("2026-11-14"), 0.5)
        assert ask(table.part("2026-11-15"), 1).receipt.parts == ("2026-11-15",)
        sound(table, charges=2, releases=1)
        with pytest.raises(BudgetExceededError, match="from the part 2026-11-14"):
            ask(table.part("2026-11-14"), 0.5)


class Wire:
    """A connection between a driver and the server of its ledger that can be cut while a charge is committed.

    ``cuts`` says what becomes of the next commits of transactions that write: "before" loses the request, "after"
    the server's word that it is done.
    """

    def __init__(self, home: str, server: str) -> None:
        self._beyond = f"{parse_qs(urlsplit(server).query)['host'][0]}/.s.PGSQL.5432"
        self.cuts: list[str] = []
        self.address = f"postgresql://postgres:@/postgres?host={home}"
        self._listening = socket.socket(socket.AF_UNIX)
        self._listening.bind(f"{home}/.s.PGSQL.5432")
        self._listening.listen()
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._listening.accept()
            except OSError:
                return
            far = socket.socket(socket.AF_UNIX)
            far.connect(self._beyond)
            silent = threading.Event()
            threading.Thread(target=self._back, args=(far, near, silent), daemon=True).start()
            threading.Thread(target=self._forth, args=(near, far, silent), daemon=True).start()

    def _forth(self, near: socket.socket, far: socket.socket, silent: threading.Event) -> None:
        writing = False
        while data := _received(near):
            writing = b"READ WRITE" in data or (writing and b"BEGIN" not in data)
            how = self.cuts.pop(0) if writing and b"COMMIT\0" in data and self.cuts else ""
            if how == "after":
                silent.set()
            if how == "before" or not _sent(far, data):
                break
            if how:
                return  # the server's answer is heard on the way back, where the line is cut
        _shut(near, far)

    def _back(self, far: socket.socket, near: socket.socket, silent: threading.Event) -> None:
        while (data := _received(far)) and not silent.is_set() and _sent(near, data):
            pass
        _shut(near, far)

    def close(self) -> None:
        self._listening.close()


def _received(one: socket.socket) -> bytes:
    try:
        return one.recv(1 << 16)
    except OSError:
        return b""


def _sent(one: socket.socket, data: bytes) -> bool:
    try:
        one.sendall(data)
    except OSError:
        return False
    return True


def _shut(*both: socket.socket) -> None:
    for one in both:
        with contextlib.suppress(OSError):
            one.shutdown(socket.SHUT_RDWR)
        one.close()


@pytest.fixture
def wire(server: str) -> Iterator[Wire]:
    home = tempfile.mkdtemp(prefix="wire-")
    made = Wire(home, server)
    yield made
    made.close()
    shutil.rmtree(home)


VISITS = pa.table({"ward": ["a", "b"], "x": [1.0, 2.0]})


def shared(wire: Wire, schema: str) -> Table:
    """A table whose ledger is behind the wire."""
    terms: dict[str, Any] = {"unit": dp.rows(), "budget": dp.Budget(1), "name": "visits", "parts": "ward"}
    return dp.open(VISITS, ledger=f"{wire.address}&schema={schema}", **terms)


@pytest.mark.parametrize(("cut", "charges"), [("before", 0), ("after", 1)])
def test_a_charge_whose_commit_is_not_acknowledged_releases_nothing_and_is_not_lost(
    wire: Wire, cut: str, charges: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[object] = []
    real = DuckDbEngine.run

    def watched(self: DuckDbEngine, select: Any, **how: Any) -> pa.Table:
        asked.append(select)
        return real(self, select, **how)

    with shared(wire, f"unacknowledged_{cut}") as table:
        monkeypatch.setattr(DuckDbEngine, "run", watched)
        wire.cuts[:] = [cut]
        with pytest.raises(LedgerUnavailableError, match="the charge may have been made, and stays"):
            ask(table.part("a"), 0.5)
        assert not wire.cuts
        assert not asked  # no row was looked at
        sound(table, charges=charges)
        assert ask(table.part("a"), 0.5).receipt.sequence == charges + 1
        sound(table, charges=charges + 1, releases=1)
        if charges:  # what was not acknowledged counts
            with pytest.raises(BudgetExceededError, match="from the part a"):
                ask(table.part("a"), 0.1)
        assert ask(table.part("b"), 0.5).receipt.parts == ("b",)
        sound(table, charges=charges + 2, releases=2)


@pytest.mark.parametrize(("cut", "releases"), [("before", 0), ("after", 1)])
def test_an_answer_whose_record_is_not_acknowledged_is_handed_over_all_the_same(
    wire: Wire, cut: str, releases: int
) -> None:
    with shared(wire, f"unrecorded_{cut}") as table:
        wire.cuts[:] = ["", cut]
        with pytest.raises(NotRecordedError) as failed:
            ask(table.part("a"), 0.5)
        assert failed.value.release.receipt.parts == ("a",)
        sound(table, charges=1, releases=releases)
        ask(table.part("a"), 0.5)
        sound(table, charges=2, releases=releases + 1)


def test_a_backend_that_is_terminated_while_it_charges_charges_nothing(
    wire: Wire, server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = Chain.last

    def cutting(self: Chain, session: Any, known: Any, *, lock: bool) -> Any:
        last = real(self, session, known, lock=lock)
        if lock:
            with psycopg.connect(server, autocommit=True) as connection:
                connection.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()"
                    " AND state = 'idle in transaction' AND query LIKE '%ledger_%'"
                )
        return last

    with shared(wire, "terminated") as table:
        with monkeypatch.context() as patch:
            patch.setattr(Chain, "last", cutting)
            with pytest.raises(LedgerUnavailableError, match="No receipt was given"):
                ask(table.part("a"), 0.5)
        sound(table, charges=0)
        ask(table.part("a"), 1)
        sound(table, charges=1, releases=1)

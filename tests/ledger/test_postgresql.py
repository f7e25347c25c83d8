import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import Engine, create_engine, text
from sqlalchemy.engine import make_url
from sqlalchemy.exc import DBAPIError
from tests.waiting import HANGS

from defocus.errors import InvalidParameterError, LedgerBusyError, LedgerUnavailableError, MissingExtraError
from defocus.ledger import Ledger, verify
from defocus.ledger.chain import Chain
from defocus.ledger.postgresql import PostgresqlSchema
from defocus.privacy.budgets import Budget
from defocus.privacy.events import Laplace
from defocus.privacy.units import rows

Opener = Callable[..., Ledger]
CUT = text(
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND datname = 'postgres'"
)


@pytest.fixture
def where(postgresql: str) -> str:
    return postgresql


@pytest.fixture
def engine(where: str) -> Any:
    url = make_url(where)
    made: Engine = create_engine(url.difference_update_query(["schema"]).set(drivername="postgresql+psycopg"))
    yield made
    made.dispose()


def schema(where: str) -> str:
    return str(make_url(where).query["schema"])


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE ledger_entries SET body = 'x' WHERE sequence = 1",
        "DELETE FROM ledger_entries WHERE sequence = 1",
        "TRUNCATE ledger_entries",
        "INSERT INTO ledger_entries (sequence, hash, kind, body) VALUES (9, 'x', 'charge', 'x')",
        "UPDATE ledger_head SET sequence = 0",
        "DELETE FROM ledger_head",
        "TRUNCATE ledger_head",
    ],
)
def test_triggers_keep_accidents_away(opened: Opener, where: str, engine: Engine, statement: str) -> None:
    opened().charge(Laplace(10), purpose="count")
    with engine.begin() as connection:
        connection.execute(text(f"SET search_path TO {schema(where)}"))
        with pytest.raises(DBAPIError, match="append-only"):
            connection.execute(text(statement))
        connection.rollback()
    assert verify(where).ok


def test_another_writer_is_waited_for_and_then_named(opened: Opener, where: str, engine: Engine) -> None:
    ledger = opened(timeout=0.2)
    with engine.begin() as connection:
        connection.execute(text(f"SELECT * FROM {schema(where)}.ledger_head FOR UPDATE"))  # noqa: S608  # our own
        with pytest.raises(LedgerBusyError, match="nothing was charged"):
            ledger.charge(Laplace(10), purpose="count")
    ledger.charge(Laplace(10), purpose="count")
    assert len(ledger) == 2


def test_a_charge_waits_for_the_one_before_and_sees_what_it_spent(opened: Opener, where: str, engine: Engine) -> None:
    ledger = opened(timeout=HANGS)
    done: list[int] = []
    with engine.begin() as connection:
        connection.execute(text(f"SELECT * FROM {schema(where)}.ledger_head FOR UPDATE"))  # noqa: S608  # our own
        waiting = threading.Thread(
            target=lambda: done.append(ledger.charge(Laplace(10), purpose="count").sequence), daemon=True
        )
        waiting.start()
        waiting.join(0.3)
        assert not done
    waiting.join(HANGS)
    assert done == [1]


def test_commits_are_synchronous_whatever_the_role_prefers(opened: Opener, engine: Engine) -> None:
    with engine.begin() as connection:
        connection.execute(text("ALTER ROLE postgres SET synchronous_commit = off"))
    try:
        ledger = opened()
        with ledger._chain.store.connection() as plain_connection:
            assert plain_connection.exec_driver_sql("SHOW synchronous_commit").scalar() == "off"
        with ledger._chain.store.connection(write=True) as writing:
            assert writing.exec_driver_sql("SHOW synchronous_commit").scalar() == "on"
            assert writing.exec_driver_sql("SHOW transaction_isolation").scalar() == "read committed"
    finally:
        with engine.begin() as connection:
            connection.execute(text("ALTER ROLE postgres RESET synchronous_commit"))


def test_a_connection_cut_by_the_server_is_replaced(opened: Opener, engine: Engine) -> None:
    ledger = opened()
    ledger.charge(Laplace(10), purpose="count")
    with engine.begin() as connection:
        connection.execute(CUT)
    ledger.charge(Laplace(10), purpose="count")
    assert ledger.verify().ok


def test_a_connection_cut_while_charging_gives_no_receipt(
    opened: Opener, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = opened()
    real = Chain.last

    def cutting(self: Chain, session: Any, anchors: Any, *, lock: bool) -> Any:
        last = real(self, session, anchors, lock=lock)
        with engine.begin() as connection:
            connection.execute(CUT)
        return last

    with monkeypatch.context() as patch:
        patch.setattr(Chain, "last", cutting)
        with pytest.raises(LedgerUnavailableError, match="No receipt was given"):
            ledger.charge(Laplace(10), purpose="count")
    assert len(ledger) == 1
    assert ledger.verify().ok


def test_two_schemas_hold_two_ledgers(opened: Opener, where: str) -> None:
    other = f"{where}_other"
    opened().charge(Laplace(10), purpose="count")
    with Ledger.open(other, budget=Budget(5), unit=rows(), dataset="claims") as second:
        assert len(second) == 1
    assert len(opened()) == 2


def test_a_table_of_the_same_name_elsewhere_is_not_taken_for_the_ledger(
    opened: Opener, where: str, engine: Engine
) -> None:
    opened().charge(Laplace(10), purpose="count")
    with engine.begin() as connection:
        connection.execute(text("CREATE TABLE IF NOT EXISTS public.ledger_entries (sequence bigint)"))
    assert verify(where).ok
    with engine.begin() as connection:
        connection.execute(text("DROP TABLE public.ledger_entries"))


@pytest.mark.parametrize("name", ["a-b", "A", "1a", "a;drop", 'a"b', "x" * 64])
def test_a_schema_must_be_a_plain_name(server: str, name: str) -> None:
    with pytest.raises(InvalidParameterError, match="plain lower-case name"):
        Ledger.open(make_url(server).update_query_dict({"schema": name}).render_as_string(hide_password=False))


def test_a_server_that_is_not_there_is_named_without_its_password() -> None:
    with pytest.raises(LedgerUnavailableError) as refused:
        Ledger.open("postgresql://ada:secret@127.0.0.1:1/visits?password=hidden", timeout=1)
    assert "ada@127.0.0.1:1/visits" in str(refused.value)
    assert "secret" not in str(refused.value)
    assert "hidden" not in str(refused.value)


def test_without_the_driver_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None if name == "psycopg" else object())
    with pytest.raises(MissingExtraError, match=r"defocus\[postgresql\]"):
        Ledger.open("postgresql://ada@127.0.0.1/visits")


def test_a_server_without_fsync_is_refused(opened: Opener, monkeypatch: pytest.MonkeyPatch) -> None:
    class Careless:
        def exec_driver_sql(self, statement: str) -> "Careless":
            assert statement == "SHOW fsync"
            return self

        def scalar(self) -> str:
            return "off"

    place = opened()._chain.store.place
    assert isinstance(place, PostgresqlSchema)
    with pytest.raises(LedgerUnavailableError, match="fsync = off"):
        place.exists(Careless())  # type: ignore[arg-type]
    monkeypatch.undo()


def test_a_ledger_in_postgresql_is_usable_from_a_second_process(opened: Opener, where: str) -> None:
    opened().charge(Laplace(10), purpose="count")
    code = "import sys; from defocus.ledger import Ledger; print(len(Ledger.open(sys.argv[1])))"
    done = subprocess.run([sys.executable, "-c", code, where], capture_output=True, text=True, check=True)  # noqa: S603
    assert done.stdout.strip() == "2"

"""Every test of the ledger that takes ``where`` runs on an SQLite file and, slowly, on a real PostgreSQL server."""

from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, create_engine, text

from defocus.ledger import Ledger
from defocus.ledger.places import url_of
from defocus.privacy.budgets import Budget
from defocus.privacy.units import user

Opener = Callable[..., Ledger]
_numbers = count()


@pytest.fixture
def postgresql(server: str) -> str:
    """An address whose schema nobody has used yet."""
    return f"{server}&schema=ledger_{next(_numbers)}"


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.slow)])
def where(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A place for a new ledger."""
    if request.param == "sqlite":
        return str(tmp_path / "visits.ledger")
    address: str = request.getfixturevalue("postgresql")
    return address


@pytest.fixture
def opened(where: str) -> Iterator[Opener]:
    """Opens ledgers at ``where`` and closes them after the test."""
    made: list[Ledger] = []

    def opener(**options: Any) -> Ledger:
        terms: dict[str, Any] = {"budget": Budget(1), "unit": user("patient"), "dataset": "visits"}
        made.append(Ledger.open(options.pop("where", where), **terms | options))
        return made[-1]

    yield opener
    for ledger in made:
        ledger.close()


@pytest.fixture
def tampering(where: str) -> Iterator[Callable[..., None]]:
    """Runs SQL against the stored tables, as someone with full access would, triggers out of the way."""
    url = url_of(where)
    engine: Engine
    if url is None:
        engine = create_engine(f"sqlite:///{where}")
        tables = ""
    else:
        engine = create_engine(url.difference_update_query(["schema"]).set(drivername="postgresql+psycopg"))
        tables = f"SET search_path TO {url.query['schema']}"

    def tamper(*statements: str, **values: Any) -> None:
        with engine.begin() as connection:
            if tables:
                connection.exec_driver_sql(tables)
                connection.exec_driver_sql("SET LOCAL session_replication_role = replica")
                belts = []
            else:
                found = connection.exec_driver_sql("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'")
                belts = [(name, sql) for name, sql in found]
            for name, _ in belts:
                connection.exec_driver_sql(f"DROP TRIGGER {name}")
            for statement in statements:
                connection.execute(text(statement), values if ":" in statement else {})
            for _, sql in belts:
                connection.exec_driver_sql(sql)

    yield tamper
    engine.dispose()

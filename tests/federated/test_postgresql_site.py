"""One site keeps its rows in PostgreSQL, and the others do not: the integers are those of the union."""

from pathlib import Path
from typing import Any

import psycopg
import pytest
from tests.federated.unions import FACTS, ROWS, adds_up

import defocus as dp


@pytest.mark.slow
def test_a_site_on_postgresql_adds_up_with_the_others(
    server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute("DROP SCHEMA IF EXISTS federated CASCADE")
        connection.execute("CREATE SCHEMA federated")
        connection.execute("CREATE TABLE federated.stays (patient bigint, ward text, days bigint)")
        with connection.cursor() as cursor:
            cursor.executemany("INSERT INTO federated.stays VALUES (%s, %s, %s)", ROWS[:100])
        try:
            facts: dict[str, Any] = {"ledger": tmp_path / "north", **FACTS}
            adds_up(lambda: dp.open(server, table="federated.stays", **facts), tmp_path, monkeypatch)
        finally:
            connection.execute("DROP SCHEMA federated CASCADE")

from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import psycopg
import pytest
from argon2 import PasswordHasher
from tests.server.making import Served, everybody, hospital, serving

from defocus.server.requests import Desk
from defocus.server.roles import Person, Role


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    made = hospital(tmp_path)
    yield made
    made.close()


@pytest.fixture
def database(server: str) -> Iterator[str]:
    """An empty database of one test."""
    name = f"hospital_{uuid4().hex}"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
        yield server.replace("/postgres?", f"/{name}?")
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture
def people(desk: Desk) -> dict[Role, Person]:
    return everybody(desk)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving(tmp_path_factory.mktemp("server")) as made:
        yield made


@pytest.fixture(autouse=True)
def quick_passwords(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hash passwords with little memory and time, which the library would not by itself."""
    monkeypatch.setattr(
        "defocus.server.people.PasswordHasher", lambda: PasswordHasher(time_cost=1, memory_cost=8, parallelism=1)
    )

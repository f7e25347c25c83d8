"""Sites as processes on this machine, with TLS: killed, they stop nobody else, and what they were charged stays."""

import os
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.federated.processes import Sites, declared, sites_in

import defocus as dp
from defocus.errors import DefocusError, InvalidParameterError, ProtocolError, TooFewPartiesError
from defocus.federated.membership import make_identity, read_membership
from defocus.federated.transport import decoded

pytestmark = pytest.mark.slow
NAMES = ("north", "south", "east", "west", "centre")
SQL = "SELECT COUNT(*) AS n FROM visits"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    declared(tmp_path, NAMES, dropouts=1, patience=300)
    return tmp_path


@pytest.fixture
def running(home: Path) -> Iterator[Sites]:
    with sites_in(home, NAMES) as sites:
        yield sites


def test_five_hospitals_answer_as_processes_and_go_on_when_some_are_killed(home: Path, running: Sites) -> None:
    together = dp.federation(home / "federation.toml")
    assert together.sql_query(SQL).preview(epsilon=10).columns[0].name == "n"
    assert abs(together.sql(SQL, epsilon=10)["n"].values[0] - 1000) < 20
    with pytest.raises(TooFewPartiesError) as refused:
        together.sql(SQL, epsilon=30)
    assert "Its policy allows no epsilon above 20" in str(refused.value)
    running.kill("east")
    with pytest.raises(AttributeError, match="no 'other'"):
        together.other("wards")
    groups = together.derive(long="days > 4").group_by("long", keys=[False, True]).agg(n=dp.count(), d=dp.mean("days"))
    short, long = groups.release(epsilon=15)["n"].values
    assert abs(short - 200) < 50  # processes draw from the system
    assert abs(long - 600) < 50
    answer = together.where("days < 10").agg(n=dp.count()).release(epsilon=10)
    assert abs(answer["n"].values[0] - 400) < 20
    assert "east took no part to the end, and its rows are not in these numbers" in " ".join(map(str, answer.rules))
    running.kill("west")
    with pytest.raises(TooFewPartiesError, match="3 parties answered, but it takes 4"):
        together.sql(SQL, epsilon=10)
    running.start("east")
    assert abs(together.sql(SQL, epsilon=10)["n"].values[0] - 800) < 20
    running.kill("north")
    with dp.open(home / "north-data.toml") as table:
        assert charges(table.ledger) == 4


def charges(ledger: dp.Ledger) -> int:
    return sum(entry.kind == "charge" for entry in ledger.entries())


def test_a_site_that_is_killed_after_its_charge_voids_nothing_and_its_charge_stays(home: Path, running: Sites) -> None:
    """Whenever it dies, there is the sum of those that are left, or of all, or none: never a part of a site's rows."""
    together = dp.federation(home / "federation.toml")
    made: list[float] = []
    with dp.Ledger.open(home / "north.ledger") as ledger, ThreadPoolExecutor(1) as pool:
        before = charges(ledger)
        answered = pool.submit(together.sql, SQL, epsilon=10)
        while charges(ledger) == before and not answered.done():
            pass  # the charge is what it waits for
        running.kill("north")
        answer = answered.result()
        made += [float(answer["n"].values[0])]
        assert charges(ledger) == before + 1
    told = " ".join(map(str, answer.rules))
    expected = 800 if "north took no part to the end, and its rows are not in these numbers" in told else 1000
    assert abs(made[0] - expected) < 20


def test_a_site_hears_its_coordinator_and_nobody_else(home: Path, running: Sites) -> None:
    assert set(running.pids) == set(NAMES)
    strangers = home / "strangers"
    strangers.mkdir()
    make_identity("coordinator", strangers)
    text = (home / "federation.toml").read_text()
    (strangers / "federation.toml").write_text(text.replace('"coordinator.pem"', f'"{strangers}/coordinator.pem"'))
    for name in NAMES:
        (strangers / f"{name}.pem").write_bytes((home / f"{name}.pem").read_bytes())
    with pytest.raises(TooFewPartiesError):
        dp.federation(strangers / "federation.toml").sql(SQL, epsilon=1)
    with pytest.raises(InvalidParameterError, match="does not belong to the coordinator"):
        dp.federation(home / "federation.toml", key=strangers / "coordinator.key")
    member = read_membership(home / "federation.toml").sites[0]
    for junk in (b"", b"GET / HTTP/1.1\r\n\r\n", os.urandom(4096)):
        with socket.create_connection((member.host, member.port)) as connected:
            connected.sendall(junk)
    other = text.replace("dropouts = 1\n", "")
    (home / "other.toml").write_text(other)
    with pytest.raises(TooFewPartiesError) as refused:
        dp.federation(home / "other.toml").sql(SQL, epsilon=1)
    assert "Its federation file is not that of the coordinator" in str(refused.value)
    assert abs(dp.federation(home / "federation.toml").sql(SQL, epsilon=10)["n"].values[0] - 1000) < 20


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (("dropouts = 1", "dropouts = 2"), "the rest is too few"),
        (("dropouts = 1", "dropouts = 1\noverlap = 9"), "at more sites than there are"),
        (('certificate = "north.pem"', 'certificate = "south.pem"'), "two members have one certificate"),
        (('certificate = "north.pem"', 'certificate = "north.key"'), "is no certificate of a site"),
        (('address = "127.0.0.1:', 'address = "127.0.0.1:x'), "must be a host and a port"),
        (("dropouts = 1", "drop = 1"), "drop"),
    ],
)
def test_a_federation_file_that_means_nothing_is_refused(home: Path, change: tuple[str, str], words: str) -> None:
    text = (home / "federation.toml").read_text()
    (home / "federation.toml").write_text(text.replace(*change))
    with pytest.raises(DefocusError, match=words):
        dp.federation(home / "federation.toml")


def test_a_key_is_made_once_and_read_by_its_owner_alone(tmp_path: Path) -> None:
    key, _ = make_identity("north", tmp_path)
    assert key.stat().st_mode & 0o077 == 0
    with pytest.raises(InvalidParameterError, match="already"):
        make_identity("north", tmp_path)
    for name in ("../north", "", "nörd", "a" * 65):
        with pytest.raises(InvalidParameterError, match="cannot be called"):
            make_identity(name, tmp_path)


@pytest.mark.parametrize(
    "body", [b"", b"[]", b'{"a": 1}', b'{"a":1,"a":1}', b'{"a":NaN}', b"\xff", b"[" * 10_000, b'{"b":1,"a":1}', b"1"]
)
def test_what_is_no_message_is_refused(body: bytes) -> None:
    with pytest.raises(ProtocolError):
        decoded(body)
    assert decoded(b'{"a":1,"b":[null,"x"]}') == {"a": 1, "b": [None, "x"]}

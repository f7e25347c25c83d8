"""Backups that are whole, and a restore that forgets no charge; records in PostgreSQL; the commands."""

import sqlite3
import tarfile
import time
from contextlib import closing
from pathlib import Path

import pytest
from tests.server.making import COUNT, SECRET, finished, hospital, person, working

from defocus.cli import main
from defocus.errors import InvalidParameterError, LedgerDamagedError, LedgerMismatchError, RecordsError
from defocus.server import operations
from defocus.server.demo import PEOPLE, demo
from defocus.server.operations import Settings, backup, restore
from defocus.server.records import FORMAT, Records
from defocus.server.requests import Desk
from defocus.server.roles import Role


def released(desk: Desk) -> str:
    """The answer to one more request."""
    ana = person(desk, Role.ANALYST)
    desk.datasets.set_policy(person(desk, Role.STEWARD), "visits", automatic=1, most=None, why="a test")
    with working(desk):
        done = finished(desk, ana, desk.submit(ana, "visits", COUNT, "planning", "beds").id)
    return desk.answer(ana, done.id).to_csv()


def answers(desk: Desk) -> list[str]:
    ana = person(desk, Role.ANALYST)
    return [desk.answer(ana, one.id).to_csv() for one in desk.history(ana)]


def test_a_backup_of_a_running_server_restores_everything(tmp_path: Path) -> None:
    desk = hospital(tmp_path / "one")
    answer, key = released(desk), desk.key(person(desk, Role.ANALYST))
    backup(desk.settings, tmp_path / "b.tar")
    desk.close()
    assert (tmp_path / "b.tar").stat().st_mode & 0o777 == 0o600
    told = restore(Settings(home=tmp_path / "two"), tmp_path / "b.tar")
    assert told[0] == "datasets/visits/data.ledger: 3 entries; nothing was there"
    other = Desk(Settings(home=tmp_path / "two"))
    assert answers(other) == [answer]
    assert other.key(person(other, Role.ANALYST)) == key
    assert released(other) != answer
    assert other.verify(person(other, Role.AUDITOR), "visits").ok
    other.close()


def test_a_backup_holds_the_charge_of_every_answer_in_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    desk, copied = hospital(tmp_path / "one"), operations._copied
    answer = released(desk)

    def slowly(file: Path, copy: Path) -> None:
        copied(file, copy)
        if file.name in {"server.db", "data.ledger"}:
            released(desk)  # people go on asking

    monkeypatch.setattr(operations, "_copied", slowly)
    backup(desk.settings, tmp_path / "b.tar")
    desk.close()
    restore(Settings(home=tmp_path / "two"), tmp_path / "b.tar")
    other = Desk(Settings(home=tmp_path / "two"))
    assert answers(other) == [answer]
    ledger = other.ledger(person(other, Role.AUDITOR), "visits")
    assert sum(entry.kind == "charge" for entry in ledger.entries()) == 2  # none that an answer rests on is lacking
    other.close()


def test_nothing_is_restored_under_a_server_that_runs(tmp_path: Path) -> None:
    desk = hospital(tmp_path)
    released(desk)
    backup(desk.settings, tmp_path / "b.tar")
    with working(desk), pytest.raises(InvalidParameterError, match="A server runs in"):
        restore(desk.settings, tmp_path / "b.tar")
    desk.close()
    assert restore(desk.settings, tmp_path / "b.tar")[0].endswith("3 entries, as they were")


def test_a_restore_that_would_forget_charges_is_refused(tmp_path: Path) -> None:
    desk = hospital(tmp_path / "one")
    answer = released(desk)
    backup(desk.settings, tmp_path / "b.tar")
    later = released(desk)
    desk.close()
    with pytest.raises(LedgerMismatchError, match="has 3 entries, and the ledger that is there has 5 entries"):
        restore(desk.settings, tmp_path / "b.tar")
    same = Desk(desk.settings)
    assert answers(same) == [later, answer]
    same.close()
    told = restore(desk.settings, tmp_path / "b.tar", accept_loss=True)
    assert "charges after entry 2 are forgotten" in told[0]
    back = Desk(desk.settings)
    assert answers(back) == [answer]
    back.close()


def test_an_older_ledger_that_is_put_back_by_hand_is_noticed(tmp_path: Path) -> None:
    desk = hospital(tmp_path)
    released(desk)
    ledger = desk.settings.folder("visits") / "data.ledger"
    older = ledger.read_bytes()
    released(desk)
    desk.close()
    ledger.write_bytes(older)
    again = Desk(desk.settings)
    with pytest.raises(LedgerDamagedError):
        again.datasets.table("visits")
    again.close()


def test_what_is_no_backup_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.tar").write_text("no")
    with tarfile.open(tmp_path / "y.tar", "w") as archive:
        archive.add(tmp_path / "x.tar", "../../outside")
    for name in ("x.tar", "y.tar", "none.tar"):
        with pytest.raises(InvalidParameterError, match="not a backup"):
            restore(Settings(home=tmp_path / "home"), tmp_path / name)
    assert not (tmp_path.parent / "outside").exists()
    with pytest.raises(InvalidParameterError, match="no server in"):
        backup(Settings(home=tmp_path / "home"), tmp_path / "b.tar")
    with pytest.raises(InvalidParameterError, match="pg_dump"):
        backup(Settings(home=tmp_path, records="postgresql://x/y"), tmp_path / "b.tar")


def test_the_commands_back_up_and_restore(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    desk = hospital(tmp_path / "one")
    released(desk)
    desk.close()
    assert main(["backup", str(tmp_path / "b.tar"), "--home", str(tmp_path / "one")]) == 0
    assert main(["restore", str(tmp_path / "b.tar"), "--home", str(tmp_path / "one")]) == 0
    assert "3 entries, as they were" in capsys.readouterr().out


def test_the_demo_has_one_person_of_each_role_and_links_until_they_came(tmp_path: Path) -> None:
    desk = Desk(Settings(home=tmp_path))
    links = demo(desk)
    assert {role for _, role, _ in links} == set(PEOPLE)
    name, _, link = links[0]
    desk.people.accept(link.rsplit("/", 1)[1], "correct horse battery")
    assert name not in {each for each, _, _ in demo(desk)}
    ana = person(desk, Role.ANALYST)
    question = {"sql": "SELECT ward, AVG(days) AS stay FROM visits GROUP BY ward", "epsilon": 0.1}
    assert desk.preview(ana, "visits", question).verdict.state == "approved"
    desk.close()


def test_records_of_another_version_are_refused(tmp_path: Path) -> None:
    made = Records(tmp_path / "server.db", tmp_path)
    made.tell("format", "99")
    made.close()
    with pytest.raises(RecordsError, match="another version"):
        Records(tmp_path / "server.db", tmp_path)
    with pytest.raises(RecordsError, match="cannot be used"):
        Records("postgresql://127.0.0.1:9/none", tmp_path)


def test_records_of_the_first_layout_become_the_present_one(tmp_path: Path) -> None:
    desk = hospital(tmp_path)
    ana = person(desk, Role.ANALYST)
    asked = desk.submit(ana, "visits", COUNT, "planning", "beds")
    desk.close()
    with closing(sqlite3.connect(tmp_path / "server.db")) as older:
        older.execute("DROP INDEX requests_alike")
        for column in (
            "requests DROP COLUMN alike",
            "requests DROP COLUMN declared",
            "requests DROP COLUMN charging",
            "allowances DROP COLUMN delta",
        ):
            older.execute(f"ALTER TABLE {column}")
        older.execute("UPDATE about SET value = '1' WHERE name = 'format'")
        older.execute("""UPDATE datasets SET policy = '{"automatic": 1.0, "most": null}'""")
        older.commit()
    again = hospital(tmp_path)
    assert again.records.about("format") == str(FORMAT)
    assert again.datasets.described("visits").policy["automatic_delta"] == 0
    assert again.request(ana, asked.id).declared == ""
    assert [one.request for one in again.preview(ana, "visits", COUNT).similar] == [asked.id]
    assert again.cancel(ana, asked.id).state == "cancelled"
    again.close()


def test_no_private_value_is_in_the_records(tmp_path: Path) -> None:
    desk = hospital(tmp_path)
    released(desk)
    desk.close()
    stored = b"".join(path.read_bytes() for path in tmp_path.rglob("server.db*"))
    assert SECRET.encode() not in stored
    assert b"SELECT ward" in stored


@pytest.mark.slow
def test_several_processes_share_records_and_ledgers_in_postgresql(tmp_path: Path, database: str) -> None:
    places = {"records": database, "ledgers": database}
    one, other = (hospital(tmp_path, **places) for _ in range(2))
    ana = person(one, Role.ANALYST)
    one.datasets.set_policy(person(one, Role.STEWARD), "visits", automatic=1, most=None, why="a test")
    ids = [one.submit(ana, "visits", {**COUNT, "epsilon": 0.1}, "planning", "beds").id for _ in range(6)]
    with working(one), working(other):
        assert other.records.is_alive(one.records.runner)
        assert not other.records.is_alive("gone")
        assert {finished(other, ana, id_).state for id_ in ids} == {"released"}
    assert one.verify(person(one, Role.AUDITOR), "visits").charges == 6
    assert other.answer(ana, ids[0]).to_csv() == one.answer(ana, ids[0]).to_csv()
    runner = one.records.runner
    one.close()
    while other.records.is_alive(runner):  # the server of the database ends a session when it gets to it
        time.sleep(0.01)
    other.close()

import json
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from defocus.errors import InvalidParameterError, LedgerDamagedError
from defocus.ledger import Ledger, Verification, verify
from defocus.ledger.entries import canonical, digest
from defocus.ledger.places import url_of
from defocus.privacy.events import Laplace, Pure

Opener = Callable[..., Ledger]
Tampering = Callable[..., None]
pytestmark = pytest.mark.usefixtures("ledger")


@pytest.fixture
def ledger(opened: Opener) -> Ledger:
    """Genesis, four charges and a release: entries 0 to 5."""
    book = opened()
    receipts = [book.charge(Pure(Fraction(1, 10)), purpose=f"step {n}", who="Ada") for n in range(4)]
    book.record(receipts[0], 17, keep=True)
    return book


@pytest.fixture
def bodies(ledger: Ledger) -> dict[int, dict[str, Any]]:
    return {entry.sequence: json.loads(entry.body) for entry in ledger.entries()}


def forge(bodies: dict[int, dict[str, Any]], tampering: Tampering, changes: dict[int, dict[str, Any]]) -> None:
    """Rewrite entries and recompute every hash and link after them, as a forger who knows the format would."""
    previous = None
    for number, body in sorted(bodies.items()):
        changed = body | changes.get(number, {}) | ({} if previous is None else {"previous": previous})
        text = canonical(changed)
        previous = digest(text)
        tampering(
            "UPDATE ledger_entries SET body = :body, hash = :hash, kind = :kind, charge = :charge "
            "WHERE sequence = :number",
            body=text,
            hash=previous,
            kind=changed["kind"],
            charge=changed.get("charge"),
            number=number,
        )
    tampering("UPDATE ledger_head SET hash = :hash WHERE one = 1", hash=previous)


def unanchored(where: str) -> None:
    """Remove the anchor that lies beside a ledger in a file, as someone who rewrites the ledger would."""
    if url_of(where) is None:
        Path(f"{where}.anchor").unlink()


def says(found: Verification, *words: str) -> bool:
    return not found and all(any(word in problem for problem in found.problems) for word in words)


def test_an_untouched_ledger_has_no_problem(ledger: Ledger, where: str) -> None:
    found = verify(where, ledger.anchor())
    assert found.ok
    assert (found.entries, found.charges, found.releases) == (6, 4, 1)
    assert found.head == ledger.anchor()
    assert found.require() is found
    assert "no problem" in str(found)


def test_without_an_anchor_the_report_says_what_it_cannot_see(where: str, ledger: Ledger) -> None:
    ledger.close()
    unanchored(where)
    assert "without an anchor" in str(verify(where))


@pytest.mark.parametrize("number", range(6))
def test_an_edited_body_is_found_wherever_it_is(
    bodies: dict[int, dict[str, Any]], tampering: Tampering, where: str, number: int
) -> None:
    edited = canonical(bodies[number] | {"who": "Eve"})
    tampering("UPDATE ledger_entries SET body = :body WHERE sequence = :number", body=edited, number=number)
    assert says(verify(where), f"Entry {number} was altered")


@pytest.mark.parametrize("number", range(6))
def test_an_edited_body_with_its_own_hash_recomputed_is_found_by_the_link_or_the_head(
    bodies: dict[int, dict[str, Any]], tampering: Tampering, where: str, number: int
) -> None:
    edited = canonical(bodies[number] | {"who": "Eve"})
    tampering(
        "UPDATE ledger_entries SET body = :body, hash = :hash WHERE sequence = :number",
        body=edited,
        hash=digest(edited),
        number=number,
    )
    assert says(verify(where), f"entry {number + 1} does not follow" if number < 5 else "head")


@pytest.mark.parametrize("column", ["hash", "kind", "request"])
def test_an_edited_column_is_found(tampering: Tampering, where: str, column: str) -> None:
    tampering(f"UPDATE ledger_entries SET {column} = 'release' WHERE sequence = 2")  # noqa: S608  # names of our own
    assert says(verify(where), "Entry 2 was altered")


@pytest.mark.parametrize("number", range(5))
def test_a_deleted_entry_is_found(tampering: Tampering, where: str, number: int) -> None:
    tampering("DELETE FROM ledger_entries WHERE sequence = :number", number=number)
    assert says(verify(where), f"entries {number} to {number} are missing")


def test_deleting_and_renumbering_is_found(tampering: Tampering, where: str) -> None:
    tampering(
        "DELETE FROM ledger_entries WHERE sequence = 2",
        *(f"UPDATE ledger_entries SET sequence = sequence - 1 WHERE sequence = {n}" for n in (3, 4, 5)),  # noqa: S608
        "UPDATE ledger_head SET sequence = 4 WHERE one = 1",
    )
    assert says(verify(where), "its text says number 3")


def test_reordered_entries_are_found(tampering: Tampering, where: str) -> None:
    tampering(
        "UPDATE ledger_entries SET sequence = 99 WHERE sequence = 2",
        "UPDATE ledger_entries SET sequence = 2 WHERE sequence = 3",
        "UPDATE ledger_entries SET sequence = 3 WHERE sequence = 99",
    )
    assert says(verify(where), "Entry 2 was altered", "Entry 3 was altered")


def test_an_inserted_entry_is_found(
    ledger: Ledger, bodies: dict[int, dict[str, Any]], tampering: Tampering, where: str
) -> None:
    extra = canonical(bodies[4] | {"sequence": 6, "previous": ledger.anchor().hash})
    tampering(
        "INSERT INTO ledger_entries (sequence, hash, kind, body) VALUES (6, :hash, 'charge', :body)",
        hash=digest(extra),
        body=extra,
    )
    assert says(verify(where), "appended to from outside")


def test_a_duplicated_entry_is_found(tampering: Tampering, where: str) -> None:
    tampering(
        "INSERT INTO ledger_entries (sequence, hash, kind, body) "
        "SELECT 6, substr(hash, 2) || substr(hash, 1, 1), kind, body FROM ledger_entries WHERE sequence = 4"
    )
    assert says(verify(where), "Entry 6 was altered")


@pytest.mark.parametrize(("batch", "word"), [(500, "entry 3 appears twice"), (4, "some numbers are used twice")])
def test_a_duplicated_number_is_found_even_if_the_table_allows_it(  # fixtures
    tampering: Tampering, where: str, monkeypatch: pytest.MonkeyPatch, batch: int, word: str
) -> None:
    monkeypatch.setattr("defocus.ledger.verification._BATCH", batch)
    if "postgresql" in where:
        tampering(
            "CREATE TABLE copied AS SELECT * FROM ledger_entries",
            "DROP TABLE ledger_entries",
            "ALTER TABLE copied RENAME TO ledger_entries",
            "INSERT INTO ledger_entries SELECT * FROM ledger_entries WHERE sequence = 3",
        )
    else:
        _duplicate_in_sqlite(where)
    assert says(verify(where), word)


def _duplicate_in_sqlite(where: str) -> None:
    import sqlite3  # noqa: PLC0415

    with sqlite3.connect(where) as connection:
        connection.executescript(
            "CREATE TABLE copied AS SELECT * FROM ledger_entries; DROP TABLE ledger_entries;"
            "ALTER TABLE copied RENAME TO ledger_entries;"
            "INSERT INTO ledger_entries SELECT * FROM ledger_entries WHERE sequence = 3;"
        )
    connection.close()


def test_a_cut_tail_is_found_by_the_head(tampering: Tampering, where: str) -> None:
    tampering("DELETE FROM ledger_entries WHERE sequence > 3")
    assert says(verify(where), "cut off")


def test_a_cut_tail_with_its_head_moved_is_found_by_an_anchor_only(
    ledger: Ledger, bodies: dict[int, dict[str, Any]], tampering: Tampering, where: str
) -> None:
    anchor = ledger.anchor()
    tampering("DELETE FROM ledger_entries WHERE sequence > 3")
    tampering("UPDATE ledger_head SET sequence = 3, hash = :hash", hash=digest(canonical(bodies[3])))
    unanchored(where)
    assert verify(where).ok
    assert says(verify(where, anchor), "older copy was put back")
    assert says(ledger.verify(), "older copy was put back")
    with pytest.raises(LedgerDamagedError, match="older copy"):
        ledger.charge(Laplace(10), purpose="after the cut")


def test_a_chain_rewritten_whole_is_found_by_an_anchor_only(
    ledger: Ledger, bodies: dict[int, dict[str, Any]], tampering: Tampering, where: str
) -> None:
    anchor = ledger.anchor()
    forge(bodies, tampering, {3: {"who": "Eve"}})
    unanchored(where)
    assert verify(where).ok
    for kept in (anchor, str(anchor), (anchor.sequence, anchor.hash)):
        assert says(verify(where, kept), "not the one the anchor was taken of")


@pytest.mark.parametrize(
    ("number", "change", "word"),
    [
        (3, {"cost": [0.0, 0.0]}, "charged less than its event costs"),
        (3, {"cost": []}, "units that its filter does not count in"),
        (3, {"spent": [0.0, 0.0]}, "does not carry the sum"),
        (0, {"spent": [-5.0, 0.0]}, "not a list of amounts"),
        (0, {"spent": [1.0, 0.0]}, "does not carry the sum"),
        (5, {"spent": [0.0, 0.0]}, "does not carry the sum"),
        (3, {"event": {"kind": "Pure", "epsilon": 40}}, "charged less than its event costs"),
        (3, {"event": {"kind": "Pure", "epsilon": 40}}, "although the budget did not cover it"),
        (3, {"event": {"kind": "Anything"}}, "could not be read"),
        (3, {"event": "x"}, "could not be read"),
        (3, {"cost": ["much"]}, "not a list of amounts"),
        (3, {"cost": [10**400]}, "not a list of amounts"),
        (5, {"charge": 0}, "no earlier entry charged"),
        (5, {"charge": 77}, "no earlier entry charged"),
        (0, {"terms": {"dataset": "visits"}}, "does not say what the ledger is for"),
        (0, {"terms": None}, "does not say what the ledger is for"),
        (2, {"who": 7}, "wrong type"),
        (2, {"extra": 1}, "fields are not those"),
        (2, {"kind": "gift"}, "fields are not those"),
    ],
)
def test_a_forged_entry_with_all_hashes_recomputed_is_found_by_what_it_says(  # noqa: PLR0917  # fixtures
    bodies: dict[int, dict[str, Any]],
    tampering: Tampering,
    where: str,
    number: int,
    change: dict[str, Any],
    word: str,
) -> None:
    forge(bodies, tampering, {number: change})
    assert any(word in problem for problem in verify(where).problems)


DEEP, LONG = pytest.param("[" * 100_000, id="deep"), pytest.param("1" * 5000, id="long")


@pytest.mark.parametrize("text", ["", "nonsense", "[]", "{}", '{"a": NaN}', DEEP, '{"b":1,"a":2}', LONG])
def test_a_body_that_is_no_entry_is_reported_and_not_a_crash(
    ledger: Ledger, tampering: Tampering, where: str, text: str
) -> None:
    tampering("UPDATE ledger_entries SET body = :body, hash = :hash WHERE sequence = 2", body=text, hash=digest(text))
    assert says(verify(where), "entry 2")
    with pytest.raises(LedgerDamagedError):
        list(ledger.entries())


@pytest.mark.parametrize("table", ["ledger_entries", "ledger_head"])
def test_a_missing_table_is_reported_and_not_a_crash(
    ledger: Ledger, tampering: Tampering, where: str, table: str
) -> None:
    ledger.close()
    if "postgresql" in where:
        tampering(f"DROP TABLE {table}")
    else:
        import sqlite3  # noqa: PLC0415

        with sqlite3.connect(where) as connection:
            connection.execute(f"DROP TABLE {table}")
        connection.close()
    assert says(verify(where), "Tables are missing")


def test_missing_head_row_stops_charges(ledger: Ledger, tampering: Tampering, where: str) -> None:
    tampering("DELETE FROM ledger_head")
    with pytest.raises(LedgerDamagedError):
        ledger.charge(Laplace(10), purpose="count")
    assert says(verify(where), "head is at nothing")


def test_removed_triggers_are_reported(tampering: Tampering, where: str) -> None:
    if "postgresql" in where:
        tampering("ALTER TABLE ledger_entries DISABLE TRIGGER ledger_entries_delete")
    else:
        import sqlite3  # noqa: PLC0415

        with sqlite3.connect(where) as connection:
            connection.execute("DROP TRIGGER ledger_entries_delete")
        connection.close()
    assert says(verify(where), "ledger_entries_delete")


def test_an_altered_last_entry_stops_charges_at_once(
    ledger: Ledger, bodies: dict[int, dict[str, Any]], tampering: Tampering
) -> None:
    edited = canonical(bodies[5] | {"spent": [0.0, 0.0]})
    tampering("UPDATE ledger_entries SET body = :body WHERE sequence = 5", body=edited)
    with pytest.raises(LedgerDamagedError, match="altered"):
        ledger.charge(Laplace(10), purpose="count")


@pytest.mark.parametrize(
    "anchor", ["", "5", "5:abc", "x:" + "a" * 64, 5, (5,), ("5", "a" * 64), object(), "1:" + "g" * 64]
)
def test_an_anchor_that_is_none_is_refused(ledger: Ledger, anchor: Any) -> None:
    with pytest.raises(InvalidParameterError, match="anchor"):
        ledger.verify(anchor)


def test_many_problems_are_summed_up(ledger: Ledger, tampering: Tampering, where: str) -> None:
    for _ in range(60):
        ledger.charge(Pure(Fraction(1, 1000)), purpose="step")
    tampering("UPDATE ledger_entries SET kind = 'gift'")
    found = verify(where)
    assert len(found.problems) == 51
    assert "more" in found.problems[-1]
    with pytest.raises(LedgerDamagedError):
        found.require()
    assert found.to_dict()["ok"] is False


def test_an_edited_charge_is_one_problem_and_its_release_is_not_called_unpaid(tampering: Tampering, where: str) -> None:
    tampering("UPDATE ledger_entries SET body = replace(body, 'Ada', 'Eve') WHERE sequence = 1")
    found = verify(where)
    assert len(found.problems) == 1, found.problems
    assert "Entry 1 was altered" in found.problems[0]


def test_what_is_no_ledger_is_told_once(tmp_path: Path) -> None:
    (tmp_path / "patients.csv").write_text("patient,days\n1,2\n" * 100, encoding="utf-8")
    (tmp_path / "empty").touch()
    for name in ("patients.csv", "empty", "missing"):
        found = verify(tmp_path / name)
        assert len(found.problems) == 1, found.problems
        assert "entry -1" not in found.problems[0]
    with pytest.raises(LedgerDamagedError) as refused:
        Ledger.open(tmp_path / "patients.csv")
    assert refused.value.fix.startswith("check the path")


@pytest.mark.parametrize("number", range(6))
def test_a_ledger_with_an_altered_entry_is_opened_by_nobody(
    opened: Opener, bodies: dict[int, dict[str, Any]], tampering: Tampering, number: int
) -> None:
    text = canonical(bodies[number] | {"who": "Eve"})
    tampering("UPDATE ledger_entries SET body = :body WHERE sequence = :number", body=text, number=number)
    for options in ({}, {"read_only": True}):
        with pytest.raises(LedgerDamagedError, match=rf"(?i)entry {number} .*altered"):
            opened(**options)


@pytest.mark.parametrize("number", range(5))
def test_an_altered_entry_whose_hash_was_fixed_up_breaks_the_link_after_it(
    opened: Opener, bodies: dict[int, dict[str, Any]], tampering: Tampering, number: int
) -> None:
    text = canonical(bodies[number] | {"who": "Eve"})
    tampering(
        "UPDATE ledger_entries SET body = :body, hash = :hash WHERE sequence = :number",
        body=text,
        hash=digest(text),
        number=number,
    )
    with pytest.raises(LedgerDamagedError, match=f"Entry {number + 1} of .* does not follow entry {number}"):
        opened()


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE ledger_entries SET charge = 2 WHERE sequence = 5",
        "UPDATE ledger_entries SET kind = 'release' WHERE sequence = 3",
        "DELETE FROM ledger_entries WHERE sequence = 2",
    ],
)
def test_a_moved_release_or_a_removed_entry_is_noticed_when_a_ledger_is_opened(
    opened: Opener, tampering: Tampering, statement: str
) -> None:
    tampering(statement)
    with pytest.raises(LedgerDamagedError):
        opened()

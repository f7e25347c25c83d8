"""A bundle shows what was released to whoever has neither the data nor the ledger, and no bit of it can be changed."""

import json
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from defocus import Budget, Ledger, rows
from defocus.errors import InvalidParameterError, LedgerDamagedError
from defocus.ledger import Bundle, Head, SigningKey, witness
from defocus.ledger.bundle import _TAG
from defocus.ledger.entries import canonical, read_body
from defocus.mechanisms import Laplace
from defocus.release import release

Change = Callable[[dict[str, Any]], object]


@pytest.fixture
def book(tmp_path: Path) -> Any:
    with Ledger.open(tmp_path / "a.ledger", budget=Budget(2), unit=rows(), dataset="visits") as ledger:
        for request in ("April", "May", "June"):
            release(Laplace(scale=4), 1402, ledger=ledger, purpose=f"visits in {request}", request=request, who="Ada")
        yield ledger


@pytest.fixture
def key(tmp_path: Path) -> SigningKey:
    return SigningKey.open(tmp_path / "hospital.key")


def forged(bundle: Bundle, key: SigningKey, change: Change) -> Bundle:
    """The bundle with something changed, signed anew by its keeper."""
    body = json.loads(canonical(dict(bundle.body)))
    change(body)
    return Bundle(body, key.public, key.sign(_TAG + canonical(body).encode()))


def test_a_bundle_is_verified_without_the_data_and_the_ledger(book: Ledger, key: SigningKey, tmp_path: Path) -> None:
    answer = book.recall("May")
    book.bundle("May", key=key).save(tmp_path / "may.bundle")
    book.close()
    (tmp_path / "a.ledger").unlink()
    evidence = Bundle.load(tmp_path / "may.bundle").verify(key=key.public)
    assert evidence.require().ok
    assert answer is not None
    assert evidence.facts["value"] == answer.value
    assert (evidence.facts["epsilon"], evidence.facts["delta"]) == (0.25, 0)
    assert evidence.facts["purpose"] == "visits in May"
    assert "one row, added or removed" in str(evidence)
    assert evidence.to_dict()["ok"] is True


def test_no_byte_of_a_bundle_can_be_changed(book: Ledger, key: SigningKey) -> None:
    text = book.bundle("May", key=key).text
    chance = random.Random(4)
    for place in range(len(text)):
        for bit in {1, 1 << chance.randrange(1, 8)}:
            changed = text[:place] + chr(ord(text[place]) ^ bit) + text[place + 1 :]
            try:
                evidence = Bundle.parse(changed).verify(key=key.public)
            except InvalidParameterError:
                continue
            assert not evidence.ok, (place, text[place])
    for other in (text + " ", text[:-1], "", "[]", "null", "{}", '{"bundle":{},"key":"","signature":""}', "9" * 5000):
        with pytest.raises(InvalidParameterError, match="not a bundle as it was signed"):
            Bundle.parse(other)


def test_somebody_elses_key_is_noticed(book: Ledger, key: SigningKey, tmp_path: Path) -> None:
    stranger = SigningKey.open(tmp_path / "stranger.key")
    evidence = book.bundle("May", key=stranger).verify(key=key.public)
    assert evidence.problems == ("it is signed by another key than the one that was expected",)
    assert evidence.facts.keys() == {"key"}  # a stranger makes nobody compute what the event costs


def swapped_release(body: dict[str, Any]) -> None:
    body["release"] = body["charge"]


def shorter_proof(body: dict[str, Any]) -> None:
    body["charge"]["proof"].pop()


def other_value(body: dict[str, Any]) -> None:
    entry = json.loads(body["release"]["entry"])
    entry["value"][0] = 7
    body["release"]["entry"] = canonical(entry)


def less_paid(body: dict[str, Any]) -> None:
    entry = json.loads(body["charge"]["entry"])
    entry["cost"] = [0.0 for _ in entry["cost"]]
    body["charge"]["entry"] = canonical(entry)


@pytest.mark.parametrize(
    ("change", "found"),
    [
        (lambda body: body["claim"].update(epsilon=0.2), "claims epsilon 0.2, and its event costs 0.25"),
        (lambda body: body.update(claim=None), "no accountant"),
        (lambda body: body.update(protects="everybody"), "in words"),
        (lambda body: body["head"].update(size=99), "its head is not that of its ledger"),
        (lambda body: body["head"].update(ledger="0" * 32), "its head is not that of its ledger"),
        (lambda body: body["terms"].update(id="0" * 32), "its head is not that of its ledger"),
        (shorter_proof, "its charge is not in the ledger"),
        (swapped_release, "cannot be read"),
        (other_value, "its answer is not the one that was recorded"),
        (less_paid, "it was charged less than its event costs"),
        (lambda body: body.update(head={}), "cannot be read"),
        (lambda body: body.update(charge="x"), "cannot be read"),
    ],
)
def test_a_keeper_who_signs_what_is_not_true_is_found_out(
    book: Ledger, key: SigningKey, change: Change, found: str
) -> None:
    evidence = forged(book.bundle("May", key=key), key, change).verify()
    assert any(found in problem for problem in evidence.problems), evidence.problems
    with pytest.raises(LedgerDamagedError):
        evidence.require()


def test_an_answer_of_another_charge_is_noticed(book: Ledger, key: SigningKey) -> None:
    other = book.bundle("June", key=key)

    def replace_release(body: dict[str, Any]) -> None:
        body["release"] = other.body["release"]

    evidence = forged(book.bundle("May", key=key), key, replace_release).verify()
    assert "its answer was recorded for another charge" in evidence.problems


def test_what_was_not_kept_cannot_be_bundled(book: Ledger, key: SigningKey) -> None:
    with pytest.raises(InvalidParameterError, match="No answer was kept for the request 'July'"):
        book.bundle("July", key=key)


def test_a_bundle_tells_nothing_that_identifies_the_data(tmp_path: Path, key: SigningKey) -> None:
    with Ledger.open(
        tmp_path / "b.ledger", budget=Budget(1), unit=rows(), dataset="visits", identity="files abcdef"
    ) as ledger:
        release(Laplace(scale=4), 7, ledger=ledger, purpose="visits", request="all")
        bundle = ledger.bundle("all", key=key)
        salt = read_body(next(ledger.entries()).body).content["data"]["identity"].partition(":")[0]
    assert bundle.verify().ok
    assert bundle.body["data"] is not None
    assert salt not in bundle.text
    assert "abcdef" not in bundle.text


def test_a_rewritten_history_is_found_by_two_heads(book: Ledger, key: SigningKey, tmp_path: Path) -> None:
    shutil.copy(tmp_path / "a.ledger", tmp_path / "older.ledger")
    bundle, first = book.bundle("May", key=key), book.head(key)
    release(Laplace(scale=8), 3, ledger=book, purpose="more", request="more")
    newer = book.head(key, since=first)
    assert newer.follows(first)
    assert Head.read(canonical(newer.to_dict())) == newer
    assert bundle.verify(newer=book.head(key, since=Head.read(bundle.body["head"]))).ok
    with Ledger.open(tmp_path / "older.ledger") as other:
        release(Laplace(scale=16), 3, ledger=other, purpose="another", request="another")
        rewritten = other.head(key, since=newer)
        assert rewritten.size == newer.size
        assert not rewritten.follows(newer)
        assert other.head(key, since=first).follows(first)
    assert not book.head(key).follows(first)  # nobody asked for a proof


def test_a_witness_signs_one_history_only(book: Ledger, key: SigningKey, tmp_path: Path) -> None:
    shutil.copy(tmp_path / "a.ledger", tmp_path / "older.ledger")
    own, memory = SigningKey.open(tmp_path / "witness.key"), tmp_path / "memory.json"
    first = book.head(key)
    assert witness(first, own, memory).is_signed(own.public)
    release(Laplace(scale=8), 3, ledger=book, purpose="more", request="more")
    with pytest.raises(LedgerDamagedError, match="does not follow"):
        witness(book.head(key), own, memory)  # without a proof
    second = witness(book.head(key, since=first), own, memory)
    assert second.is_signed(own.public)
    assert second.is_signed(key.public)
    with Ledger.open(tmp_path / "older.ledger") as other:
        release(Laplace(scale=16), 3, ledger=other, purpose="another", request="another")
        with pytest.raises(LedgerDamagedError, match="rewritten"):
            witness(other.head(key, since=first), own, memory)
    with pytest.raises(LedgerDamagedError, match="not signed as it says"):
        witness(Head(first.ledger, first.size, first.root, "2020", first.signatures), own, memory)
    memory.write_text("[{}]", encoding="utf-8")
    with pytest.raises((InvalidParameterError, LedgerDamagedError)):
        witness(second, own, memory)


def test_a_witness_signs_heads_of_one_keeper_only(book: Ledger, key: SigningKey, tmp_path: Path) -> None:
    own, memory = SigningKey.open(tmp_path / "witness.key"), tmp_path / "memory.json"
    stranger, first = SigningKey.open(tmp_path / "stranger.key"), book.head(key)
    signed = witness(first, own, memory)
    release(Laplace(scale=8), 3, ledger=book, purpose="more", request="more")
    for head in (book.head(stranger, since=first), book.head(stranger, since=first).signed(own)):
        with pytest.raises(LedgerDamagedError, match="not signed by the keeper"):  # though it follows
            witness(head, own, memory)
    changed = book.head(key, since=signed).signed(stranger)  # the keeper hands over to another key
    assert witness(changed, own, memory).is_signed(own.public)
    assert witness(book.head(stranger), own, memory).is_signed(own.public)


@pytest.mark.parametrize("text", ["", "{}", "[]", "1", '{"ledger": 1}', "[" * 2000])
def test_what_is_no_head_is_refused(text: str) -> None:
    with pytest.raises(InvalidParameterError, match="not the head of a ledger"):
        Head.read(text)


def test_a_key_is_for_its_owner_alone_and_stays_the_same(tmp_path: Path) -> None:
    place = tmp_path / "hospital.key"
    key = SigningKey.open(place)
    assert place.stat().st_mode & 0o777 == 0o600
    assert SigningKey.open(place).public == key.public == SigningKey.open(key).public
    assert "PRIVATE" not in repr(key)
    place.write_text("hello", encoding="utf-8")
    with pytest.raises(InvalidParameterError, match="does not hold a private Ed25519 key"):
        SigningKey.open(place)

"""Pages about audits, and what of them is kept in a ledger."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import defocus as dp
from defocus.audit import History, history, keep, lower_bound, membership, one_run, reconstruction, report
from defocus.errors import InvalidParameterError
from defocus.ledger import Ledger
from defocus.noise.testing import seeded
from defocus.privacy import Laplace


@pytest.fixture
def book(tmp_path: Path) -> Any:
    with Ledger.open(tmp_path / "a", unit=dp.rows(), budget=dp.Budget(1), dataset="visits") as ledger:
        ledger.charge(Laplace(2), purpose="a count", question="number <b>of</b> rows")
        yield ledger


def test_a_page_shows_every_audit_with_its_picture(tmp_path: Path, book: Ledger) -> None:
    people = np.random.default_rng(0).normal(size=(40, 2))
    asked = np.eye(20, dtype=int)
    coins = np.arange(40) % 2
    found = (
        one_run(coins, coins, claimed=1),
        lower_bound(sum, ([1, 1], [1, 1, 1]), trials=500, claimed=1),
        membership(lambda rows: rows, people, claimed=1, bits=seeded(0)),
        reconstruction(lambda secrets: secrets, asked, claimed=1, bits=seeded(0)),
        history(book),
    )
    page = report(tmp_path / "a.html", *found, title="What <we> found").read_text("utf-8")
    assert page.count("<img") == 5
    assert page.count("<h2>") == 5
    assert "What &lt;we&gt; found" in page
    assert "nothing is proved" in page
    assert "<b>" not in page
    assert "http" not in page.replace("http-equiv", "").replace("http://www.w3.org", "")


def test_what_is_kept_costs_nothing_and_is_signed_with_its_bundle(tmp_path: Path, book: Ledger) -> None:
    spent = book.spent()
    finding = lower_bound(sum, ([1, 1], [1, 1, 1]), trials=500, claimed=1)
    keep(finding, ledger=book, request="audit of sums", who="Ada")
    keep(history(book), ledger=book, request="audit of May")
    assert book.spent() == spent
    for request, name in (("audit of sums", "event"), ("audit of May", "twins")):
        evidence = book.bundle(request, key=tmp_path / "key").verify()
        assert evidence.ok, evidence
        assert name in evidence.facts["value"]
    kept = book.recall("audit of sums")
    assert kept is not None
    assert kept.value == json.loads(json.dumps(finding.to_json()))
    assert isinstance(history(book), History)


def test_the_bound_of_one_run_is_kept_beside_the_release_that_it_is_about(tmp_path: Path, book: Ledger) -> None:
    coins = np.arange(40) % 2
    found = one_run(coins, coins, event=Laplace(1), independent=True)
    paid = book.charge(Laplace(2), purpose="another count")
    spent = book.spent()
    keep(found, ledger=book, request="audit of a count", about=paid)
    assert book.spent() == spent
    evidence = book.bundle("audit of a count", key=tmp_path / "key").verify()
    assert evidence.ok, evidence
    assert evidence.facts["value"]["about"] == {"entry": paid.sequence, "hash": paid.hash}
    assert evidence.facts["value"]["violation"] is True
    with Ledger.open(tmp_path / "b", unit=dp.rows(), budget=dp.Budget(1), dataset="other") as other:
        with pytest.raises(InvalidParameterError, match="not given by this ledger"):
            keep(found, ledger=other, request="audit", about=paid)
        assert not [entry for entry in other.entries() if entry.kind == "charge"]


def test_what_depends_on_rows_is_not_kept(book: Ledger) -> None:
    found = membership(lambda rows: rows, np.random.default_rng(0).normal(size=(40, 2)), bits=seeded(0))
    with pytest.raises(InvalidParameterError, match="without noise"):
        keep(found, ledger=book, request="audit")  # type: ignore[arg-type]


def test_refuses_an_empty_report_and_a_place_that_is_none(tmp_path: Path, book: Ledger) -> None:
    with pytest.raises(InvalidParameterError, match="nothing to report"):
        report(tmp_path / "a.html")
    with pytest.raises(InvalidParameterError, match="could not be written"):
        report(tmp_path / "none" / "a.html", history(book))

"""What is exported from a signed release is true to it, complete, and safe to show."""

import base64
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jsonschema_rs
import numpy as np
import pyarrow as pa
import pytest
import yaml  # type: ignore[import-untyped]

import defocus as dp
from defocus.errors import InvalidParameterError, LedgerDamagedError
from defocus.ledger import Bundle, SigningKey
from defocus.ledger.bundle import _TAG
from defocus.ledger.entries import canonical
from defocus.publication import (
    answer_in,
    evaluation,
    evaluation_page,
    pdf_report,
    registry_record,
    registry_yaml,
    release_report,
)

SCHEMA = json.loads((Path(__file__).parent / "registry-schema.json").read_text("utf-8"))
EVIL = "<script>alert(1)</script>"


@pytest.fixture
def visits(tmp_path: Path) -> Iterator[Any]:
    rows = pa.table({"person": range(900), "ward": ["A", "B", EVIL] * 300, "stay": [float(i % 9) for i in range(900)]})
    unit, budget = dp.user("person"), dp.Budget(20, 1e-5)
    with dp.open(rows, unit=unit, budget=budget, ledger=tmp_path / "a.ledger", name="visits") as table:
        yield table.bound(rows=1)


def asked(table: Any, tmp_path: Path, **more: Any) -> tuple[Any, Bundle]:
    question = table.group_by("ward", keys=["A", "B", EVIL]).agg(n=dp.count(), m=dp.mean("stay", low=0, high=9))
    answer = question.release(**{"epsilon": 1, "request": "May", "purpose": EVIL, "who": "Ada", **more})
    return answer, answer.bundle(tmp_path / "may.bundle", ledger=table.ledger, key=tmp_path / "key")


def test_an_answer_becomes_a_file_that_holds_it(visits: Any, tmp_path: Path) -> None:
    answer, _ = asked(visits, tmp_path)
    bundle = Bundle.load(tmp_path / "may.bundle")
    assert bundle.verify().require().facts["plan"] == "1 measurement(s), whose noise is the one charged"
    again = answer_in(bundle)
    assert again is not None
    assert again.to_dict() == answer.to_dict()


def test_an_answer_that_was_not_kept_cannot_be_bundled(visits: Any, tmp_path: Path) -> None:
    with pytest.raises(InvalidParameterError, match="No answer was kept for this charge"):
        asked(visits, tmp_path, request=None)


@pytest.mark.parametrize(
    "question",
    [
        lambda t: t.group_by("ward", keys=None).agg(n=dp.count(), u=dp.count_units()),
        lambda t: t.bound(rows="find").agg(n=dp.count(), s=dp.sum("stay", bounds="find")),
        lambda t: t.agg(h=dp.histogram("stay", [0, 3, 6, 9]), d=dp.count_distinct("ward"), q=dp.median("stay", 0, 9)),
    ],
)
def test_the_plan_of_every_kind_of_question_agrees_with_its_charge(
    visits: Any, tmp_path: Path, question: Callable[[Any], Any]
) -> None:
    answer = question(visits).release(epsilon=1, delta=1e-6, request="q")
    evidence = answer.bundle(tmp_path / "q", ledger=visits.ledger, key=tmp_path / "key").verify()
    assert evidence.require().facts["plan"] != "not stated"


def halved(column: Any) -> None:
    packed = column["noise"]["factors"]["sums 0"]
    factors = np.frombuffer(base64.b64decode(packed["floats"]), "<f8") / 2
    packed["floats"] = base64.b64encode(factors.tobytes()).decode()
    column["errors"] = [x / 2 for x in column["errors"]]


def less_noise(record: Any) -> None:
    record["plan"][0]["event"]["scale"] = 2 * record["plan"][0]["event"]["scale"]


@pytest.mark.parametrize(
    ("change", "found"),
    [
        (less_noise, "the noise in its plan is not the noise that was charged"),
        (lambda record: halved(record["columns"][0]), "its answer states another noise than its plan has"),
        (lambda record: record["plan"].clear() or record["plan"].append({}), "cannot be read"),
        (
            lambda record: record["columns"][0].update(errors=[1e-3] * 3),
            "its answer states another noise than its plan has",
        ),
        (
            lambda record: record["plan"][0].update(measurement="others"),
            "its answer states another noise than its plan has",
        ),
    ],
)
def test_a_keeper_who_states_other_noise_than_was_charged_is_found_out(
    visits: Any, tmp_path: Path, change: Callable[[Any], object], found: str
) -> None:
    _, bundle = asked(visits, tmp_path)
    key = SigningKey.open(tmp_path / "key")
    body = json.loads(canonical(dict(bundle.body)))
    entry = json.loads(body["release"]["entry"])
    change(entry["value"][0])
    body["release"]["entry"] = canonical(entry)
    lie = Bundle(body, key.public, key.sign(_TAG + canonical(body).encode()))
    assert any(found in problem for problem in lie.verify().problems), lie.verify().problems


def test_the_registry_record_has_every_field_of_the_schema(visits: Any, tmp_path: Path) -> None:
    _, bundle = asked(visits, tmp_path, delta=1e-6)
    region = {"basic": {"data_product_region": "Wales"}}
    record = registry_record(bundle, curator="A hospital", stated=region)
    validator = jsonschema_rs.validator_for(SCHEMA)
    assert [str(each) for each in validator.iter_errors(record)] == []
    assert record["deployment"]["basic"]["data_product_region"] == "Wales"
    parameters = record["deployment"]["privacy_loss"]["privacy_parameters"]
    assert parameters["epsilon"] == bundle.verify().facts["epsilon"]
    assert yaml.safe_load(registry_yaml(record)) == record
    del record["deployment"]["implementation"]["utility"]
    assert not validator.is_valid(record)


def test_claims_are_those_of_the_bundle(visits: Any, tmp_path: Path) -> None:
    _, bundle = asked(visits, tmp_path)
    claims = {each.topic: each for each in evaluation(bundle)}
    assert claims["Unit of privacy"].claim == "everything about one person, added or removed"
    assert "asked by Ada" in claims["Access control"].claim
    page = evaluation_page(bundle)
    for topic in claims:
        assert topic in page


def test_pages_show_the_answer_and_let_no_text_act(visits: Any, tmp_path: Path) -> None:
    answer, bundle = asked(visits, tmp_path)
    for page in (release_report(bundle), evaluation_page(bundle)):
        assert EVIL not in page
        assert not re.search(r"(src|href)=[\"']?https?:", page)
    page = release_report(bundle)
    assert f"{round(answer['n'].values[0])}" in page
    assert "Verified" in page
    assert pdf_report(bundle, tmp_path / "may.pdf").read_bytes().startswith(b"%PDF")


def test_what_is_not_true_is_not_exported_as_if_it_were(visits: Any, tmp_path: Path) -> None:
    _, bundle = asked(visits, tmp_path)
    lie = Bundle({**bundle.body, "protects": "everybody"}, bundle.key, bundle.signature)
    with pytest.raises(LedgerDamagedError):
        registry_record(lie)
    assert "Not verified" in release_report(lie)
    assert "not true" in evaluation_page(lie)


def test_a_plain_value_has_a_page_too(tmp_path: Path) -> None:
    with dp.Ledger.open(tmp_path / "c", budget=dp.Budget(1), unit=dp.rows(), dataset="visits") as book:
        dp.release.release(dp.mechanisms.Laplace(scale=4), 1402, ledger=book, purpose="patients", request="May")
        bundle = book.bundle("May", key=tmp_path / "key")
    assert answer_in(bundle) is None
    assert "epsilon 0.25" in release_report(bundle)
    assert pdf_report(bundle, tmp_path / "c.pdf").stat().st_size > 1000
    assert not [*jsonschema_rs.validator_for(SCHEMA).iter_errors(registry_record(bundle))]


def test_what_was_tuned_on_raw_data_is_told_by_every_document(visits: Any, tmp_path: Path) -> None:
    visits.ledger.note_tuning("stays are cut at 9 days", why="the longest stay", who="Ada")
    _, bundle = asked(visits, tmp_path)
    loaded = Bundle.load(tmp_path / "may.bundle")
    assert loaded.verify().require().facts["not protected"] == "stays are cut at 9 days"
    assert "stays are cut at 9 days" in registry_yaml(registry_record(bundle))
    for page in (release_report(bundle), evaluation_page(bundle)):
        assert "stays are cut at 9 days" in page
    key = SigningKey.open(tmp_path / "key")
    body = json.loads(canonical(dict(bundle.body)))
    body["tuned"][0]["entry"] = body["tuned"][0]["entry"].replace("9 days", "8 days")
    lie = Bundle(body, key.public, key.sign(_TAG + canonical(body).encode()))
    assert "its tuning is not in the ledger that its head is of" in lie.verify().problems

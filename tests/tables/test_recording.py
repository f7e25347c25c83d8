import json
from dataclasses import replace
from datetime import UTC, date, datetime
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from tests.answers.making import HOSTILE, column, opened
from tests.tables.answering import answered

from defocus.errors import LedgerDamagedError
from defocus.privacy.budgets import Budget
from defocus.tables.recording import from_record, to_record

MOMENT = datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=UTC).replace(tzinfo=None)


@pytest.mark.parametrize(
    "keys",
    [
        {},
        {"k": HOSTILE[:3], "b": [True, None, False]},
        {"n": [2**62, -1, None]},
        {"d": [date(2026, 1, 2), None, date(1, 1, 1)]},
        {"t": pa.array([MOMENT, None, datetime(1969, 1, 1)], pa.timestamp("us"))},  # noqa: DTZ001 # keys have no zone
    ],
)
def test_an_answer_comes_back_whole(keys: dict[str, Any], tmp_path: Path) -> None:
    columns = [column(values=[1.5, np.nan, -np.inf][: 3 if keys else 1])]
    answer = answered(tmp_path, keys, columns).order_by("visits", descending=True).head(2)
    back = from_record(json.loads(json.dumps(to_record(answer), allow_nan=False)), answer.receipt)
    assert back.to_arrow().equals(answer.to_arrow()) or np.isnan(answer["visits"].values).any()
    assert np.array_equal(back["visits"].values, answer["visits"].values, equal_nan=True)
    assert back.keys.equals(answer.keys)
    assert str(back) == str(answer)
    assert back.explain() == answer.explain()


def test_what_was_asked_for_is_kept_and_may_be_missing_in_old_records(tmp_path: Path) -> None:
    answer = replace(answered(tmp_path), asked=Budget(Fraction(1, 3), 1e-7))
    record = json.loads(json.dumps(to_record(answer), allow_nan=False))
    assert from_record(record, answer.receipt).asked == answer.asked
    del record["asked"]
    assert from_record(record, answer.receipt).asked is None
    with pytest.raises(LedgerDamagedError):
        from_record({**record, "asked": [1, 2, 3]}, answer.receipt)


def test_a_ledger_keeps_it_and_finds_it_again(tmp_path: Path) -> None:
    answer = answered(tmp_path)
    with opened(tmp_path) as ledger:
        receipt = ledger.charge(answer.event, purpose="again", request="visits")
        ledger.record(receipt, to_record(answer), keep=True)
        recalled = ledger.recall("visits")
    assert recalled is not None
    assert str(from_record(recalled.value, recalled.receipt)).startswith(str(answer)[:50])


@pytest.mark.parametrize("kept", [None, 5, "x", [], {}, {"keys": []}, {"keys": 5}, {"keys": [{"name": "k"}]}])
def test_what_is_no_answer_is_refused(kept: object, tmp_path: Path) -> None:
    with pytest.raises(LedgerDamagedError, match="not the answer"):
        from_record(kept, answered(tmp_path).receipt)


def test_a_record_of_the_first_version_is_read(tmp_path: Path) -> None:
    """Ledgers outlive code."""
    first = {
        "keys": [{"name": "day", "type": "date32[day]", "values": ["2026-01-02", None]}],
        "columns": [
            {
                "name": "visits",
                "how": "Laplace noise",
                "integral": True,
                "values": [4.0, "nan"],
                "errors": [1.0, "nan"],
                "low": [2.0, "-inf"],
                "high": [6.0, "inf"],
            }
        ],
        "question": "number of rows as visits, by day",
        "rules": ["one patient counts with at most 5 rows"],
        "threshold": 0.1,
        "processing": [],
        "arranged": False,
        "facts": "a digest",
    }
    answer = from_record(first, answered(tmp_path).receipt)
    assert answer.keys["day"].to_pylist() == [date(2026, 1, 2), None]
    assert not answer["visits"].absolute
    assert answer["visits"].errors[0] == 1
    again = to_record(answer)
    assert [each.pop("absolute") for each in again["columns"]] == [False]  # said since
    assert {name: again[name] for name in first if name != "facts"} == {
        name: value for name, value in first.items() if name != "facts"
    }

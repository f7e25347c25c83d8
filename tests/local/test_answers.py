"""Every answer of a collection is shown, exported, drawn and explained, whatever it is about."""

import json
import math
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from defocus.local import Categories, attributes, heavy_hitters, mean, oracle, process
from defocus.local.estimates import CollectedAnswer
from defocus.local.shuffling import MultiMessageHistogram
from defocus.noise.testing import seeded

HOSTILE = ["=1+1", "<b>", "$x$"]
COLOURS, HOURS = oracle("k-rr", HOSTILE, 3, outside="other"), mean("hybrid", 0, 24, 1)
ANSWERS: dict[str, CollectedAnswer] = {
    "counts": COLOURS.estimate(COLOURS.encode([HOSTILE[0]] * 300 + ["elsewhere"] * 100, seeded(1))),
    "mean": HOURS.estimate(HOURS.encode([7.5] * 1000, seeded(1))),
    "strings": heavy_hitters(["=1"] * 4000 + ["<b"] * 3000, alphabet="=1<b", length=2, epsilon=4, bits=seeded(1)),
}
KEYS = {"counts": "category", "mean": None, "strings": "value"}
NAMES = {"counts": "count", "mean": "mean", "strings": "count"}


@pytest.mark.parametrize("kind", ANSWERS)
def test_every_answer_leaves_as_frames_and_files_with_what_its_errors_are(kind: str, tmp_path: Path) -> None:
    answer, name = ANSWERS[kind], NAMES[kind]
    columns = [*([KEYS[kind]] if KEYS[kind] else []), name, f"{name}_error", f"{name}_low", f"{name}_high"]
    table = answer.to_arrow()
    assert table.column_names == columns
    assert table.schema.metadata[b"defocus.errors"] == f"{name}_error: standard error".encode()
    values = table[name].to_pylist()
    assert answer.to_pandas()[name].tolist() == answer.to_polars()[name].to_list() == values
    low, high, error = (table[f"{name}_{part}"].to_numpy() for part in ("low", "high", "error"))
    assert (high - low) / 2 == pytest.approx(1.96 * error, rel=1e-3)
    answer.to_parquet(tmp_path / "a.parquet")
    assert pq.read_table(tmp_path / "a.parquet").schema.metadata[b"defocus.errors"]
    assert answer.to_csv(tmp_path / "a.csv") == (tmp_path / "a.csv").read_text(encoding="utf-8")
    told = json.loads(answer.to_json(tmp_path / "a.json"))
    assert told == answer.to_dict()
    assert [row[name] for row in told["rows"]] == values
    assert told["errors"] == {f"{name}_error": "standard error"}
    answer.plot().savefig(tmp_path / "a.png")


@pytest.mark.parametrize("kind", ANSWERS)
def test_every_answer_says_what_was_asked_promised_and_how_far_off_it_is(kind: str) -> None:
    answer = ANSWERS[kind]
    words = answer.explain()
    for expected in (answer.question, f"from {answer.reports} reports", "epsilon", "standard error", "own device"):
        assert expected in words
    assert "<table" in answer.explain(html=True) or "<d" in answer.explain(html=True)
    assert "95 % interval" in str(answer)
    assert "95 % interval" in answer._repr_html_()
    assert "<b>" not in answer._repr_html_()


def test_frequent_strings_come_one_by_one() -> None:
    found = heavy_hitters(["ab"] * 4000, alphabet="ab", length=2, epsilon=4, bits=seeded(1))
    assert found.keys["value"][0] == next(iter(found))["value"] == "ab"
    assert len(list(found)) == len(found) > 0
    assert "scaled up to 4000 people" in str(found)
    nothing = heavy_hitters([], alphabet="ab", length=2, epsilon=4)
    assert not nothing
    assert nothing.to_arrow().num_rows == 0
    assert "0 strings" in nothing.explain()


def test_processed_counts_have_no_error_wherever_they_are_shown() -> None:
    processed = process(COLOURS.estimate(COLOURS.encode([HOSTILE[0]] * 300, seeded(1))), "norm-sub")
    assert "±" not in repr(processed)
    assert all(math.isnan(error) for _, _, error in processed.top(2))
    assert np.isnan(processed.errors).all()
    assert "how far off it is in value is not known" in processed.explain()


def test_rejected_reports_are_told() -> None:
    reports = [*COLOURS.encode(["=1+1"] * 9), b"junk"]
    answer = COLOURS.estimate(reports)
    assert (answer.rejected, answer.to_dict()["rejected"]) == (1, 1)
    assert "1 reports were rejected" in str(answer)
    assert "1 reports were rejected" in answer.explain()


def test_other_counts_say_how_they_were_collected() -> None:
    asked = attributes({"a": 2, "b": 2}, 1)
    table = asked.table(asked.encode({"a": [0] * 99, "b": [1] * 99}), "a")
    assert "one of 2 sets of attributes of each person" in table.explain()
    several = MultiMessageHistogram(Categories.of(3), 1000, 1, 1e-6)
    assert "several messages each, shuffled" in several.estimate(several.encode([1] * 1000)).explain()

import json
from dataclasses import replace
from datetime import UTC, date, datetime
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.answers.making import HOSTILE, charged, column, opened
from tests.tables.answering import answered

from defocus.answers import PICKED, Released
from defocus.errors import InvalidParameterError, LedgerDamagedError, UnknownColumnError
from defocus.ledger import Receipt
from defocus.privacy.accounting import account
from defocus.privacy.budgets import Budget
from defocus.privacy.events import DiscreteGaussian, DiscreteLaplace, compose
from defocus.tables.answers import answered as made_of
from defocus.tables.answers import from_record, to_record


def test_groups_come_in_the_order_of_their_keys_with_their_own_numbers(tmp_path: Path) -> None:
    answer = answered(tmp_path)
    assert answer.keys["ward"].to_pylist() == ["cardiology", "oncology", "surgery"]
    assert answer["visits"].values.tolist() == [-3.7, 220.0, 1041.2]
    assert answer["stay"].errors.tolist() == [3, 0.6, 0.3]


@pytest.fixture(scope="module")
def receipt(tmp_path_factory: pytest.TempPathFactory) -> Receipt:
    return charged(tmp_path_factory.mktemp("receipts"))


@given(order=st.permutations(range(6)))
def test_the_order_of_the_data_leaves_no_trace(order: list[int], receipt: Receipt) -> None:
    wards, years = ["b", "a", None, "a", "c", "b"], [1, 2, 3, 1, 5, 2]
    values = np.arange(6.0)

    def made(rows: list[int]) -> Released:
        keys = pa.table({"ward": [wards[i] for i in rows], "year": [years[i] for i in rows]})
        return made_of(keys, (column(values=values[rows]),), "q", receipt)

    assert made(order).to_arrow().equals(made(list(range(6))).to_arrow())
    assert str(made(order)) == str(made(list(range(6))))


@pytest.mark.parametrize(
    "keys",
    [
        {"k": pa.array(["b", "a", None]).dictionary_encode()},
        {"k": pa.array([True, False, None])},
        {"k": pa.array([date(2026, 1, 2), date(2025, 1, 1), None])},
        {"k": pa.chunked_array([["b"], ["a", None]])},
        {"k": pa.array([3, 1, None])},
    ],
)
def test_keys_of_every_kind_are_ordered_with_missing_last(keys: dict[str, pa.Array], tmp_path: Path) -> None:
    answer = answered(tmp_path, keys)
    assert answer["visits"].values.tolist() == [-3.7, 1041.2, 220.0]
    assert answer.keys["k"].to_pylist()[-1] is None
    assert str(answer)


def test_a_question_without_groups_has_one_row_and_no_keys(tmp_path: Path) -> None:
    answer = answered(tmp_path, {}, [column(values=[5.2])])
    assert len(answer) == 1
    assert answer.to_arrow().to_pylist()[0]["visits"] == 5.2
    assert "5" in str(answer)
    assert answer.plot() is not None


def test_an_answer_without_groups_at_all_can_be_shown(tmp_path: Path) -> None:
    answer = answered(tmp_path, {"ward": pa.array([], pa.string())}, [column(values=[])])
    assert len(answer) == 0
    assert "visits" in str(answer)
    assert "0 groups" in answer.explain()
    assert answer.to_csv().count("\n") == 1
    assert answer.plot() is not None
    assert answer.to_dict()["rows"] == []


def test_the_text_is_rounded_and_flags_noisy_cells(tmp_path: Path) -> None:
    text = str(answered(tmp_path))
    assert "1 041    1 013 to 1 069   4.1       3.5 to 4.7" in text
    assert "-4 *" in text
    assert "* the noise is more than 10 % of the value" in text
    assert text.endswith("visits by ward")
    assert "*" not in str(answered(tmp_path, threshold=1000))


def test_frames_and_csv_are_exact_unless_asked_otherwise(tmp_path: Path) -> None:
    answer = answered(tmp_path)
    assert answer.to_pandas()["visits"].tolist() == [-3.7, 220.0, 1041.2]
    assert answer.to_polars()["visits"].to_list() == [-3.7, 220.0, 1041.2]
    assert answer.to_pandas(exact=False)["visits"].tolist() == [-4, 220, 1041]
    assert '"surgery",1041,14,1013,1069,true,4.1,0.3,3.5,4.7,true' in answer.to_csv(exact=False)
    assert '"surgery",1041.2,14.1,' in answer.to_csv(exact=True)


def test_files_hold_what_the_answer_holds_and_what_it_is_about(tmp_path: Path) -> None:
    answer = answered(tmp_path)
    answer.to_parquet(tmp_path / "a.parquet")
    read = pyarrow.parquet.read_table(tmp_path / "a.parquet")
    assert read.equals(answer.to_arrow())
    assert read.schema.metadata[b"defocus.question"] == b"count and mean stay by ward"
    assert b"at most 5 visits" in read.schema.metadata[b"defocus.rules"]
    assert answer.to_csv(tmp_path / "a.csv") == (tmp_path / "a.csv").read_bytes().decode()
    answer.to_json(tmp_path / "a.json")
    content = json.loads((tmp_path / "a.json").read_text("utf-8"))
    assert content["rows"][0]["visits"] == -3.7
    assert content["receipt"]["sequence"] == answer.receipt.sequence
    assert content["rules"] == list(answer.rules)


def test_counts_raised_to_zero_are_declared_and_the_unbiased_ones_stay(tmp_path: Path) -> None:
    answer = answered(tmp_path)
    raised = answer.non_negative()
    assert raised["visits"].values.min() == 0
    assert answer["visits"].values.min() == -3.7
    assert "biased upwards" in str(raised)
    assert "negative values of visits raised to 0" in raised.explain()
    assert "nothing but scaling" in answer.explain()
    assert answer.non_negative("stay")["visits"].values.tolist() == answer["visits"].values.tolist()


def test_order_and_limit_are_declared_post_processing(tmp_path: Path) -> None:
    top = answered(tmp_path).order_by("visits", descending=True).head(2)
    assert top.keys["ward"].to_pylist() == ["surgery", "oncology"]
    assert top.processing == (f"ordered by visits, largest first; {PICKED}", "the first 2 groups kept")
    assert top.non_negative().keys["ward"].to_pylist() == ["surgery", "oncology"]
    back = top.order_by("ward")
    assert back.keys["ward"].to_pylist() == ["oncology", "surgery"]
    assert len(top.head(0)) == 0
    assert len(top.head(99)) == 2


def test_values_that_are_not_numbers_come_last_in_either_order(tmp_path: Path) -> None:
    answer = answered(tmp_path, None, [column(values=[np.nan, 1.0, 2.0])])
    for descending in (False, True):
        assert np.isnan(answer.order_by("visits", descending=descending)["visits"].values[-1])


def test_hostile_keys_act_on_nothing(tmp_path: Path) -> None:
    answer = answered(tmp_path, {"<b>key": HOSTILE}, [column(values=range(len(HOSTILE)))])
    assert "\x1b" not in str(answer)
    assert "\u202e" not in str(answer)
    assert len(str(answer).split("\n")) == len(HOSTILE) + 5
    for page in (answer._repr_html_(), answer.explain(html=True)):
        assert "<script>" not in page
        assert "<b>" not in page
        assert "ward <visits>" not in page
    assert answer.plot() is not None
    json.loads(answer.to_json())


def test_unknown_columns_are_refused_with_the_nearest(tmp_path: Path) -> None:
    answer = answered(tmp_path)
    for ask in (lambda: answer["vists"], lambda: answer.plot("vists"), lambda: answer.non_negative("vists")):
        with pytest.raises(UnknownColumnError, match="did you mean 'visits'"):
            ask()


@pytest.mark.parametrize(
    ("keys", "columns", "match"),
    [
        ({"k": ["a", "a", "b"]}, None, "twice"),
        ({"k": ["a", "b"]}, None, "differ in length"),
        ({"visits_low": ["a", "b", "c"]}, None, "rename one"),
        (None, [], "at least one statistic"),
        (None, [column(), column("n", [1.0])], "differ in length"),
    ],
)
def test_parts_that_do_not_fit_together_are_refused(
    keys: dict[str, list[str]] | None, columns: list[object] | None, match: str, tmp_path: Path
) -> None:
    with pytest.raises(InvalidParameterError, match=match):
        answered(tmp_path, keys, columns)  # type: ignore[arg-type]


@pytest.mark.parametrize("threshold", [0, -1, float("nan"), "x", True])
def test_bad_thresholds_are_refused(threshold: object, tmp_path: Path) -> None:
    with pytest.raises(InvalidParameterError, match="threshold"):
        answered(tmp_path, threshold=threshold)


def test_no_counts_means_that_columns_must_be_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidParameterError, match="name the columns"):
        answered(tmp_path, None, [column(integral=False)]).non_negative()


def test_an_answer_knows_what_it_owed(tmp_path: Path) -> None:
    answer = answered(tmp_path)
    assert answer.event == DiscreteLaplace(10, 5)
    promised = answer.promise()
    assert promised is not None
    assert promised.epsilon == pytest.approx(0.5)
    assert answer.names == ["ward", "visits", "stay"]


def test_bars_stand_for_the_values_with_their_intervals(tmp_path: Path) -> None:
    answer = answered(tmp_path)
    figure = answer.plot("visits")
    (axes,) = figure.axes
    assert [bar.get_width() for bar in axes.patches] == [-3.7, 220.0, 1041.2]
    assert [tick.get_text() for tick in axes.get_yticklabels()] == ["cardiology", "oncology", "surgery"]
    (intervals,) = axes.containers[1].lines[2]
    ends = np.array([segment[:, 0] for segment in intervals.get_segments()])
    assert ends == pytest.approx(np.stack([answer["visits"].low, answer["visits"].high], axis=1))
    assert len(answer.plot().axes) == 2


def test_the_whole_story_is_told(tmp_path: Path) -> None:
    text = answered(tmp_path).explain()
    for words in (
        "count and mean stay by ward",
        "3 groups with visits, stay",
        "everything about one patient_id, added or removed, in ward <visits>",
        "almost as often with or without it",
        "by at most 1.649",
        "at most 62.2 % sure afterwards",
        "who was 1 % sure at most 1.64 %",
        "a patient counts with at most 5 visits",
        "stays are clipped to [0, 30]",
        "visits: noise of visits",
        "stay: standard error of the noise 0.30 to 3.0",
        "in 1 of 3 it is more than 10 % of the value",
        "epsilon 0.5 for this answer alone",
        "as an event: discrete_laplace(10, sensitivity=5)",
        "for one patient_id:",
        "their odds about one patient_id",
        "entry 1: visits by ward (Ada",
        "after this answer: one release of epsilon 2.5",
        "the whole budget is Budget(epsilon=3, delta=1e-06)",
    ):
        assert words in text, words


def test_what_is_left_counts_earlier_charges_too(tmp_path: Path) -> None:
    charged(tmp_path, purpose="before")
    assert "after this answer: one release of epsilon 2," in answered(tmp_path).explain()


def test_the_page_says_the_same_escaped(tmp_path: Path) -> None:
    page = answered(tmp_path).explain(html=True)
    assert page.startswith("<table>")
    assert "ward &lt;visits&gt;" in page
    assert "by at most 1.649" in page


def test_a_gaussian_answer_names_the_chance_of_exception(tmp_path: Path) -> None:
    receipt = charged(tmp_path, DiscreteGaussian(10, 1, 2))
    made = answered(tmp_path)
    answer = Released(made.keys, made.columns, "q", receipt)
    assert "except with probability 1e-06" in answer.explain()


def test_an_answer_is_explained_at_the_delta_that_was_asked_for(tmp_path: Path) -> None:
    receipt = charged(tmp_path, DiscreteGaussian(10, 1, 2))
    made = answered(tmp_path)
    answer = Released(made.keys, made.columns, "q", receipt, asked=Budget(1, 1e-9))
    text = answer.explain()
    assert "except with probability 1e-09" in text
    assert "for this answer alone; asked for were epsilon 1 at delta 1e-09" in text
    promised = answer.promise()
    assert promised is not None
    assert promised.epsilon == pytest.approx(account(receipt.event).epsilon(1e-9), rel=1e-3)
    pure = Released(made.keys, made.columns, "q", made.receipt, asked=Budget(0.5))
    assert "asked for were epsilon 0.5\n" in pure.explain() + "\n"


def test_an_answer_says_what_it_takes_from_the_ledger(tmp_path: Path) -> None:
    charged(tmp_path)
    made = answered(tmp_path)
    assert "it takes 16.7 % of epsilon of the ledger's budget; used with it: 33.3 % of epsilon" in made.explain()


def test_a_composition_is_explained_by_its_composed_loss(tmp_path: Path) -> None:
    event = compose([DiscreteLaplace(10, 1), DiscreteLaplace(5, 1)])
    made = answered(tmp_path)
    answer = Released(made.keys, made.columns, "q", charged(tmp_path, event))
    promised = answer.promise()
    assert promised is not None
    assert promised.epsilon == pytest.approx(account(event).epsilon(0), rel=0.02)


def test_that_nothing_was_bounded_is_said_too(tmp_path: Path) -> None:
    made = answered(tmp_path)
    assert "nothing was bounded" in Released(made.keys, made.columns, "q", made.receipt).explain()


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
    assert {k: v.to_pylist() for k, v in back.keys.items()} == {k: v.to_pylist() for k, v in answer.keys.items()}
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
    assert [(each.pop("absolute"), each.pop("tails")) for each in again["columns"]] == [(False, "unknown")]  # since
    assert again["effects"] == ["bound"]
    assert {name: again[name] for name in first if name != "facts"} == {
        name: value for name, value in first.items() if name != "facts"
    }


def test_keys_come_in_their_own_order_and_with_plain_types(receipt: Receipt) -> None:
    keys = pa.table({"k": pa.array(["b", None, "a"]).dictionary_encode()})
    made = made_of(keys, [column(values=[0.0, 1.0, 2.0])], "q", receipt)
    assert made.keys["k"].to_pylist() == ["a", "b", None]
    assert made.keys["k"].type == pa.string()
    assert made["visits"].values.tolist() == [2, 0, 1]


def test_a_key_that_appears_twice_is_refused(receipt: Receipt) -> None:
    with pytest.raises(InvalidParameterError, match="A key appears twice"):
        made_of(pa.table({"k": ["a", "a"]}), [column(values=[0.0, 1.0])], "q", receipt)

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from tests.answers.making import column

from defocus.answers.tabulating import ERRORS, arrow, cells, labels, notes

KEYS = {"ward": pa.array(["a", "b", None]), "year": pa.chunked_array([[2024, 2025], [2026]])}


def test_the_table_has_keys_then_five_columns_for_each_statistic() -> None:
    made = arrow(KEYS, [column()], 0.1, exact=True)
    assert made.column_names == [
        "ward",
        "year",
        "visits",
        "visits_error",
        "visits_low",
        "visits_high",
        "visits_reliable",
    ]
    assert made["visits"].to_pylist() == [1041.2, -3.7, 220.0]
    assert made["visits_reliable"].to_pylist() == [True, False, True]


def test_flags_follow_the_threshold() -> None:
    one = column(values=[100.0, 60.0, 40.0], errors=10)
    assert arrow(KEYS, [one], 0.1, exact=True)["visits_reliable"].to_pylist() == [True, False, False]
    assert arrow(KEYS, [one], 0.2, exact=True)["visits_reliable"].to_pylist() == [True, True, False]


def test_rounded_counts_are_integers_and_means_share_their_decimals() -> None:
    stay = column("stay", [4.1234, 12.0, np.nan], [0.3, 3, 0.6], integral=False)
    made = arrow(KEYS, [column(values=[1041.2, -3.7, np.nan]), stay], 0.1, exact=False)
    assert made["visits"].type == pa.int64()
    assert made["visits"].to_pylist() == [1041, -4, None]
    assert made["visits_error"].to_pylist() == [14, 14, 14]
    assert made["stay"].to_pylist()[:2] == [4.1, 12.0]


def test_cells_mark_what_the_noise_drowns_and_share_their_decimals() -> None:
    stay = column("stay", [4.1234, 12.0, 7.0], [0.3, 3, 0.6], integral=False)
    heads, rows, right = cells(KEYS, [column(), stay], 0.1)
    assert [head.strip() for head in heads] == ["ward", "year", "visits", "95 % interval", "stay", "95 % interval"]
    assert rows[1] == ["b", "2025", "-4 *", "-32 to 24", "12.0 *", "6.0 to 18.0"]
    assert rows[2][0] == "NULL"
    assert right == [False, True, True, True, True, True]


def test_long_tables_are_shortened_in_the_middle() -> None:
    n = 1000
    heads, rows, _ = cells({"k": range(n)}, [column(values=range(n))], 0.1)
    assert len(rows) == 31
    assert rows[15] == ["⋮"] * len(heads)
    assert (rows[0][0], rows[-1][0]) == ("0", "999")


def test_labels_name_groups_and_the_whole() -> None:
    assert labels(KEYS, [0, 2]) == ["a, 2024", "NULL, 2026"]
    assert labels({}, [0]) == ["all"]
    assert labels({}, [0], whole="edges") == ["edges"]


def test_keys_are_ranges_lists_or_arrays_and_of_mixed_types_text() -> None:
    mixed = {"node": ["ada", 7, (1, 2)], "rank": range(3), "n": pa.array([1, 2, 3])}
    made = arrow(mixed, [column()], None, exact=True)
    assert made["node"].to_pylist() == ["ada", "7", "(1, 2)"]
    assert made["rank"].to_pylist() == [0, 1, 2]
    assert made["n"].type == pa.int64()
    assert cells(mixed, [column()])[2] == [False, True, True, True, True]


def test_without_a_threshold_nothing_is_flagged() -> None:
    assert "visits_reliable" not in arrow(KEYS, [column()], None, exact=True).column_names
    heads, rows, _ = cells(KEYS, [column()])
    assert heads[2] == "visits"
    assert rows[1][2] == "-4"
    assert notes([column(values=[1.0])], None, []) == []


def test_notes_say_what_is_not_shown_and_what_the_star_means() -> None:
    assert notes([column(values=[1000.0])], 0.1, ["why"]) == ["why"]
    assert notes([column(values=[1.0])], 0.1, []) == ["* the noise is more than 10 % of the value"]
    assert notes([column(values=[1e6] * 99)], 0.1, [])[0] == "99 groups, 69 of them not shown"
    assert notes([column(values=[1e6] * 99)], None, [], things="entries")[0] == "99 entries, 69 of them not shown"


def test_the_metadata_says_which_errors_are_standard_errors() -> None:
    both = [column(), replace(column(), name="sum", absolute=True)]
    told = arrow(KEYS, both, None, exact=True).schema.metadata[ERRORS.encode()]
    assert told == b"visits_error: standard error\nsum_error: expected absolute error"


@pytest.mark.parametrize(
    ("keys", "texts"),
    [
        (["ada", b"\xff"], ["ada", "b'\\xff'"]),
        ([(1, 2), (3, 4)], ["(1, 2)", "(3, 4)"]),
        (["\ud800", None], ["\\ud800", None]),
        ([1, 10**5000], ["1", hex(10**5000)]),
    ],
    ids=["bytes", "tuples", "half", "huge"],
)
def test_keys_that_have_no_type_in_common_are_spelt(keys: list[Any], texts: list[Any]) -> None:
    table = arrow({"node": keys}, [column("n", [1.0, 2.0])], None, exact=True)
    assert table.column("node").to_pylist() == texts

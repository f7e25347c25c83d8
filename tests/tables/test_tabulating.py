import numpy as np
import pyarrow as pa
from tests.tables.answering import column

from defocus.tables.tabulating import arrow, cells, in_order, labels, notes

KEYS = pa.table({"ward": ["a", "b", None], "year": [2024, 2025, 2026]})


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
    heads, rows, _ = cells(pa.table({"k": range(n)}), [column(values=range(n))], 0.1)
    assert len(rows) == 31
    assert rows[15] == ["⋮"] * len(heads)
    assert (rows[0][0], rows[-1][0]) == ("0", "999")


def test_labels_name_groups_and_the_whole() -> None:
    assert labels(KEYS, [0, 2]) == ["a, 2024", "NULL, 2026"]
    assert labels(pa.table({}), [0]) == ["all"]


def test_keys_come_in_their_own_order_or_as_given() -> None:
    keys = pa.table({"k": pa.array(["b", None, "a"]).dictionary_encode()})
    ordered, rows = in_order(keys, as_given=False)
    assert ordered["k"].to_pylist() == ["a", "b", None]
    assert ordered["k"].type == pa.string()
    assert rows.tolist() == [2, 0, 1]
    given, rows = in_order(keys, as_given=True)
    assert given["k"].to_pylist() == ["b", None, "a"]
    assert rows.tolist() == [0, 1, 2]


def test_notes_say_what_is_not_shown_and_what_the_star_means() -> None:
    assert notes([column(values=[1000.0])], 0.1, ["why"]) == ["why"]
    assert notes([column(values=[1.0])], 0.1, []) == ["* the noise is more than 10 % of the value"]
    assert notes([column(values=[1e6] * 99)], 0.1, [])[0] == "99 groups, 69 of them not shown"

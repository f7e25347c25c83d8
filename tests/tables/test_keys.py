"""Keys are known by value, once each."""

from datetime import date, datetime, timezone
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from defocus.engines.schema import Column, Kind
from defocus.errors import DefocusError, InvalidParameterError, NotDeclaredError, WrongKindError
from defocus.tables.keys import EVERYTHING, declared_keys, key_columns, named_keys, public_keys

WARD, YEAR = Column("ward", Kind.TEXT), Column("year", Kind.INTEGER)


def test_keys_come_as_lists_tuples_dicts_or_tables() -> None:
    both = {"ward": ["A", "A", "B", "B"], "year": [1, 2, 1, 2]}
    assert public_keys([WARD, YEAR], {"year": [1, 2], "ward": ["A", "B"]}).table.to_pydict() == both
    assert public_keys([WARD, YEAR], [("A", 1), ("A", 2), ("B", 1), ("B", 2)]).table.to_pydict() == both
    assert public_keys([WARD, YEAR], pa.table(both)).table.to_pydict() == both
    assert public_keys([WARD, YEAR], pd.DataFrame(both)).table.to_pydict() == both
    assert public_keys([YEAR], np.array([1, 2])).number == 2
    assert public_keys([WARD], ["A", None]).nullable
    assert EVERYTHING.number == 1


def test_keys_that_the_engine_could_not_tell_apart_are_refused() -> None:
    moment = Column("at", Kind.TIMESTAMP)
    first = pd.Timestamp("2020-01-01")
    for column, keys in (
        (WARD, ["A", "A"]),
        (YEAR, [1, np.int64(1)]),
        (WARD, [None, None]),
        (moment, [first, first + pd.Timedelta(1, "ns")]),
        (moment, [first, datetime(2020, 1, 1)]),  # noqa: DTZ001  # without a zone, as columns are
    ):
        with pytest.raises(DefocusError):
            public_keys([column], keys)


@pytest.mark.parametrize(
    ("kind", "wrong"),
    [
        (Kind.TEXT, 1),
        (Kind.TEXT, b"A"),
        (Kind.TEXT, "\ud800"),
        (Kind.TEXT, "a\0b"),
        (Kind.INTEGER, "1"),
        (Kind.INTEGER, 1.0),
        (Kind.INTEGER, True),
        (Kind.INTEGER, 2**63),
        (Kind.BOOLEAN, 1),
        (Kind.DATE, datetime(2020, 1, 1)),  # noqa: DTZ001  # refused
        (Kind.TIMESTAMP, date(2020, 1, 1)),
        (Kind.TIMESTAMP, datetime(2020, 1, 1, tzinfo=timezone.utc)),  # noqa: UP017  # refused
        (Kind.TEXT, ["A"]),
    ],
)
def test_keys_of_another_kind_are_refused(kind: Kind, wrong: Any) -> None:
    with pytest.raises(WrongKindError):
        public_keys([Column("k", kind)], [wrong])


@pytest.mark.parametrize("wrong", ["A", b"A", 3, None, [], {}, [("A", 1), ("B",)]])
def test_what_is_no_list_of_keys_is_refused(wrong: Any) -> None:
    with pytest.raises(DefocusError):
        public_keys([WARD, YEAR], wrong)


def test_keys_for_other_columns_are_refused() -> None:
    with pytest.raises(NotDeclaredError, match="groups are by ward"):
        public_keys([WARD], {"wards": ["A"]})
    with pytest.raises(NotDeclaredError, match="no column 'ward'"):
        public_keys([WARD], pa.table({"x": ["A"]}))
    with pytest.raises(InvalidParameterError, match="more than"):
        public_keys([YEAR, Column("z", Kind.INTEGER)], {"year": range(10_000), "z": range(10_000)})


def test_declared_domains_are_keys_and_a_boolean_needs_none() -> None:
    assert declared_keys([Column("b", Kind.BOOLEAN)]).table.to_pydict() == {"b": [False, True]}  # type: ignore[union-attr]
    assert declared_keys([WARD]) is None
    assert declared_keys([Column("ward", Kind.TEXT, values=("A",)), Column("b", Kind.BOOLEAN)]).number == 2  # type: ignore[union-attr]


def test_floats_and_columns_named_twice_are_no_keys() -> None:
    with pytest.raises(WrongKindError, match="cannot be grouped by"):
        key_columns([Column("x", Kind.NUMBER)])
    with pytest.raises(InvalidParameterError, match="named twice"):
        key_columns([WARD, WARD])


def test_some_columns_of_keys_are_named_and_others_found() -> None:
    ward, code = Column("ward", Kind.TEXT), Column("code", Kind.INTEGER)
    keys, among = named_keys([ward, code], {"ward": ["A", None], "code": None})
    assert keys is None
    assert among is not None
    assert among.table.to_pydict() == {"ward": ["A", None]}
    assert named_keys([ward, code], {"ward": None, "code": None}) == (None, None)
    assert named_keys([ward], None) == (None, None)
    named, nothing = named_keys([ward], ["A"])
    assert (None if named is None else named.table.to_pydict(), nothing) == ({"ward": ["A"]}, None)
    for wrong in ({"ward": ["A"]}, {"ward": None, "place": None}):
        with pytest.raises(NotDeclaredError) as caught:
            named_keys([ward, code], wrong)
        assert "None for a column" in caught.value.fix
    for odd in ("A", 7):
        with pytest.raises(InvalidParameterError, match="are of type"):
            named_keys([ward, code], {"ward": odd, "code": None})

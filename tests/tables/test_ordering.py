import pyarrow as pa
import pytest

from defocus.errors import InvalidParameterError
from defocus.tables.ordering import in_order


def test_keys_come_in_their_own_order_or_as_given() -> None:
    keys = pa.table({"k": pa.array(["b", None, "a"]).dictionary_encode()})
    ordered, rows = in_order(keys, as_given=False)
    assert ordered["k"].to_pylist() == ["a", "b", None]
    assert ordered["k"].type == pa.string()
    assert rows.tolist() == [2, 0, 1]
    given, rows = in_order(keys, as_given=True)
    assert given["k"].to_pylist() == ["b", None, "a"]
    assert rows.tolist() == [0, 1, 2]


def test_a_key_that_appears_twice_is_refused() -> None:
    with pytest.raises(InvalidParameterError, match="A key appears twice"):
        in_order(pa.table({"k": ["a", "a"]}), as_given=False)

"""The keys of an answer about a table: of plain types, each once, in an order that does not depend on the data."""

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from defocus.errors import InvalidParameterError

__all__ = ["in_order"]


def in_order(keys: pa.Table, *, as_given: bool) -> tuple[pa.Table, Any]:
    """Keys of plain types, each once, and the rows they came from: in the order of the keys, or as they were given."""
    for i, field in enumerate(keys.schema):
        if pa.types.is_dictionary(field.type):
            keys = keys.set_column(i, field.name, keys.column(i).cast(field.type.value_type))
    if keys.group_by(keys.column_names).aggregate([]).num_rows != keys.num_rows:
        raise InvalidParameterError("A key appears twice in an answer.", fix="name each group once.")
    order = pa.array(range(keys.num_rows), pa.int64())
    if not as_given:
        order = pc.sort_indices(keys, sort_keys=[(name, "ascending") for name in keys.column_names])
    return keys.take(order).combine_chunks(), order.to_numpy()

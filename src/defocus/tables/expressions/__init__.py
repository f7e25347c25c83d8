"""Scalar SQL expressions over one row: read, checked against an allow-list, typed, and made total.

Guarantee:
    The SQL of an :class:`Expression` is a function of the named columns of one row alone, and it has a
    value, perhaps NULL, on every row: no row can make it raise, and no row can make the check fail.
    What is refused depends on the text and the schema, never on the data.
Assumes:
    The relation shows each column as its kind says: BOOLEAN, an integer type, a float or decimal type,
    VARCHAR, DATE, TIMESTAMP without a time zone; an integer type wider than 64 bits is a NUMBER. Dates and
    moments in it are of the years 1 to 9999. Engines
    compare text by its bytes and hold NaN equal to itself (DuckDB, PostgreSQL and Spark all do the latter).

What happens at the edges, the same for every row:

* NaN is missing: it is NULL wherever it could be seen. −0.0 equals 0, and nothing tells them apart.
* ``+ - * ABS`` and unary minus on integers are done in 64-bit floats and are NULL beyond 64-bit integers. ``//``
  and ``%`` by a constant are exact; both round toward zero. Floats overflow to infinity.
* ``x / 0``, ``x // 0``, ``x % 0``, ``POWER(0, -1)``, ``SQRT(-1)`` and ``LN(0)`` are NULL.
* A cast of something that cannot be read is NULL; a cast of a float to an integer takes the nearest, ties to even.
* Dates and times that are computed outside the years 1 to 9999 are NULL.
* ``DATE_DIFF`` counts the boundaries that were crossed, but for weeks, which are whole days divided by 7; ``dow`` is
  0 on Sunday. A date and an interval make a moment; a day that a month lacks is its last.
"""

from defocus.tables.expressions.reader import Expression, expression, squeezed, typed
from defocus.tables.expressions.terms import constant

__all__ = ["Expression", "constant", "expression", "squeezed", "typed"]

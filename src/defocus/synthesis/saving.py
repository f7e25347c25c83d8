"""Saved generators: JSON of numbers, which is checked when it is read, whoever wrote it.

A file may come from a stranger. It holds no code; arrays are inflated to the size that they declare and no further; and
whatever does not fit together is refused when it is loaded, not when rows are drawn.
"""

import base64
import json
import math
import zlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from defocus.errors import DefocusError, SourceError
from defocus.synthesis.domains import Domain
from defocus.synthesis.measurement import Fitted

__all__ = ["check_fit", "packed", "saved", "unpacked"]

_LARGEST = 2**30
"""The most bytes of one array of a saved generator."""
_MOST_ROWS = 2.0**53
_T = TypeVar("_T")
_WRONG = (
    OSError,
    ValueError,
    KeyError,
    TypeError,
    IndexError,
    AttributeError,
    ArithmeticError,
    RecursionError,
    zlib.error,
    DefocusError,
)
"""What reading a file of something else may raise."""


def saved(path: str | Path, form: str, read: Callable[[Any], _T], what: str) -> _T:
    """What a file of this format holds, or a refusal."""
    try:
        written = json.loads(Path(path).read_text("utf-8"))
        if written["format"] == form:
            return read(written)
    except _WRONG:
        pass
    raise SourceError(f"{str(path)!r:.120} {what}.", fix="give a file that save() wrote.")


def packed(array: NDArray[Any]) -> dict[str, Any]:
    """An array as JSON."""
    little = np.ascontiguousarray(array, array.dtype.newbyteorder("<"))
    return {"shape": list(array.shape), "data": base64.b64encode(zlib.compress(little.tobytes(), 6)).decode("ascii")}


def unpacked(written: Mapping[str, Any], kind: Any = np.float64) -> NDArray[Any]:
    """An array of the shape that is declared, whatever the data would inflate to: no more than that is inflated.

    >>> unpacked(packed(np.eye(2))).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    shape, form = [int(size) for size in written["shape"]], np.dtype(kind).newbyteorder("<")
    size = math.prod(shape) * form.itemsize
    if min(shape, default=0) < 0 or size > _LARGEST:
        raise ValueError("an array is too large")
    inflating = zlib.decompressobj()
    raw = inflating.decompress(base64.b64decode(written["data"], validate=True), size + 1)
    if len(raw) != size or inflating.unconsumed_tail:
        raise ValueError("an array is not as large as it says")
    return np.frombuffer(raw, form).astype(kind).reshape(shape)


def check_fit(domains: Sequence[Domain], fitted: Fitted) -> None:
    """Refuse arrays that do not fit the columns or each other."""
    number = len(domains)
    _check(
        number > 0 and len({domain.name for domain in domains}) == number and fitted.records.shape[1:] == (number,),
        len(fitted.bins) == len(fitted.within) == len(fitted.margins) == number,
        len(fitted.records) > 0 and 0 < fitted.total < _MOST_ROWS,
    )
    sizes = []
    for domain, bins, within in zip(domains, fitted.bins, fitted.within, strict=True):
        _check(bins.shape == within.shape == (domain.size,), bool((np.isfinite(within) & (within >= 0)).all()))
        sizes.append(int(bins.max()) + 1)
        _check(len(np.unique(bins)) == sizes[-1], int(bins.min()) == 0)
    _check(int(fitted.records.min()) >= 0, bool((fitted.records.max(axis=0) < sizes).all()))
    for size, margin in zip(sizes, fitted.margins, strict=True):
        _check(margin.counts.shape == (size,), bool(np.isfinite(margin.counts).all()), _scale(margin.sigma))
    sets = [*fitted.tables, *fitted.checked]
    _check(all(sorted(set(own)) == list(own) and set(own) <= set(range(number)) for own in sets))
    for columns, noisy in fitted.tables.items():
        _check(len(columns) > 1, noisy.counts.shape == tuple(sizes[i] for i in columns), _scale(noisy.sigma))
        _check(not np.isinf(noisy.counts).any())  # NaN is what was not measured
    distances = fitted.distances
    _check(distances.counts.shape == (len(fitted.checked),), len(fitted.checked) > 0, all(map(len, fitted.checked)))
    _check(bool(np.isfinite(distances.counts).all()), _scale(distances.sigma))
    told = fitted.prediction
    _check(told is None or (0 <= told.auc <= 1 and 0 <= told.synthetic <= 1 and told.error >= 0))


def _scale(sigma: float) -> bool:
    return 1e-100 < sigma < 1e100


def _check(*held: bool) -> None:
    if not all(held):
        raise ValueError("what was saved does not fit together")

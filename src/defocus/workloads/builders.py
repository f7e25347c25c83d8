"""Words for workloads: identity, total, prefix, ranges, explicit, kron and union."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from defocus.errors import InvalidParameterError, MismatchedDomainError, Number, count
from defocus.workloads.marginals import Marginals, marginals
from defocus.workloads.queries import Array, Atom, Explicit, Identity, Prefix, Ranges, Total
from defocus.workloads.workload import Term, Workload, checked_weights

__all__ = ["explicit", "identity", "kron", "prefix", "ranges", "real_matrix", "total", "union"]


_LARGE = 1e30
"""The largest coefficient of a row and its inverse are below this, so that squares and products are numbers."""


def identity(n: int) -> Workload:
    """The count of each of ``n`` values.

    >>> identity(12).shape
    (12, 12)
    """
    return _single(Identity(count("n", n)))


def total(n: int) -> Workload:
    """The count of all ``n`` values together.

    >>> total(12).shape
    (1, 12)
    """
    return _single(Total(count("n", n)))


def prefix(n: int) -> Workload:
    """The ``n`` running totals of ordered values: an empirical distribution function.

    >>> prefix(12).shape
    (12, 12)
    """
    return _single(Prefix(count("n", n)))


def ranges(n: int) -> Workload:
    """All n(n+1)/2 intervals of ``n`` ordered values.

    >>> ranges(12).shape
    (78, 12)
    """
    return _single(Ranges(count("n", n)))


def explicit(matrix: Any, *, weights: Sequence[Number] | None = None) -> Workload:
    """The rows of a dense or sparse ``matrix``, each a query.

    >>> explicit([[1, 1, 0], [0, 1, 1]], weights=[1, 3]).shape
    (2, 3)
    """
    rows = real_matrix("The workload", matrix)
    if not np.abs(rows).sum(axis=1).all():
        raise InvalidParameterError("The workload has a query that asks nothing: a row of zeros.", fix="leave it out.")
    return _single(Explicit(rows, checked_weights(weights, len(rows), "queries")))


def kron(*parts: Workload) -> Workload:
    """All products of one query from each part, over the product of their domains.

    >>> kron(prefix(10), identity(3)).shape
    (30, 30)
    """
    _workloads(parts)
    terms = [Term(1.0, ())]
    for part in parts:
        terms = [Term(a.weight * b.weight, a.atoms + b.atoms) for a in terms for b in part.terms]
    return Workload(tuple(size for part in parts for size in part.sizes), tuple(terms))


def union(*parts: Workload | Marginals, weights: Sequence[Number] | None = None) -> Workload | Marginals:
    """The queries of all parts, one after another; squared errors in a part count as much as its weight.

    Several marginals become one set of marginals, in its order, which is planned better than any product. A table that
    is asked for twice is answered once, and counts with both weights.

    >>> union(identity(12), total(12)).shape
    (13, 12)
    >>> union(marginals([2, 3], ways=1), marginals([2, 3], ways=2))
    <3 marginals of 2 attributes, 11 queries>
    """
    tables = [part for part in parts if isinstance(part, Marginals)]
    if len(tables) == len(parts) > 1:
        _one_domain(tables)
        weighed: Counter[tuple[int, ...]] = Counter()
        for weight, part in zip(checked_weights(weights, len(parts), "parts"), tables, strict=True):
            for chosen, own in zip(part.sets(), part.set_weights(), strict=True):
                weighed[chosen] += weight * own
        return marginals(tables[0].sizes, list(weighed), weights=list(weighed.values()))
    plain = tuple(part.products() if isinstance(part, Marginals) else part for part in parts)
    _workloads(plain)
    _one_domain(plain)
    scaled = [
        float(weight) * part for weight, part in zip(checked_weights(weights, len(plain), "parts"), plain, strict=True)
    ]
    return Workload(plain[0].sizes, tuple(term for part in scaled for term in part.terms))


def real_matrix(name: str, matrix: Any) -> Array:
    """``matrix`` as floats, if it is a finite matrix with rows and columns; true counts as one."""
    given = matrix.toarray() if hasattr(matrix, "toarray") else matrix
    try:
        rows = np.array(given)
    except ValueError:  # rows of different lengths
        rows = np.array(None)
    if rows.dtype.kind not in "biuf" or rows.ndim != 2 or not rows.size:
        given_as = f"an array of {rows.dtype} and of shape {rows.shape}" if rows.ndim else f"a {type(given).__name__}"
        raise InvalidParameterError(
            f"{name} must be a matrix of numbers with at least one row and column, but it is {given_as}.",
            fix="pass a two-dimensional numpy array, a list of lists or a scipy sparse matrix.",
        )
    rows = rows.astype(np.float64)
    if not np.isfinite(rows).all():
        raise InvalidParameterError(f"{name} holds a number that is not finite.", fix="use finite coefficients.")
    peaks = np.abs(rows).max(axis=1)
    if (peaks > _LARGE).any() or ((peaks > 0) & (peaks < 1 / _LARGE)).any():
        raise InvalidParameterError(
            f"{name} has a row whose largest coefficient is beyond {_LARGE:.0e} or below {1 / _LARGE:.0e}.",
            fix="ask in another unit, so that coefficients are of ordinary size.",
        )
    return rows


def _one_domain(parts: Sequence[Workload | Marginals]) -> None:
    for part in parts[1:]:
        if part.sizes != parts[0].sizes:
            raise MismatchedDomainError("A part of the union", part.sizes, parts[0].sizes)


def _single(atom: Atom) -> Workload:
    return Workload((atom.n,), (Term(1.0, (atom,)),))


def _workloads(parts: Sequence[object]) -> None:
    if not parts:
        raise InvalidParameterError("The workload is empty.", fix="name at least one part.")
    for part in parts:
        if not isinstance(part, Workload):
            raise InvalidParameterError(
                f"A part of a workload must be a workload, but it is {type(part).__name__}.",
                fix="make it with identity, prefix, ranges, explicit, kron or union; marginals join in a union.",
            )

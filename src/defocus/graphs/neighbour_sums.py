r"""Sums over neighbours, released once: what a model of nodes may know of their surroundings.

A graph neural network lets each node see what its neighbours are. Here every node sends what it knows along the edges
it lists, and the noisy sums that arrive are released for all public nodes at once. What is learnt from them afterwards,
and what is predicted for a node, is either post-processing of these sums or about that node's own row.

A node that lists :math:`d` others sends each of them its values times :math:`1/\sqrt d`, so that all it sends has an L2
norm of at most one, however many it lists: a hub is heard by many, and softly. No degree has to be declared and no
edge is left out. With :math:`G = 2^{20}` the values are whole numbers :math:`q` with :math:`\sum_c q_c^2 \le G^2`, and
each message is :math:`m_c = q_c f / G` rounded towards zero, with
:math:`f = \lfloor\sqrt{\lfloor G^2/d \rfloor}\rfloor`. Hence

.. math:: \sum_{\text{receivers}} \sum_c m_c^2 \le d \cdot \frac{f^2}{G^2} \sum_c q_c^2 \le d \cdot \frac{G^2}{d} = G^2.

The messages of a node depend on its own values and its own list alone, so removing a node with both moves the sums by
its messages and by nothing else: at most :math:`G` in L2 norm, and :math:`2G` where a node's data are replaced.

What this does not protect: that *others* list a node is in their lists, so it belongs to them (out-link privacy, Task
and Clifton 2012). Where a tie is a fact about both ends, as in a list of friends, each end lists it, and each end's
list is protected, but not the tie itself from the other's list. Node privacy would protect both. Weights that depend on
degrees then move for every neighbour of a hub that leaves, and sums over neighbours have no useful bound (Xiang et al.
2024 show that no private embedding of nodes has).
"""

import json
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from defocus.answers.columns import CONFIDENCE
from defocus.errors import InvalidParameterError, Number, UnfitDataError, count
from defocus.ledger import Ledger, Receipt
from defocus.mechanisms import Gaussian
from defocus.mechanisms.mechanism import checked_budget
from defocus.noise import Bits
from defocus.noise.bits import source
from defocus.privacy.units import Unit
from defocus.release.paid_computation import perform
from defocus.release.release import Release, named

__all__ = ["neighbour_sums"]

_GRID = 2**20
_MOST_NODES = 2**31
_MOST_VALUES = 2**20
"""Squares of so many values add up to less than 2**63."""
_BUT = "not that others list it: that is in their lists, and protected there only; and not how many nodes there are"
_Integers = NDArray[np.int64]


def neighbour_sums(
    edges: tuple[Any, Any],
    values: Any,
    *,
    nodes: int,
    ledger: Ledger,
    classes: int | None = None,
    epsilon: Number | None = None,
    delta: Number | None = None,
    rho: Number | None = None,
    purpose: str = "sums over neighbours",
    who: str | None = None,
    request: str | None = None,
    bits: Bits | None = None,
) -> Release:
    r"""For each public node, the noisy sum of what the nodes that list it are: their labels, say.

    Node ``u`` with ``d`` listed nodes sends each of them its values times :math:`1/\sqrt d`.

    Guarantee:
        Discrete Gaussian noise for the L2 sensitivity that this module derives, between data that differ in everything
        one node owns: its values and the list of nodes it points to. That others point to it is theirs.
    Assumes:
        The number of nodes is public, and a person of the ledger is one node, or owns as many as its unit says.

    Error:
        Unbiased, with the same noise in every entry: ``error`` is its mean absolute size, before any division.
    Reference:
        Sajadmanesh et al. (2023), GAP, for aggregation with noise; Task, Clifton (2012) for out-link privacy.

    Args:
        edges: two arrays of whole numbers, who lists and who is listed, from 0. Twice the same is one; what names no
            node, and a node that lists itself, is none.
        values: for each node a row of numbers in [-1, 1], of squares that add up to at most one (longer ones are cut,
            numbers outside as well, missing ones are 0); or, with ``classes``, the whole number of its class, and
            anything else, such as -1, for none.
        nodes: how many there are; public.
        ledger: what to charge; its unit is a user, or rows of one.
        classes: how many, where ``values`` are classes.
        epsilon: the price, with ``delta``; or ``rho``.
        delta: see ``epsilon``.
        rho: see ``epsilon``.
        purpose: why, in one line.
        who: by whom; the account's name by default.
        request: a name, under which the same sums are returned again, free of charge.
        bits: the source of random bits; the system's by default.

    >>> import tempfile
    >>> from defocus import Budget, user
    >>> from defocus.noise.testing import seeded
    >>> home = tempfile.TemporaryDirectory()
    >>> book = Ledger.open(f"{home.name}/a.ledger", budget=Budget(9, 1e-5), unit=user("page"), dataset="pages")
    >>> follows = (np.repeat(np.arange(100), 20), np.arange(2000) % 100)
    >>> sums = neighbour_sums(
    ...     follows, np.arange(100) % 2, classes=2, nodes=100, ledger=book, epsilon=8, delta=1e-6, bits=seeded(0)
    ... )
    >>> sums.value.shape, round(sums.error, 2), sums.value.mean(axis=0).round()
    ((100, 2), 0.52, array([2., 2.]))
    >>> book.close(); home.cleanup()
    """
    number = count("nodes", nodes)
    if number > _MOST_NODES:
        raise InvalidParameterError(f"There are {number} nodes, more than 2**31.", fix="ask for parts of the graph.")
    lists, knows = _edges(edges), _values(values, number, classes)
    width = knows.shape[1] if classes is None else count("classes", classes)
    if width > _MOST_VALUES:
        raise InvalidParameterError(f"A node knows {width} values, more than 2**20.", fix="send fewer, or their sums.")
    moves = _GRID * _nodes_of(ledger)
    price = checked_budget(epsilon=epsilon, delta=delta, rho=rho)
    mechanism = Gaussian.calibrated(price, sensitivity=moves, dimension=number * width)
    drawn_from = source(bits)

    def shown(value: Any, receipt: Receipt) -> Release:
        sums = np.asarray(value, np.float64).reshape(number, width)
        error, interval = mechanism.error / _GRID, mechanism.interval(CONFIDENCE) / _GRID
        return Release(sums, mechanism.event, error, interval, receipt, named(mechanism), but=_BUT)

    def compute(receipt: Receipt) -> Release:
        exact = _sums(lists, _whole(knows, classes), number)
        return shown(mechanism.sample(exact.ravel(), drawn_from) / _GRID, receipt)

    return perform(
        mechanism.event,
        compute,
        ledger=ledger,
        purpose=purpose,
        description=f"sums over neighbours of {number} nodes, {width} values each",
        written=lambda made: made.value.ravel().tolist(),
        read=shown,
        facts=json.dumps(["neighbour sums", number, width, classes is not None, repr(mechanism)]),
        who=who,
        request=request,
        asked=price,
    )


def _nodes_of(ledger: Ledger) -> int:
    """How many nodes' data come or go between neighbours of this ledger."""
    if not isinstance(ledger, Ledger):
        raise InvalidParameterError(
            f"A release is charged to a Ledger, but got {type(ledger).__name__}.", fix="open one: Ledger.open(path, …)."
        )
    unit: Unit = ledger.unit
    if unit.kind not in {"user", "rows"} or unit.period is not None:  # a part of a list moves weights of the rest
        raise InvalidParameterError(
            f"This ledger protects {unit}, but sums over neighbours protect what a node itself owns: its values and"
            " the nodes it lists.",
            fix='open the ledger with unit=dp.user("node"); or, for its persons, ledger.data(name,'
            " unit=dp.rows(per_person=1)).",
        )
    return unit.changes


def _edges(edges: object) -> tuple[NDArray[Any], NDArray[Any]]:
    """The two columns, by their types alone."""
    columns = edges if isinstance(edges, tuple) and len(edges) == 2 else ()
    whole = [own for own in columns if isinstance(own, np.ndarray) and own.dtype.kind in "iu" and own.ndim == 1]
    if len(whole) == 2 and len(whole[0]) == len(whole[1]):
        return whole[0], whole[1]
    raise UnfitDataError(
        "edges must be two arrays of whole numbers of one length: who lists, and who is listed.",
        fix="pass (sources, targets) as numpy arrays of integers, numbered from 0.",
    )


def _values(values: object, nodes: int, classes: int | None) -> NDArray[Any]:
    """What each node knows, by type and shape alone."""
    kinds, dimensions = ("iu", 1) if classes is not None else ("iuf", 2)
    fits = isinstance(values, np.ndarray) and values.dtype.kind in kinds and values.ndim == dimensions
    if isinstance(values, np.ndarray) and fits and len(values) == nodes and values.size:
        return values
    row = "the whole number of its class" if classes is not None else "numbers in [-1, 1]"
    raise UnfitDataError(
        f"values must be a numpy array with a row for each of the {nodes} nodes: {row}.",
        fix="pass zeros for nodes of which nothing is known, or -1 with classes=…",
    )


def _whole(values: NDArray[Any], classes: int | None) -> _Integers:
    """Rows of whole numbers, on the grid, whose squares add up to at most its square."""
    if classes is not None:
        return np.where(values[:, None] == np.arange(classes), np.int64(_GRID), np.int64(0))
    steps = np.clip(np.nan_to_num(values.astype(np.float64)), -1, 1) * _GRID
    found = np.trunc(steps).astype(np.int64)
    squares = (found * found).sum(1, dtype=np.int64)
    longer = squares > _GRID**2
    root = np.floor(np.sqrt(squares[longer])).astype(np.int64) + 1  # at least the root, for squares below 2**53
    found[longer] = _divided(found[longer] * _GRID, root[:, None])
    return found


def _sums(edges: tuple[NDArray[Any], NDArray[Any]], values: _Integers, nodes: int) -> _Integers:
    """Exact sums of what arrives at each node."""
    listing, listed = (own.astype(np.int64, copy=False) for own in edges)
    there = (listing >= 0) & (listing < nodes) & (listed >= 0) & (listed < nodes) & (listing != listed)
    once = np.unique(listing[there] * nodes + listed[there])
    listing, listed = once // nodes, once % nodes
    degree = np.bincount(listing, minlength=nodes)
    messages = _divided(values * _share(np.maximum(degree, 1))[:, None], _GRID)
    arriving = sparse.csr_matrix((np.ones(len(once), np.int64), (listed, listing)), shape=(nodes, nodes))
    return np.asarray(arriving @ messages, np.int64)


def _divided(number: _Integers, by: Any) -> _Integers:
    """Quotients, rounded towards zero, so that no vector becomes longer."""
    quotient: _Integers = np.sign(number) * (np.abs(number) // by)
    return quotient


def _share(degree: _Integers) -> _Integers:
    """The largest whole number whose square, times the degree, is at most the square of the grid."""
    room = _GRID**2 // degree
    root = np.floor(np.sqrt(room)).astype(np.int64)
    root -= root * root > room
    return root + ((root + 1) * (root + 1) <= room)

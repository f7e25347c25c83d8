"""One audit for every release: plant canaries by coins, release, score, and bound what was shown of them."""

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from defocus.errors import InvalidParameterError, Number, count
from defocus.noise import Bits, bernoulli
from defocus.noise.bits import source
from defocus.privacy.events import Event
from defocus.privacy.one_run import OneRun, one_run
from defocus.privacy.units import Adjacency

__all__ = ["run"]


def run(
    release: Callable[[list[Any]], Any],
    canaries: Sequence[Any],
    score: Callable[[Any, Any], float] | None = None,
    *,
    event: Event | None = None,
    claimed: Number | None = None,
    delta: Number = 0,
    confidence: float = 0.95,
    adjacency: Adjacency | str = Adjacency.ADD_REMOVE,
    independent: bool = False,
    runs: int = 1,
    bits: Bits | None = None,
) -> OneRun:
    """Plant canaries in a release by coins, and say how much it is seen to tell of one.

    For any release: a table's answer, an estimator, a synthetic table, a stream, rounds of a federation, a model. A
    canary is whatever describes one person more; ``release`` is called with those whose coin came up, adds them to its
    data, and returns what everybody may see.

    Guarantee:
        That of :func:`one_run`, with the coins of all ``runs``: with probability at least ``confidence`` the release is
        less private than any claim below the bound.
    Assumes:
        Canaries are different persons, each with no more than a person may contribute, and runs are independent, each
        charged by itself. With ``independent``, one canary's coin moves what others do not: say it where each has a
        group, a coordinate or an orthogonal gradient of its own and noise is drawn for each apart.

    Args:
        release: from the list of planted canaries to what was released.
        canaries: one description for each.
        score: from what was released and a canary to a number, higher where it looks planted. By default what was
            released is a list of numbers, one for each canary.
        event: what one run was charged, as in :func:`one_run`; by default ``released.receipt.event``, if it has one
            and nothing was ``claimed``.
        claimed: the epsilon that is tested at ``delta``.
        delta: where epsilons are told.
        confidence: how sure the bound is.
        adjacency: that of the ledger.
        independent: whether canaries are treated independently.
        runs: how often to release, with new coins each time; the release must allow for it.
        bits: the source of coins; the system's by default.

    >>> import numpy as np
    >>> draw = np.random.default_rng(0)
    >>> def counts(planted):  # one number for each of 500 villages, with half of the noise that epsilon 1 needs
    ...     return np.bincount(planted, minlength=500) + draw.laplace(0, 0.5, 500)
    >>> found = run(counts, range(500), claimed=1)
    >>> found.violation, found.canaries
    (True, 500)
    """
    listed, random = list(canaries), source(bits)
    scores, coins, owed = [], [], event
    for _ in range(count("runs", runs)):
        planted = bernoulli(Fraction(1, 2), len(listed), random)
        released = release([each for each, coin in zip(listed, planted, strict=True) if coin])
        if owed is None and claimed is None:
            owed = getattr(getattr(released, "receipt", None), "event", None)
        scores.append(_scores(released, listed, score))
        coins.append(planted)
    return one_run(
        np.concatenate(scores),
        np.concatenate(coins),
        delta=delta,
        claimed=claimed,
        confidence=confidence,
        event=owed,
        adjacency=adjacency,
        independent=independent,
    )


def _scores(released: Any, canaries: list[Any], score: Callable[[Any, Any], float] | None) -> Any:
    if score is not None:
        return np.array([float(score(released, each)) for each in canaries])
    values = np.asarray(released, dtype=np.float64)
    if values.shape != (len(canaries),):
        raise InvalidParameterError(
            "What was released is not one number for each canary.",
            fix="pass score=, a function of what was released and a canary.",
        )
    return values

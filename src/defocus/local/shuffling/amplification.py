r"""From a design and a number of users to the event that its shuffled reports are, and back to a local epsilon.

Two-level designs, whose reports favour a set of values by one factor, are described to the accountant by how large
these sets are (:class:`~defocus.privacy.events.SubsetResponse`): with p and q the chances that a report supports its
own and another value, and r the ratio of likelihoods, the shares of sets holding one and two given values are

.. math:: w = \frac{p}{r - (r-1)p}, \qquad w_2 = \frac{q(1+(r-1)w) - w}{r-1}.

All other designs are accounted for as any randomiser of their epsilon.
"""

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Literal, TypeAlias

from defocus.errors import CannotCalibrateError, NotShuffledError, Number, count, positive
from defocus.local.designs import Describes, Design, Rappor, design_of
from defocus.local.designs.design import Frequency
from defocus.local.designs.numeric import Window
from defocus.local.levels import LARGEST_EPSILON, SMALLEST_EPSILON
from defocus.privacy import Adjacency, Budget, account, events
from defocus.privacy.numbers import bisect

__all__ = ["Deployment", "amplified", "local_epsilon", "local_event"]

Deployment: TypeAlias = Literal["shuffler", "secure-aggregation"]
"""Who stands between the devices and the analyst."""


def amplified(design: Design | Describes, users: int, *, deployment: Deployment = "shuffler") -> events.Shuffled:
    """What the reports of so many users cost together, once a shuffler has mixed them.

    Guarantee:
        For neighbours that differ in one user's value (replace-one), if at least ``users`` honest users' reports are in
        the batch and the analyst sees nothing but the batch.
    Assumes:
        Nobody colludes with the shuffler. With c of the users on the analyst's side, pass ``users`` − c. Every round is
        randomised afresh: reports that repeat remembered noise (a :class:`~defocus.local.Memory`) are not independent
        from round to round, and their rounds do not compose. RAPPOR, which always remembers, is refused.

    >>> from defocus.local import oracle
    >>> event = amplified(oracle("k-rr", 2, 3).design, 10_000)
    >>> round(account(event, adjacency="replace").epsilon(1e-6), 3)
    0.22
    """
    design = design_of(design)
    if deployment == "secure-aggregation":
        raise NotShuffledError(
            "secure aggregation",
            "the analyst is shown one sum, computed from reports that stay with their senders' names, and the theorems "
            "are about the multiset of anonymous reports",
            "charge the local event of each report; or add noise in shares and charge the sum as a central release.",
        )
    if deployment != "shuffler":
        raise NotShuffledError(
            f"a deployment called {str(deployment)[:40]!r}", "it is not known to shuffle", 'pass "shuffler".'
        )
    if isinstance(design, Rappor):
        raise NotShuffledError(
            "RAPPOR",
            "its reports repeat noise that the device remembers, so that rounds are not independent of each other",
            "charge the local event, which covers all rounds; or collect with an oracle that randomises afresh.",
        )
    return events.Shuffled(local_event(design), count("users", users))


def local_event(design: Design | Describes) -> events.Event:
    """One report of ``design`` as tightly as shuffling can use it.

    >>> from defocus import local
    >>> local_event(local.oracle("k-rr", 4, epsilon=2).design)
    RandomizedResponse(epsilon=2, categories=5)
    """
    design = design_of(design)
    if isinstance(design, Frequency) and design.overlap != "none":
        ratio, p, q = design.ratio, design.p, design.q
        inside = p / (ratio - (ratio - 1) * p)
        both = max(Fraction(0), (q * (1 + (ratio - 1) * inside) - inside) / (ratio - 1))
        if design.overlap == "varied":
            both = max(Fraction(0), 2 * inside - 1)
        if both <= max(Fraction(0), 2 * inside - 1):  # the least there can be, which floats may miss
            return events.SubsetResponse(_log_above(ratio), inside, max(Fraction(0), 2 * inside - 1))
        return events.SubsetResponse(
            _log_above(ratio), float(inside), min(math.nextafter(float(both), 0), float(inside))
        )
    if isinstance(design, Window):
        # A number between two places of the window takes one of them by chance, and the loss of a mixture is no more
        # than that of its worst part; windows far apart share no cell.
        inside = Fraction(design.window, design.cells)
        return events.SubsetResponse(_log_above(design.ratio), inside, max(Fraction(0), 2 * inside - 1))
    return design.event if isinstance(design.event, events.RandomizedResponse) else events.Pure(design.epsilon)


def local_epsilon(
    make: Callable[[Number], Design],
    users: int,
    epsilon: Number,
    delta: Number,
    *,
    at_most: Number = LARGEST_EPSILON,
    precision: float = 1e-3,
) -> float:
    """The largest local epsilon found whose shuffled reports are (``epsilon``, ``delta``)-DP among so many users.

    ``at_most`` is the largest epsilon that ``make`` takes.

    >>> from defocus.local.designs import design
    >>> round(local_epsilon(lambda e: design("k-rr", 2, e), 10_000, 1, 1e-6), 1)
    5.5
    """
    budget, largest = Budget(epsilon, delta), float(positive("at_most", at_most))
    count("users", users)

    def fits(log_local: float) -> bool:
        event = amplified(make(min(math.exp(log_local), largest)), users)
        return budget.covers(account(event, "basic", Adjacency.REPLACE))

    low, high = math.log(float(SMALLEST_EPSILON)), math.log(largest)
    # Amplification grows with the root of the number of users, so the answer is usually near its logarithm.
    yes = math.log(min(max(math.log(users), float(epsilon), 0.01), largest / 2))
    while yes > low and not fits(yes):
        high, yes = yes, max(yes - 0.5, low)
    if not fits(yes):
        raise CannotCalibrateError(
            f"No local epsilon of at least {float(SMALLEST_EPSILON):g} keeps {budget} among {users} users.",
            fix="gather more users, or allow a larger epsilon or delta.",
        )
    return min(math.exp(bisect(fits, high, yes, width=precision).yes), largest)


def _log_above(ratio: Fraction) -> float:
    logarithm = math.log(ratio) if ratio < 2**1000 else math.inf
    return logarithm * (1 + 2.0**-50)

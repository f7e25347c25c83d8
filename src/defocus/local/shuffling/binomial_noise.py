r"""Counts hidden by fair game: how much a count loses to which everybody adds a coin.

If each of n users adds, besides what they have to say, a coin that shows heads with chance q, a count carries
:math:`\mathrm{Bin}(n, q)` noise that nobody has to be trusted with. One user's value moves some counts by known
shifts; what is lost is the pair :math:`o(c - s)` against :math:`o(c)` for each of them, o being the binomial masses,
and is added up exactly for one or two counts.

Reference:
    Balcer, Cheu (2020), Separating local and shuffled differential privacy via histograms; Dwork, Kenthapadi, McSherry,
    Mironov, Naor (2006), Our data, ourselves, for binomial noise.
"""

import math
from fractions import Fraction

import numpy as np

from defocus.errors import CannotCalibrateError, Number
from defocus.privacy import events
from defocus.privacy.accounting.shuffling.binomials import Floats, Window, binomial
from defocus.privacy.losses import checked_delta, checked_epsilon
from defocus.privacy.numbers import bisect

__all__ = ["chance_for", "delta_of", "replaced_event"]

_REACH = 60.0
"""Masses beyond e**-60 are left out and charged for: far below every delta that is of use."""
_U = 2.0**-53
"""The largest relative error of one rounding."""
_SCALE = 1 << 32
"""Chances are whole numbers over this, so that a coin is 32 fair ones."""


def delta_of(trials: int, chance: Fraction, shifts: tuple[int, ...], epsilon: Number) -> float:
    """A certified upper bound on delta at ``epsilon`` when one user moves counts by ``shifts`` (one or two of them).

    >>> 0 < delta_of(1000, Fraction(1, 10), (1, -1), 1) < 1e-6
    True
    """
    e = checked_epsilon(epsilon)
    law = binomial(trials, float(chance / (1 - chance)), _REACH)
    pairs = [_pair(law, shift) for shift in shifts]
    rest = 4 * len(shifts) * (law.rest + _U * len(law.masses)) + 4 * law.error * len(shifts)
    p, q = pairs[0]
    if len(pairs) == 1:
        return min(1.0, max(_stick(p, q, e), _stick(q, p, e)) + rest)
    return min(1.0, max(_stick_of_two(pairs[0], pairs[1], e), _stick_of_two(pairs[0][::-1], pairs[1][::-1], e)) + rest)


def chance_for(trials: int, shifts: tuple[int, ...], epsilon: Number, delta: Number) -> Fraction:
    """The least chance of heads found, a multiple of 2⁻³² up to a half, that hides ``shifts`` well enough."""
    target = checked_delta(delta)

    def hides(k: float) -> bool:
        chance = Fraction(round(math.exp(k)), _SCALE)
        return delta_of(trials, chance, shifts, epsilon) <= target

    top = math.log(_SCALE // 2)
    if not hides(top):
        raise CannotCalibrateError(
            f"{trials} coins do not hide a shift of {max(map(abs, shifts))} at epsilon {float(epsilon):g}, delta "
            f"{float(delta):g}.",
            fix="gather more users, let each toss more coins, or allow a larger epsilon or delta.",
        )
    return Fraction(round(math.exp(bisect(hides, 0.0, top, width=1e-4).yes)), _SCALE)


def replaced_event(epsilon: Number, delta: float, users: int) -> events.Event:
    """(``epsilon``, ``delta``) for a user whose value is replaced, and for no other neighbours.

    The messages can be counted, so a user added or removed is seen. The second part, shuffled reports that say nothing
    and cost nothing, makes every accountant and every ledger of such neighbours refuse.
    """
    return events.Approximate(epsilon, delta) + events.Shuffled(events.Pure(0), users)


def _pair(law: Window, shift: int) -> tuple[Floats, Floats]:
    """The masses of the count with and without the shift, over one range of values."""
    padding = np.zeros(abs(shift))
    low, high = np.concatenate((law.masses, padding)), np.concatenate((padding, law.masses))
    return (high, low) if shift > 0 else (low, high)


def _stick(p: Floats, q: Floats, epsilon: float) -> float:
    return float(np.maximum(p - math.exp(epsilon) * q, 0.0).sum())


def _stick_of_two(first: tuple[Floats, Floats], second: tuple[Floats, Floats], epsilon: float) -> float:
    """The hockey stick of a product: for each outcome of the first, that of the second at the epsilon left."""
    (p, q), (r, s) = first, second
    with np.errstate(divide="ignore", invalid="ignore"):
        losses = np.log(r) - np.log(s)
        left = epsilon - (np.log(p) - np.log(q))
    keep = ~np.isnan(losses)
    order = np.argsort(losses[keep], kind="stable")
    sorted_losses, r, s = losses[keep][order], r[keep][order], s[keep][order]
    r_above = np.append(np.cumsum(r[::-1])[::-1], 0.0)
    s_above = np.append(np.cumsum(s[::-1])[::-1], 0.0)
    used = p > 0
    left = left[used]
    place = np.searchsorted(sorted_losses, left, side="right")
    with np.errstate(over="ignore", invalid="ignore"):
        inner = r_above[place] - np.where(s_above[place] > 0, np.exp(np.minimum(left, 700.0)) * s_above[place], 0.0)
    return float((p[used] * np.clip(inner, 0.0, 1.0)).sum())

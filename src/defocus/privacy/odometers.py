r"""A privacy odometer: a running bound on epsilon that holds whenever the analyst decides to stop.

Guarantee:
    With levels :math:`\varepsilon_1 < \dots < \varepsilon_m`, each guarded by its own filter with its own share
    :math:`\delta_i` of delta, the reading is the least level whose filter still fits the run. Whatever rule the
    analyst stops by, :math:`P(S \cap \{\text{reading} = \varepsilon_i\}) \le
    e^{\varepsilon_i} Q(S \cap \{\text{reading} = \varepsilon_i\}) + \delta_i` for every set S of transcripts: on that
    set the run never left filter i, so the argument of :mod:`defocus.privacy.filters` applies to it.
Reference:
    Rogers, Roth, Ullman, Vadhan (2016), Privacy odometers and filters; Lécuyer (2021) for doubling levels.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import final

from defocus.errors import InvalidParameterError, Number, positive, probability
from defocus.privacy.budgets import Budget
from defocus.privacy.events import Event
from defocus.privacy.filters import Cost, Filter
from defocus.privacy.filters import filter as filter_for
from defocus.privacy.numbers import below
from defocus.privacy.units import Adjacency

__all__ = ["Odometer", "odometer"]

_LEVELS = tuple(2.0 ** (i / 2) for i in range(-8, 11))


@final
@dataclass(frozen=True, slots=True)
class Odometer:
    """Filters at increasing levels of epsilon. Made by :func:`odometer`.

    >>> from defocus.privacy.events import Pure
    >>> meter = odometer(1e-6, levels=(0.5, 1, 2))
    >>> meter.read(meter.start), meter.read(meter.after(meter.start, Pure(0.7)))
    (0.0, 1.0)
    """

    filters: tuple[Filter, ...]

    @property
    def start(self) -> tuple[Cost, ...]:
        """The state before any release."""
        return tuple(one.start for one in self.filters)

    def after(self, spent: tuple[Cost, ...], event: Event) -> tuple[Cost, ...]:
        """The state after one more release."""
        return tuple(cost + one.cost(event) for cost, one in zip(spent, self.filters, strict=True))

    def read(self, spent: tuple[Cost, ...]) -> float:
        """The least level that covers everything so far; infinite beyond the last, zero before the first release."""
        if spent == self.start:
            return 0.0
        levels = (one.budget.epsilon for one, cost in zip(self.filters, spent, strict=True) if one.fits(cost))
        return float(next(levels, None) or math.inf)


def odometer(
    delta: Number, adjacency: Adjacency = Adjacency.ADD_REMOVE, *, levels: Iterable[Number] = _LEVELS
) -> Odometer:
    """An odometer whose readings hold together except with probability ``delta``.

    >>> from defocus.privacy.events import Gaussian
    >>> meter = odometer(1e-6, levels=(0.5, 1, 2, 4))
    >>> meter.read(meter.after(meter.start, 25 * Gaussian(20)))
    2.0
    """
    steps = sorted({below(positive("level", level)) for level in levels})
    total = below(probability("delta", delta, one=False))
    if not steps:
        raise InvalidParameterError("An odometer needs at least one level.", fix="pass levels=(0.5, 1, 2, 4).")
    return Odometer(tuple(filter_for(Budget(level, total / len(steps)), adjacency) for level in steps))

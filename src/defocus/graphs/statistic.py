"""A statistic of a graph: a vector of whole numbers, and its sensitivity."""

from typing import Any, Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from defocus.errors import InvalidParameterError
from defocus.graphs.public import Public
from defocus.privacy.sensitivity import Sensitivity

__all__ = ["IntVector", "Statistic", "edge_sensitivity"]


IntVector: TypeAlias = NDArray[np.int64]


@runtime_checkable
class Statistic(Protocol):
    """A vector of whole numbers that a graph has, and how far one unit can move it.

    Guarantee:
        :meth:`sensitivity` and :meth:`length` depend on public facts only. Between neighbours under the unit of
        ``public`` the vector moves by at most :meth:`sensitivity`; every statistic in the registry has a certificate
        that says where this was checked on all small graphs.

    >>> from defocus.graphs import Edges
    >>> isinstance(Edges(), Statistic)
    True
    """

    @property
    def name(self) -> str:
        """What the statistic is called, in a few words."""

    def exact(self, graph: Any) -> IntVector:
        """The vector itself. Private: it is computed after the charge and leaves with noise only."""

    def length(self, public: Public) -> int:
        """How many entries the vector has."""

    def sensitivity(self, public: Public) -> Sensitivity:
        """How far one unit can move the vector; a refusal where no useful bound is known."""


def edge_sensitivity(public: Public, one: Sensitivity, *, name: str) -> Sensitivity:
    """The sensitivity under edge privacy, from that of one edge added or removed.

    Replacing one edge by another is two such changes, so it moves the vector at most twice as far. This is
    sound, and for statistics that an added edge can only raise it is not attained.
    """
    if public.unit.kind != "edge":
        raise InvalidParameterError(
            f"{name} has no noise of this kind for graphs that protect {public.unit}.",
            fix=f"protect edges: unit=dp.edge(); or ask what has a form for this unit: {public.answerable}.",
        )
    return one.times(public.changes)

"""The list of edges as node numbers, with weights and times where there are any."""

from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from defocus.errors import UnfitDataError

__all__ = ["MISSING_TIME", "Pairs"]

MISSING_TIME = -(2**63)
"""Stands for a time that is missing."""


@final
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Pairs:
    """One entry for each line of the data. Ends that are no node are -1; all rules about them are held later.

    ``weights`` are as they were given, as floats; ``times`` are whole microseconds since 1970, or whatever whole
    numbers the data counts time in, or :data:`MISSING_TIME`.
    """

    left: NDArray[np.int64]
    right: NDArray[np.int64]
    weights: NDArray[np.float64] | None = None
    times: NDArray[np.int64] | None = None

    def __post_init__(self) -> None:
        kinds: dict[str, tuple[Any, Any]] = {
            "left": (self.left, np.int64),
            "right": (self.right, np.int64),
            "weights": (self.weights, np.float64),
            "times": (self.times, np.int64),
        }
        for name, (array, kind) in kinds.items():
            if array is None and name in {"weights", "times"}:
                continue
            if not isinstance(array, np.ndarray) or array.dtype != kind or array.shape != (len(self.left),):
                raise UnfitDataError(
                    f"The {name} of a list of edges do not fit the edges.", fix="give one for each edge."
                )
            array.setflags(write=False)

    def first_of_each(self, *, directed: bool) -> NDArray[np.bool_]:
        """Which lines are the first about their edge; those with an end that is no node, or with two equal, are not.

        Depends on the ends alone. Where edges have no direction, (a, b) and (b, a) are one edge.

        >>> two = Pairs(np.array([0, 1, 0, -1]), np.array([1, 0, 1, 2]))
        >>> two.first_of_each(directed=False).tolist(), two.first_of_each(directed=True).tolist()
        ([True, False, False, False], [True, True, False, False])
        """
        known = np.flatnonzero((self.left >= 0) & (self.right >= 0) & (self.left != self.right))
        ends = np.stack([self.left[known], self.right[known]])
        if not directed:
            ends.sort(axis=0)
        order = np.lexsort((known, ends[1], ends[0]))
        ends = ends[:, order]
        new = np.ones(len(known), np.bool_)
        new[1:] = (ends[:, 1:] != ends[:, :-1]).any(axis=0)
        first = np.zeros(len(self), np.bool_)
        first[known[order[new]]] = True
        return first

    def __len__(self) -> int:
        return len(self.left)

    def __repr__(self) -> str:
        return "<a private list of edges>"

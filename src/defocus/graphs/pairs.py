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

    def __len__(self) -> int:
        return len(self.left)

    def __repr__(self) -> str:
        return "<a private list of edges>"

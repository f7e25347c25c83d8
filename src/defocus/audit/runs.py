"""Running a mechanism many times: every outcome is an output, an exception too."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, final

import numpy as np

from defocus.errors import InvalidParameterError

__all__ = ["Batched", "Mechanism", "Outputs", "Raised", "batched", "run"]

Mechanism: TypeAlias = Callable[..., Any]
"""``mechanism(data) -> output``; or, wrapped by :func:`batched`, ``mechanism(data, n) -> n outputs``."""
Outputs: TypeAlias = Any
"""A numpy array whose first axis counts the runs, or a list of one output for each run."""


@final
@dataclass(frozen=True, slots=True)
class Raised:
    """The output of a run that raised: whoever asks sees the type and the text, so both can distinguish."""

    kind: str
    text: str

    @classmethod
    def of(cls, error: Exception) -> "Raised":
        """Describe ``error``; one that cannot be shown is still an output."""
        try:
            return cls(type(error).__name__, str(error)[:200])
        except Exception:  # noqa: BLE001  # a broken __str__ must not hide a distinguishing event
            return cls(type(error).__name__, "(unprintable)")


@final
@dataclass(frozen=True, slots=True)
class Batched:
    """A mechanism that makes many independent outputs at once. Made by :func:`batched`."""

    make: Callable[[Any, int], Outputs]

    def __call__(self, data: Any, n: int) -> Outputs:
        """``n`` outputs for ``data``."""
        return self.make(data, n)


def batched(make: Callable[[Any, int], Outputs]) -> Batched:
    """Declare that ``make(data, n)`` returns ``n`` independent outputs for ``data``, as an array or a list.

    >>> import numpy as np
    >>> @batched
    ... def noisy(data, n):
    ...     return data + np.zeros(n)
    >>> noisy(1.0, 3)
    array([1., 1., 1.])
    """
    return Batched(make)


def run(mechanism: Mechanism, pair: tuple[Any, Any], n: int, *, deadline: float) -> tuple[Outputs, Outputs, Any] | None:
    """``n`` outputs on each data set, turn by turn, and the run times in nanoseconds where each run was timed.

    ``None`` when ``deadline`` (of the monotonic clock) passed before they were all there.
    """
    if isinstance(mechanism, Batched):
        both = [_many(mechanism, data, n, deadline) for data in pair]
        return None if both[0] is None or both[1] is None else (both[0], both[1], None)
    outputs: tuple[list[Any], list[Any]] = ([], [])
    times = np.empty((2, n), dtype=np.int64)
    for trial in range(n):
        for side in (0, 1):
            start = time.perf_counter_ns()
            outputs[side].append(_once(mechanism, pair[side]))
            times[side, trial] = time.perf_counter_ns() - start
        if not trial % 64 and time.monotonic() > deadline:
            return None
    return outputs[0], outputs[1], times


def _once(mechanism: Mechanism, data: Any) -> Any:
    try:
        return mechanism(data)
    except Exception as error:  # noqa: BLE001  # whatever is raised is what the asker sees: it is the output
        return Raised.of(error)


def _many(mechanism: Batched, data: Any, n: int, deadline: float) -> Outputs | None:
    try:
        outputs = mechanism(data, n)
    except Exception:  # noqa: BLE001  # see below: each run then shows its own exception
        return _one_by_one(mechanism, data, n, deadline)
    return _counted(outputs, n)


def _one_by_one(mechanism: Batched, data: Any, n: int, deadline: float) -> Outputs | None:
    outputs: list[Any] = []
    for trial in range(n):
        one = _once(lambda d: mechanism(d, 1), data)
        outputs.append(one if isinstance(one, Raised) else _counted(one, 1)[0])
        if not trial % 64 and time.monotonic() > deadline:
            return None
    return outputs


def _counted(outputs: Any, n: int) -> Outputs:
    """Refuse a batch that does not hold exactly one output for each run."""
    if isinstance(outputs, np.ndarray) and outputs.ndim >= 1 and len(outputs) == n:
        return outputs
    if isinstance(outputs, Sequence) and not isinstance(outputs, str | bytes) and len(outputs) == n:
        return list(outputs)
    shape = (
        f"{len(outputs)} outputs" if isinstance(outputs, Sequence) else f"{type(outputs).__name__} {np.shape(outputs)}"
    )
    raise InvalidParameterError(
        f"A batched mechanism was asked for {n} outputs and returned {shape}.",
        fix="return an array or a list with one entry for each run, or do not wrap the mechanism in batched().",
    )

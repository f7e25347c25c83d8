"""How many reports support each category, from what was counted."""

from collections.abc import Callable
from typing import Any

from defocus.local.designs import KRR, Design, Hadamard, Unary
from defocus.local.servers.tallies import Tally
from defocus.local.servers.transforms import walsh

__all__ = ["supports"]


def supports(design: Design, tally: Tally) -> Tally:
    """The number of reports that support each category, exactly."""
    return _SUPPORTS[type(design)](design, tally)


def _cells(_design: KRR, tally: Tally) -> Tally:
    return tally


def _bits(_design: Unary, tally: Tally) -> Tally:
    return tally[0, :-1]


def _hadamard(design: Hadamard, tally: Tally) -> Tally:
    """A report supports v where its sign is that of entry (j, v + 1): half of all, and half the signed sum."""
    by_row = tally.reshape(-1, 2)
    signed = walsh(by_row[:, 0] - by_row[:, 1])
    found: Tally = (by_row.sum() + signed[1 : design.domain.size + 1]) // 2
    return found


_SUPPORTS: dict[type[Design], Callable[[Any, Tally], Tally]] = {Hadamard: _hadamard, KRR: _cells, Unary: _bits}

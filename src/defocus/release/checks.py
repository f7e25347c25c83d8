"""What can be refused before anything is charged: every public part of a release."""

import math
from typing import Any

import numpy as np

from defocus.errors import InvalidParameterError
from defocus.mechanisms import Grid, Mechanism, RandomizedResponse
from defocus.privacy.events import Event
from defocus.privacy.naming import described
from defocus.privacy.units import Adjacency, Unit

__all__ = ["answers_with", "checked_mechanism", "checked_neighbours", "in_units", "named"]


def checked_mechanism(mechanism: object, grid: object) -> Event:
    """The event of ``mechanism``, once it and the grid are known to be what they should be."""
    if isinstance(mechanism, type) or not isinstance(mechanism, Mechanism):
        raise InvalidParameterError(
            f"A release needs a mechanism, but got {described(mechanism)}.",
            fix="pass for example mechanisms.Laplace(scale=2).",
        )
    if not isinstance(mechanism.event, Event):
        raise InvalidParameterError(
            f"The mechanism {type(mechanism).__name__} does not say what it owes.",
            fix="let its event property return a privacy event.",
        )
    if grid is not None and not isinstance(grid, Grid):
        raise InvalidParameterError(
            f"grid must be a Grid, but it is {type(grid).__name__}.", fix='write for example Grid("0.01").'
        )
    if grid is not None and answers_with(mechanism) != "number":
        raise InvalidParameterError(
            f"{type(mechanism).__name__} does not release a number, so it has no grid.", fix="leave grid out."
        )
    return mechanism.event


def checked_neighbours(mechanism: Mechanism, value: Any, unit: Unit) -> None:
    """Refuse what does not hold for the neighbours of this ledger.

    Noise for units that come or go, where one is replaced. Half the noise for "monotone" utilities, where a unit is
    replaced: some rise while others fall. One report for each unit, where units are added or removed: their number
    shows who is there.
    """
    if isinstance(mechanism, RandomizedResponse) and np.ndim(value) and unit.adjacency is Adjacency.ADD_REMOVE:
        raise InvalidParameterError(
            f"A list of reports has as many entries as there are units, but this ledger protects {unit}, so the"
            " number itself would show who is there.",
            fix="protect the answers where the number of people is public: open the ledger with a unit made by"
            " rows(replace=True) or user(column, replace=True).",
        )
    if getattr(mechanism, "replace", True) is False and unit.adjacency is Adjacency.REPLACE:
        raise InvalidParameterError(
            f"{type(mechanism).__name__} was made for units added or removed, but this ledger protects {unit}.",
            fix="make the mechanism with replace=True.",
        )
    if getattr(mechanism, "monotone", False) and unit.adjacency is Adjacency.REPLACE:
        raise InvalidParameterError(
            f"{type(mechanism).__name__} was made for utilities that all move in one direction between neighbours,"
            f" but this ledger protects {unit}, so some can rise while others fall.",
            fix="make the mechanism with monotone=False.",
        )


def answers_with(mechanism: object) -> str:
    """What a mechanism answers with: a number unless it says otherwise."""
    return str(getattr(mechanism, "answers_with", "number"))


def in_units(number: float, grid: Grid | None) -> float:
    """An error or half-width in the units of the data."""
    return float(number) if grid is None or not math.isfinite(number) else float(grid.step) * float(number)


def named(mechanism: Any) -> str:
    """A mechanism with its public parameters, in one line."""
    text = " ".join(repr(mechanism).split())
    return text if len(text) <= 300 else f"{text[:299]}…"

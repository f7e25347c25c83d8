"""The rows of a model and whose each of them is; without PyTorch and without scikit-learn."""

import datetime as dt
from typing import Any, Protocol, runtime_checkable
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from defocus.errors import InvalidParameterError, UnfitDataError
from defocus.errors.checks import Plain, guarded, number
from defocus.ledger import Ledger
from defocus.mechanisms.grid import declared, read_column
from defocus.privacy.units import Unit

__all__ = ["PrivateExamples", "named", "owners", "said_once"]

_KINDS = "iufbUSTO"
"""Whole numbers, fractions, truth values, texts, bytes and objects, by numpy's letters."""


@runtime_checkable
class PrivateExamples(Protocol):
    """Private rows that know their ledger and what is declared about them, as a table's examples do."""

    @property
    def ledger(self) -> Ledger:
        """What is charged."""
        ...

    @property
    def unit(self) -> Unit:
        """Whom the ledger protects."""
        ...

    def empty(self) -> "PrivateExamples":
        """The same columns of no rows."""
        ...

    @property
    def inputs(self) -> tuple[str, ...]:
        """The names of the inputs."""
        ...

    @property
    def target(self) -> str | None:
        """The name of the target."""
        ...

    @property
    def group(self) -> str | None:
        """The name of the column by which an evaluation compares groups."""
        ...

    @property
    def facts(self) -> str:
        """Which rows these are, the same each time they are asked for."""
        ...

    @property
    def input_bounds(self) -> tuple[list[float], list[float]] | None:
        """The declared least and largest values of the inputs."""
        ...

    @property
    def target_bounds(self) -> tuple[float, float] | None:
        """The declared least and largest value of the target."""
        ...

    @property
    def target_values(self) -> list[Any] | None:
        """The declared values of the target."""
        ...

    @property
    def group_values(self) -> list[Any] | None:
        """The declared groups."""
        ...

    def read_examples(self) -> tuple[NDArray[np.float64], Any, list[Any]]:
        """Inputs, with NaN for what is missing; targets, or None; persons. The last row is nobody's."""
        ...

    def read_grouped(self) -> tuple[NDArray[np.float64], Any, Any, list[Any]]:
        """The same with the group of each row, or None, before the persons."""
        ...


def said_once(examples: PrivateExamples, *, ledger: Any, **others: Any) -> None:
    """Refuse what is said beside examples that say it themselves; the same ledger may be named."""
    others["ledger"] = None if getattr(ledger, "where", str(ledger)) == examples.ledger.where else ledger
    for name, value in others.items():
        if value is not None:
            raise InvalidParameterError(
                f"{name}= was given beside examples of a table, which say it themselves.", fix=f"leave {name}= out."
            )


def owners(users: Any, length: int) -> NDArray[np.int64]:
    """The number of the user of each example, counted from zero; -1 for one that is nobody's.

    Guarantee:
        A type and a length that are declared are refused or not, whatever is in them. Numbers, texts, bytes, dates and
        UUIDs name a user each; what is missing and anything else names nobody. Equal numbers name one user, and a text
        that spells a number names another.

    >>> owners(["b", 3, None, 3.0, float("nan"), "b", "3", [3]], 8).tolist()
    [0, 1, -1, 1, -1, 0, 2, -1]
    """
    array = hasattr(users, "__array__") or declared(users) is not None
    given: tuple[Any, Any] = read_column(users) if array else (users, None)
    values, there = given
    if array and values.dtype.kind not in _KINDS:
        raise UnfitDataError(
            f"users= must hold numbers or texts, but is of type {str(declared(users))[:40]}.",
            fix="convert it, for example with users.astype(str).",
        )
    if (not isinstance(values, list | tuple | range) and (not array or values.ndim != 1)) or len(values) != length:
        raise UnfitDataError(
            "users= must name one user for each example.",
            fix="pass a list or a one-dimensional array as long as the data.",
        )
    keys = [guarded(named, cell, None) for cell in (values.tolist() if array else values)]
    places: dict[Any, int] = {}
    present = [True] * length if there is None else there.tolist()
    told = zip(keys, present, strict=True)
    return np.array(
        [places.setdefault(key, len(places)) if here and key is not None else -1 for key, here in told], np.int64
    )


def named(cell: Any) -> Plain | tuple[str] | None:
    """What a user is told apart by; None for nobody."""
    value: Plain | tuple[str] | None = number(cell)
    if value is None and isinstance(cell, bytes | UUID | dt.date) and cell == cell:  # noqa: PLR0124 # a missing date
        value = (repr(cell),)
    return value if value == value else None  # noqa: PLR0124 # NaN

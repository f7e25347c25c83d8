"""What the mechanisms that choose one of several candidates have in common: their parameters and rate."""

from collections.abc import Sequence
from fractions import Fraction
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from defocus.errors import InvalidParameterError, Number, count, positive

__all__ = ["Choice", "Utilities", "checked_choice", "checked_flag", "rate"]

Utilities: TypeAlias = Sequence[int | Fraction] | NDArray[np.integer[Any]]

_EXTREME = 2**500


class Choice(Protocol):
    """The parameters of a choice."""

    @property
    def epsilon(self) -> Number:
        """The loss of one choice."""

    @property
    def candidates(self) -> int:
        """How many candidates there are; public."""

    @property
    def sensitivity(self) -> Number:
        """How far one utility moves between neighbours."""

    @property
    def monotone(self) -> bool:
        """Whether all utilities move in one direction between neighbours."""


def checked_choice(choice: Choice) -> None:
    """Refuse parameters outside their range and store the others as plain numbers."""
    object.__setattr__(choice, "epsilon", positive("epsilon", choice.epsilon))
    object.__setattr__(choice, "candidates", count("candidates", choice.candidates))
    object.__setattr__(choice, "sensitivity", positive("sensitivity", choice.sensitivity))
    checked_flag("monotone", choice.monotone)
    if not Fraction(1, _EXTREME) <= rate(choice) <= _EXTREME:
        raise InvalidParameterError(
            "epsilon and sensitivity are more than 2**500 apart.", fix="pass parameters of ordinary size."
        )


def checked_flag(name: str, value: object) -> None:
    """Refuse anything but True and False: a truthy string must not halve the noise."""
    if not isinstance(value, bool):
        raise InvalidParameterError(
            f"{name} must be True or False, but it has type {type(value).__name__}.", fix=f"pass {name}=True or False."
        )


def rate(choice: Choice) -> Fraction:
    r"""The factor c of the utilities: :math:`\varepsilon/2\Delta`, or :math:`\varepsilon/\Delta` if monotone."""
    return Fraction(choice.epsilon) / (Fraction(choice.sensitivity) * (1 if choice.monotone else 2))

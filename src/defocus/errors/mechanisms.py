"""Refusals of the mechanisms floor. They name types, lengths and declared bounds, never a value: values are private."""

from defocus.errors.base import InvalidParameterError

__all__ = ["NotExactError", "UnfitDataError"]


class UnfitDataError(InvalidParameterError):
    """Data has the wrong type, shape or length for a mechanism. The text never quotes the data."""


class NotExactError(UnfitDataError):
    """Fractional data was given to a mechanism that adds noise to integers."""

    def __init__(self, kind: str) -> None:
        super().__init__(
            f"Exact noise is added to integers, but the data has type {kind}.",
            fix="put every record on an integer grid first, for example Grid('0.01').total(values, low=0, high=100), "
            "and scale the result back with Grid.decimal.",
        )

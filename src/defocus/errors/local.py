"""Refusals of the local room. Those raised on a device never quote its value; those of a server see no value at all."""

from defocus.errors.base import DefocusError, InvalidParameterError

__all__ = ["MismatchedOracleError", "OutOfDomainError", "UnreadableDescriptionError"]


class OutOfDomainError(InvalidParameterError):
    """A value on a device lies outside of the domain that was agreed on. The text never quotes the value."""

    def __init__(self, domain: str) -> None:
        super().__init__(
            f"A value lies outside of the domain: {domain}.",
            fix="declare the domain with outside='other', which adds a public bucket for such values, or mend the "
            "value on the device. Nothing was reported.",
        )


class MismatchedOracleError(InvalidParameterError):
    """Reports or counts were made under another description than the one that reads them."""

    def __init__(self, what: str, given: str, expected: str) -> None:
        super().__init__(
            f"{what} belong to the oracle {given}, but this one is {expected}.",
            fix="use the description that the clients were given; oracles that differ in domain, epsilon or any "
            "parameter do not mix.",
        )


class UnreadableDescriptionError(DefocusError, ValueError):
    """The text is not the description of an oracle, or of one this version computes differently."""

    def __init__(self, why: str) -> None:
        super().__init__(
            f"The description of an oracle could not be read: {why}.",
            fix="pass what Oracle.to_json() wrote, unchanged, and the same version of the wire format.",
        )

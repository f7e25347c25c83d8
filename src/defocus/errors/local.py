"""Refusals of the local room. Those raised on a device never quote its value; those of a server see no value at all."""

from defocus.errors.base import DefocusError, InvalidParameterError

__all__ = [
    "AskedAgainError",
    "EpsilonTooLargeError",
    "MismatchedOracleError",
    "OutOfDomainError",
    "SilentDeviceError",
    "UnmadeReportError",
    "UnreadableDescriptionError",
    "UnsuitableQuestionError",
]


class OutOfDomainError(InvalidParameterError):
    """A value on a device lies outside of the domain that was agreed on. The text never quotes the value."""

    def __init__(self, domain: str, *, rule: str) -> None:
        super().__init__(
            f"A value lies outside of the domain: {domain}.",
            fix=f"declare what becomes of such values, with {rule}. Nothing was reported, and on a device that silence "
            "can be seen.",
        )


class EpsilonTooLargeError(InvalidParameterError):
    """A description asks a device for more than the device allows."""

    def __init__(self, asked: float, allowed: float) -> None:
        super().__init__(
            f"A report would cost epsilon = {asked:g}, but this device's limit is {allowed:g}.",
            fix="do not take part, or let the collector ask for less.",
        )


class AskedAgainError(DefocusError):
    """A device was asked a second question of a search in which everybody is asked once."""

    def __init__(self) -> None:
        super().__init__(
            "This device was asked already; everybody is asked once. Nothing was reported.",
            fix="ask the people of another group.",
        )


class UnsuitableQuestionError(InvalidParameterError):
    """A question that the protocol does not ask, or that costs more than was agreed on."""

    def __init__(self, why: str) -> None:
        super().__init__(
            f"The question does not suit the protocol: {why}. Nothing was reported.",
            fix="ask what the protocol makes of the prefixes found so far: Hitters.oracle(group, prefixes).",
        )


class SilentDeviceError(InvalidParameterError):
    """A description under which a device would be silent about some values, for a device that must not be."""

    def __init__(self) -> None:
        super().__init__(
            "Under this description a device is silent about values outside of the domain, and silence can be seen.",
            fix="let the collector declare outside='other' for categories, or outside='clip' for numbers.",
        )


class UnmadeReportError(DefocusError):
    """A device made a report that its design does not know: a fault of the program, noticed before it was sent."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f"A client of {name} made a report that no client of {name} makes. Nothing was reported.",
            fix="tell the maintainers; until then use another oracle.",
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
    """Text or bytes are not what they should be: the description of an oracle, counts, reports or a memory."""

    def __init__(
        self, why: str, *, what: str = "The description of an oracle", writer: str = "Oracle.to_json()"
    ) -> None:
        super().__init__(
            f"{what} could not be read: {why}.",
            fix=f"pass what {writer} wrote, unchanged, and the same version of the wire format.",
        )

"""Refusals about shuffled collection."""

from defocus.errors.base import DefocusError, InvalidParameterError
from defocus.errors.mechanisms import UnfitDataError

__all__ = ["NotShuffledError", "SealError", "ShufflerUnavailableError", "TooFewUsersError"]


class NotShuffledError(InvalidParameterError):
    """Amplification was asked for where nobody shuffles the reports."""

    def __init__(self, deployment: str, why: str, fix: str) -> None:
        super().__init__(f"There is no amplification by shuffling in {deployment}: {why}.", fix=fix)


class SealError(DefocusError):
    """Something sealed could not be opened: damaged, meant for another key, or of another round."""

    def __init__(self, what: str) -> None:
        super().__init__(
            f"{what} could not be opened.",
            fix="use the private key that belongs to the round's public one, and the bytes unchanged.",
        )


class ShufflerUnavailableError(DefocusError):
    """The shuffler did not answer, or not as a shuffler does; reports that it did not accept can be sent again."""

    def __init__(self, why: str) -> None:
        super().__init__(
            f"The shuffler {why}.",
            fix="check that it runs at this address and carries this round; what was not accepted can be sent again, "
            "since copies are rejected.",
        )


class TooFewUsersError(UnfitDataError):
    """Fewer users took part than a multi-message protocol counts on, so they hide each other less than promised."""

    def __init__(self, users: int, planned: int) -> None:
        super().__init__(
            f"{users} users toss too few coins for a protocol of {planned}.",
            fix="describe the protocol for the honest users that surely take part, less those who drop out; what was "
            "already sent by fewer costs event_among(users).",
        )

"""Refusals about shuffled collection."""

from defocus.errors.base import DefocusError, InvalidParameterError

__all__ = ["NotShuffledError", "SealError"]


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

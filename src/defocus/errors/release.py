"""Refusals of the release room, after a charge was made."""

from typing import Any

from defocus.errors.base import DefocusError

__all__ = ["NotRecordedError", "QuestionFailedError", "ReleaseFailedError"]


class ReleaseFailedError(DefocusError):
    """Sampling failed after its cost was charged. The reason is withheld: it could depend on private values."""

    def __init__(self, *, charge: int, mechanism: str) -> None:
        super().__init__(
            f"The {mechanism} mechanism failed after its cost was charged (entry {charge}). The charge stays, since"
            " the failure itself may tell something; the reason is not shown, since it may depend on private values.",
            fix="run the mechanism on made-up data of the same type and shape, where every error may be seen.",
        )
        self.charge = charge


class QuestionFailedError(DefocusError):
    """What a question asks for could not be computed after it was charged. The charge stays."""

    def __init__(self, *, charge: int, why: str) -> None:
        super().__init__(
            f"The question was charged (entry {charge}), but it could not be answered. {why}"
            " The charge stays, since the failure itself may tell something.",
            fix="mend the cause and ask again, which costs again; try it on made-up data of the same kind first.",
        )
        self.charge = charge


class NotRecordedError(DefocusError):
    """A value was charged and sampled, but the ledger could not note what was released.

    ``release`` holds the result: it is paid for and may be used.
    """

    def __init__(self, release: Any, *, charge: int, why: str) -> None:
        super().__init__(
            f"The release was charged (entry {charge}) and sampled, but the ledger could not record it: {why}",
            fix="use the value in the `release` attribute of this error, and record it by hand when the ledger is back:"
            " ledger.record(release.receipt, release.value).",
        )
        self.release = release

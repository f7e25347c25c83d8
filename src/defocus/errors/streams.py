"""Refusals of streams: steps that do not exist, and states that must not be gone on from."""

from defocus.errors.base import DefocusError

__all__ = ["StreamEndedError", "StreamStateError"]


class StreamEndedError(DefocusError):
    """A stream was planned and charged for a number of steps, and they are used up."""

    def __init__(self, steps: int) -> None:
        super().__init__(
            f"This stream was charged for {steps} steps, and all of them have been released.",
            fix="plan another RunningSum and start it: it is charged on its own. Plan for more steps than needed;"
            " twice as many cost little accuracy.",
        )
        self.steps = steps


class StreamStateError(DefocusError):
    """A stream cannot go on from here: closed, handed over, already resumed, damaged or not its own."""

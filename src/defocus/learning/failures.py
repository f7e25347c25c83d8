"""What is told of a failure after the charge: that there was one."""

import copy
from collections.abc import Callable

from defocus.errors import DefocusError, StepFailedError, UnfitDataError, UnfitModelError

__all__ = ["withheld"]


def withheld(work: Callable[[], None]) -> DefocusError | KeyboardInterrupt | None:
    """Why work on private examples failed, as far as it may be told, to be raised by whoever holds none of them.

    Guarantee:
        What is returned is new: no cause, context or frame of the failure hangs on it. Refusals that are about public
        things (the model between steps, the log, other processes) keep their words, and everything else says nothing.
    """
    try:
        work()
    except KeyboardInterrupt:
        return KeyboardInterrupt()
    except BaseException as problem:  # noqa: BLE001 -- its words and frames may hold examples
        if isinstance(problem, DefocusError) and not isinstance(problem, UnfitModelError | UnfitDataError):
            return copy.copy(problem)
    else:
        return None
    return StepFailedError(
        "A step failed on private examples. The reason is withheld, since it may quote them. Nothing of the step was"
        " released, and the charge stays.",
        fix="try the model and the loss on made-up examples of every kind, and resume from a checkpoint.",
    )

"""A progress bar that shows nothing that was not paid for, unless its owner asked for it."""

from typing import final

from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bar

from defocus.learning.accountant import Plan
from defocus.learning.metrics import NoisyMetrics, PrivateMetrics

__all__ = ["Progress", "Silent"]

_BAR = 10
"""Narrow, so that a line fits in 80 columns."""
_TIMES = 20
"""How often epsilon is computed anew."""


@final
class Progress:
    """Step, epsilon so far, and what may be seen of losses and norms."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._price = plan.price if plan.price.epsilon is None else f"{float(plan.price.epsilon):.4g}"
        self._bar = Bar(
            BarColumn(bar_width=_BAR),
            MofNCompleteColumn(),
            TimeRemainingColumn(compact=True),
            TextColumn("{task.fields[words]}", markup=False),
        )
        self._task = self._bar.add_task("training", total=plan.steps, words="")
        self._epsilon = 0.0

    def __enter__(self) -> "Progress":
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def show(self, taken: int, glance: NoisyMetrics | None, private: PrivateMetrics | None) -> None:
        """Show the state after ``taken`` steps."""
        if taken % max(1, self._plan.steps // _TIMES) == 0 or taken == self._plan.steps:
            self._epsilon = self._plan.epsilon_after(taken)
        seen = [f"ε {self._epsilon:.3g} of {self._price}"]
        if glance is not None:
            seen.append(str(glance))
        if private is not None:
            seen.append(_exact(private))
        self._bar.update(self._task, completed=taken, words=" · ".join(seen))


@final
class Silent:
    """No progress bar."""

    def __enter__(self) -> "Silent":
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def show(self, taken: int, glance: NoisyMetrics | None, private: PrivateMetrics | None) -> None:
        """Show nothing."""


def _exact(private: PrivateMetrics) -> str:
    if not private.losses:
        return ""
    low, middle, high = private.quantiles[-1]
    norms = f"norms {low:.2g}/{middle:.2g}/{high:.2g}"
    unusable = f", unusable {private.unusable}" if private.unusable else ""
    return f"PRIVATE: loss {private.losses[-1]:.3g}, {norms}{unusable}"

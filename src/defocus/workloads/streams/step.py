"""What one step of a stream releases."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import final

import numpy as np

from defocus.answers import Answer, AnswerColumn
from defocus.answers.columns import CONFIDENCE
from defocus.answers.tables import Keys
from defocus.errors import Number
from defocus.workloads.streams.design import Errors
from defocus.workloads.streams.toeplitz import Floats

__all__ = ["Step", "counted"]


@final
@dataclass(frozen=True, slots=True, repr=False)
class Step(Answer):
    """The noisy running sum after one step. Everything here may be shown to anyone.

    Errors are computed when they are asked for, since those of a long stream take a while.

    >>> import tempfile
    >>> import defocus as dp
    >>> home = tempfile.TemporaryDirectory()
    >>> about = {"dataset": "visits", "unit": dp.rows(), "budget": dp.Budget(2, 1e-6)}
    >>> ledger = dp.Ledger.open(f"{home.name}/visits.ledger", **about)
    >>> running = dp.workloads.RunningSum(30, epsilon=1, delta=1e-6).start(ledger=ledger, purpose="visits")
    >>> first = running.add(4000)
    >>> 3900 < first.value < 4100, first.half_width() < 100
    (True, True)
    >>> running.close()
    >>> ledger.close(); home.cleanup()
    """

    step: int
    """How many steps the sum covers."""
    value: float | Floats = field()
    """The sum: a number for a stream of counts, a vector for a stream of vectors."""
    _errors: Errors

    @property
    def keys(self) -> Keys:
        """The entries of a vector, by number."""
        return {} if isinstance(self.value, float) else {"entry": range(len(self.value))}

    @property
    def columns(self) -> tuple[AnswerColumn, ...]:
        """The sum with standard errors and 95 % intervals."""
        values, half = np.atleast_1d(self.value), self.half_width()
        errors, ends = np.full(len(values), self.standard_error), (values - half, values + half)
        return (AnswerColumn("running_sum", values, errors, *ends, integral=False, how="noise of the whole stream"),)

    @property
    def question(self) -> str:
        """Which sum it is."""
        return f"running sum after {counted(self.step, 'step')}"

    @property
    def standard_error(self) -> float:
        """The standard deviation of the noise in each entry."""
        return float(np.sqrt(self._errors.variance(self.step)))

    def half_width(self, confidence: Number = CONFIDENCE) -> float:
        """What the noise of one entry stays within with probability ``confidence``."""
        return self._errors.half_width(self.step, confidence)

    def _ends(self, column: AnswerColumn, confidence: Number) -> tuple[Floats, Floats]:
        half = self.half_width(confidence)
        return column.values - half, column.values + half

    def _topics(self) -> Mapping[str, Sequence[str]]:
        return {"cost": ["nothing more: the whole stream was charged when it was started"]}

    def __repr__(self) -> str:
        return f"Step(step={self.step}, value={self._shown(1)})"  # without its error, which takes a while to compute

    def __str__(self) -> str:
        half = self.half_width()
        digits = max(0, 2 - math.floor(math.log10(half))) if half > 0 else 0
        return f"step {self.step}: {self._shown(digits)} ± {half:.{digits}f} (95 %)"

    def _shown(self, digits: int) -> str:
        if isinstance(self.value, float):
            return f"{self.value:.{digits}f}"
        entries = [f"{entry:.{digits}f}" for entry in self.value.tolist()]
        return f"[{', '.join(entries if len(entries) <= 8 else [*entries[:3], '…', *entries[-3:]])}]"


def counted(number: int, what: str) -> str:
    """A number of things.

    >>> counted(1, "step"), counted(3, "step")
    ('1 step', '3 steps')
    """
    return f"{number} {what}{'' if number == 1 else 's'}"

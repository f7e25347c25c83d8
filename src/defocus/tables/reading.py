"""What is read from released numbers: rankings, tests and curves. Post-processing, so it is free."""

from abc import ABC, abstractmethod
from collections.abc import Sequence

from defocus.answers import PreviewColumn, Released
from defocus.tables.noise import CellNoise
from defocus.tables.planner import Plan

__all__ = ["Reading", "histogram_noise"]


class Reading(ABC):
    """A question that is answered from the released numbers of another one. Everything in it is public.

    Guarantee:
        :meth:`read` sees what was released and the plan, so that it is post-processing. Its ``repr`` is part of what a
        ledger remembers about the question.
    """

    __slots__ = ()

    @property
    @abstractmethod
    def words(self) -> str:
        """What is asked, in words."""

    @abstractmethod
    def read(self, answer: Released, planned: Plan) -> Released:
        """The answer, from the released numbers."""

    @abstractmethod
    def foreseen(self, columns: Sequence[PreviewColumn], planned: Plan) -> tuple[list[PreviewColumn], tuple[str, ...]]:
        """What is known about its columns beforehand, from what is known about the numbers; and more in sentences."""


def histogram_noise(planned: Plan) -> CellNoise:
    """The noise of the one histogram of a plan."""
    (noise,) = planned.others.values()
    assert isinstance(noise, CellNoise)  # noqa: S101  # what a histogram has
    return noise

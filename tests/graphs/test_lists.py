"""Certificates of weights and events: they notice a weight that counts twice, and an interaction that does."""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from defocus import event, weight
from defocus.graphs import Certificate, Public, Reach
from defocus.graphs.lists import MOMENTS
from defocus.graphs.statistics import Interactions, WeightSums
from defocus.graphs.statistics.weights import STEPS, steps_of


@dataclass(frozen=True)
class Wrong:
    """A statistic with a fault, which says what the right one says."""

    right: Any
    fault: Any
    name: str = "wrong"

    def exact(self, data: Any) -> Any:
        return self.fault(data)

    def length(self, public: Public) -> int:
        return int(self.right.length(public))

    def reach(self, public: Public) -> Reach:
        found: Reach = self.right.reach(public)
        return found


def uncut(data: Any) -> Any:
    return np.array([np.rint(np.nan_to_num(data.pairs.weights) / 3 * STEPS).sum()], np.int64)


def both_ends(data: Any) -> Any:
    return np.array([2 * steps_of(data.pairs, Fraction(3)).sum()], np.int64)


@pytest.mark.parametrize("fault", [uncut, both_ends])
def test_weights_that_are_not_cut_or_count_twice_are_caught(fault: Any) -> None:
    wrong = Wrong(WeightSums("total", Fraction(3)), fault)
    findings = list(Certificate(statistics=(wrong,), units=(weight(bound=3),)).findings(largest=2))
    assert findings
    assert not any(finding.holds for finding in findings)


def test_interactions_that_are_in_two_steps_are_caught() -> None:
    wrong = Wrong(Interactions((0, 5, 10)), lambda data: np.cumsum(Interactions((0, 5, 10)).exact(data)))
    for unit in (event(), event(replace=True)):
        found = list(Certificate(statistics=(wrong,), units=(unit,)).findings(largest=2))
        assert [finding.holds for finding in found] == [unit == event(replace=True)]
        assert found[0].l1 == 2


def test_moments_lie_in_and_around_the_steps() -> None:
    known = [moment for moment in MOMENTS if 0 <= moment < 10]
    assert {moment < 5 for moment in known} == {True, False}
    assert len(MOMENTS) > len(known) + 1

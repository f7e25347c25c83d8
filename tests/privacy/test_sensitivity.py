"""How far one unit moves a statistic: exact, and with the numbers of the documents this system answers."""

import dataclasses
import math
import pickle
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from defocus.errors import InvalidParameterError
from defocus.privacy import Norm, Sensitivity


@given(st.floats(1e-300, 1e300) | st.integers(1) | st.fractions(Fraction(1, 10**9)), st.sampled_from(Norm))
def test_a_bound_is_kept_exactly(bound: Any, norm: Norm) -> None:
    sensitivity = Sensitivity(norm, bound)
    assert sensitivity.bound == bound
    assert type(sensitivity.bound) is Fraction
    assert sensitivity == Sensitivity(norm.value, Fraction(bound))
    assert pickle.loads(pickle.dumps(sensitivity)) == sensitivity  # noqa: S301  # our own bytes


def test_norms_are_named_and_told_apart() -> None:
    assert [str(norm) for norm in Norm] == ["L1", "L2", "Linf"]
    assert Sensitivity("L1", 1) == Sensitivity(Norm.L1, 1) != Sensitivity("L2", 1)


def moves(statistic: Any, data: Any, neighbours: Any, order: float) -> float:
    """The largest movement seen over neighbours: never above a true sensitivity."""
    return max(float(np.linalg.norm(np.atleast_1d(statistic(data) - statistic(other)), order)) for other in neighbours)


def test_counts_and_stays_move_by_what_the_documents_say() -> None:
    """Visits with at most m per patient: event level 1, user level m; days of at most 30 a visit: 30 and 30 m."""
    m, longest = 3, 30
    visits = [(patient, longest) for patient in range(4) for _ in range(m)]
    one_visit = [visits[:i] + visits[i + 1 :] for i in range(len(visits))]
    one_patient = [[visit for visit in visits if visit[0] != patient] for patient in range(4)]
    days = lambda table: sum(stay for _, stay in table)  # noqa: E731 - a statistic, named for the lines below
    assert moves(len, visits, one_visit, 1) == Sensitivity(Norm.L1, 1).bound
    assert moves(len, visits, one_patient, 1) == Sensitivity(Norm.L1, m).bound
    assert moves(days, visits, one_visit, 1) == Sensitivity(Norm.L1, longest).bound
    assert moves(days, visits, one_patient, 1) == Sensitivity(Norm.L1, longest * m).bound


def test_accuracies_and_clipped_means_move_by_what_the_documents_say() -> None:
    """Accuracy on m examples: 1/m; mean of n vectors clipped to C: 2C/n, one replaced; clipped sum: C, one removed."""
    m = 20
    right = np.ones(m)
    wrong = [np.where(np.arange(m) == i, 0, right) for i in range(m)]
    assert moves(np.mean, right, wrong, 1) == pytest.approx(float(Sensitivity(Norm.L1, Fraction(1, m)).bound))
    n, clip = 8, 2.5
    vectors = np.tile([clip, 0.0], (n, 1))
    flipped = vectors.copy()
    flipped[0] = [-clip, 0.0]
    replaced = Sensitivity(Norm.L2, Fraction(2 * Fraction(clip), n))
    assert moves(lambda v: v.mean(axis=0), vectors, [flipped], 2) == pytest.approx(float(replaced.bound))
    removed = Sensitivity(Norm.L2, clip)
    assert moves(lambda v: v.sum(axis=0), vectors, [vectors[1:]], 2) == pytest.approx(float(removed.bound))


@pytest.mark.parametrize("bad", [0, -1, math.nan, math.inf, True, "1", None, 1j], ids=repr)
def test_a_bound_is_a_positive_number(bad: Any) -> None:
    with pytest.raises(InvalidParameterError, match=r"(?s)bound must .*To fix"):
        Sensitivity(Norm.L1, bad)


@pytest.mark.parametrize("bad", ["l1", "L3", "", None, 1, [Norm.L1]], ids=repr)
def test_a_norm_that_does_not_exist_is_refused(bad: Any) -> None:
    with pytest.raises(InvalidParameterError, match=r"(?s)no norm called.*To fix: use one of L1, L2, Linf"):
        Sensitivity(bad, 1)


def test_a_sensitivity_cannot_be_changed() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        Sensitivity(Norm.L1, 1).bound = Fraction(2)  # type: ignore[misc]

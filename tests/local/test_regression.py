import numpy as np
import pytest

from defocus.errors import InvalidParameterError
from defocus.local.designs.rappor import Regression


def test_without_noise_and_with_one_cohort_nothing_varies() -> None:
    made = Regression.of(np.eye(4)[:, :3], 1)
    held = np.array([5.0, 7.0, 0.0])
    assert made.variances(held, 0.0, 0.0) == pytest.approx([0, 0, 0])
    assert made.counts(np.array([5.0, 7.0, 0.0, 0.0])) == pytest.approx([5, 7, 0])


def test_with_several_cohorts_who_is_in_which_varies() -> None:
    """A category that only one of two cohorts shows is counted twice or not at all."""
    matrix = np.zeros((4, 2))
    matrix[0, 0] = matrix[1, 1] = matrix[3, 1] = 1.0
    made = Regression.of(matrix, 2)
    assert made.variances(np.array([10.0, 10.0]), 0.0, 0.0) == pytest.approx([10, 0])


def test_categories_that_look_alike_are_refused() -> None:
    with pytest.raises(InvalidParameterError, match="told apart"):
        Regression.of(np.ones((4, 2)), 2)

"""Errors of the learning room say what happened and how to mend it."""

import pickle

import pytest

from defocus import errors


@pytest.mark.parametrize(
    ("kind", "root"),
    [
        (errors.UnfitModelError, errors.InvalidParameterError),
        (errors.DependentExamplesError, errors.UnfitModelError),
        (errors.UnaccountedSamplingError, errors.InvalidParameterError),
        (errors.TrainingEndedError, errors.DefocusError),
        (errors.CheckpointError, errors.DefocusError),
        (errors.BranchedRunError, errors.DefocusError),
        (errors.LostProcessError, errors.DefocusError),
        (errors.StepFailedError, errors.DefocusError),
        (errors.ChangedModelError, errors.DefocusError),
    ],
)
def test_each_has_its_place_and_survives_pickling(
    kind: type[errors.DefocusError], root: type[errors.DefocusError]
) -> None:
    error = kind("It is so.", fix="mend it.")
    assert isinstance(error, root)
    again = pickle.loads(pickle.dumps(error))  # noqa: S301 - made here
    assert str(again) == "It is so.\nTo fix: mend it."

"""Errors of the learning room: models, samplers and checkpoints that would break what a training run promises."""

from defocus.errors.base import DefocusError, InvalidParameterError

__all__ = [
    "BranchedRunError",
    "ChangedModelError",
    "CheckpointError",
    "DependentExamplesError",
    "LostProcessError",
    "StepFailedError",
    "TrainingEndedError",
    "UnaccountedSamplingError",
    "UnfitModelError",
]


class UnfitModelError(InvalidParameterError):
    """A model, loss or optimizer that cannot be trained as it is. Says which part of it, never what the data is."""


class DependentExamplesError(UnfitModelError):
    """What a model makes of one example depends on the other examples of its batch, so clipping would bound nobody."""


class UnaccountedSamplingError(InvalidParameterError):
    """Batches are drawn in a way for which no proven event exists."""


class TrainingEndedError(DefocusError):
    """A step was asked for that was not paid for: the run took all the steps that it was charged for."""


class CheckpointError(DefocusError):
    """A checkpoint or the log of its run that cannot be used: damaged, missing, of another run, or in use."""


class BranchedRunError(DefocusError):
    """A step would be released a second time, from other sums than before, and only one run was charged."""


class ChangedModelError(DefocusError):
    """A model or its optimizer was changed in the middle of a run, for which clipping and noise were arranged."""


class LostProcessError(DefocusError):
    """Another process of the same run is gone, or did not answer in time. The charge stays."""


class StepFailedError(DefocusError):
    """Model or loss failed on private examples; what they said is withheld, since it may quote one."""

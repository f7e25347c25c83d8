"""Errors of the learning room: models, samplers and checkpoints that would break what a training run promises."""

from defocus.errors.base import DefocusError, InvalidParameterError

__all__ = [
    "CheckpointError",
    "DependentExamplesError",
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
    """A checkpoint that cannot be used: damaged, of another run, or already gone on from."""

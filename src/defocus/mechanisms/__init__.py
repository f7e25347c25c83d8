"""Floor 3: mechanisms. A value becomes a noisy value, and an event says what it owes.

Each mechanism is a frozen description with ``event``, ``error``, ``interval(confidence)``,
``check(value)`` and ``sample(value)``; only the last draws random bits. All noise is exact and on
integers: :class:`Grid` brings fractional records there and back.

>>> from defocus import mechanisms
>>> patients = mechanisms.Laplace.calibrated(epsilon=0.8)
>>> patients.interval(0.95)
4
"""

from defocus.mechanisms.above_threshold import AboveThreshold, Answer, Crossings
from defocus.mechanisms.advice import Advice, Candidate, advise, advise_choice
from defocus.mechanisms.gaussian import Gaussian
from defocus.mechanisms.grid import Grid
from defocus.mechanisms.instance_based import Bounded, Ladder, NoisyLocalSensitivity, Ramp
from defocus.mechanisms.laplace import Geometric, Laplace
from defocus.mechanisms.mechanism import Mechanism
from defocus.mechanisms.partition_selection import PartitionSelection
from defocus.mechanisms.quantiles import Located, Quantiles
from defocus.mechanisms.randomized_response import Estimate, RandomizedResponse
from defocus.mechanisms.ranges import RangeFinding
from defocus.mechanisms.selection import Exponential, PermuteAndFlip, ReportNoisyMax
from defocus.mechanisms.subsets import SubsetChoice

__all__ = [
    "AboveThreshold",
    "Advice",
    "Answer",
    "Bounded",
    "Candidate",
    "Crossings",
    "Estimate",
    "Exponential",
    "Gaussian",
    "Geometric",
    "Grid",
    "Ladder",
    "Laplace",
    "Located",
    "Mechanism",
    "NoisyLocalSensitivity",
    "PartitionSelection",
    "PermuteAndFlip",
    "Quantiles",
    "Ramp",
    "RandomizedResponse",
    "RangeFinding",
    "ReportNoisyMax",
    "SubsetChoice",
    "advise",
    "advise_choice",
]

"""Floor 2: the algebra of privacy. Events say what happened, accountants say what it cost, budgets say how much may.

>>> from defocus import privacy
>>> event = 1000 * privacy.Sampled(privacy.Gaussian(1.0), 0.01)
>>> round(privacy.account(event, by="rdp").epsilon(1e-5), 4)
2.1013
"""

from defocus.privacy.accounting import ACCOUNTANTS, account, tightest
from defocus.privacy.accounting.shuffling.closed_forms import shuffled_epsilon
from defocus.privacy.budgets import Budget
from defocus.privacy.calibration import calibrate
from defocus.privacy.classical import (
    classical_gaussian_sigma,
    gaussian_delta,
    gaussian_epsilon,
    gaussian_log_delta,
    gaussian_sigma,
    laplace_scale,
)
from defocus.privacy.events import (
    NOTHING,
    Approximate,
    Composed,
    Concentrated,
    DiscreteGaussian,
    DiscreteLaplace,
    Event,
    Exponential,
    Gaussian,
    Laplace,
    Pure,
    RandomizedResponse,
    Sampled,
    SampledBatch,
    Selected,
    SelectedPoisson,
    Shuffled,
    SubsetResponse,
    compose,
)
from defocus.privacy.expressions import family, parse, unparse
from defocus.privacy.filters import Comparison, Cost, Filter, Remaining, filter  # noqa: A004 - privacy.filter(budget)
from defocus.privacy.groups import group, user_level
from defocus.privacy.guidance import check_budget, check_delta, delta_for
from defocus.privacy.losses import Interval, Loss
from defocus.privacy.odometers import Odometer, odometer
from defocus.privacy.selection import expected_runs, select
from defocus.privacy.sensitivity import Norm, Sensitivity
from defocus.privacy.sequences import FixedSequence, fixed_sequence_bound
from defocus.privacy.units import Adjacency, Unit, edge, event, node, rows, user, weight
from defocus.privacy.wire import from_wire, to_wire

__all__ = [
    "ACCOUNTANTS",
    "NOTHING",
    "Adjacency",
    "Approximate",
    "Budget",
    "Comparison",
    "Composed",
    "Concentrated",
    "Cost",
    "DiscreteGaussian",
    "DiscreteLaplace",
    "Event",
    "Exponential",
    "Filter",
    "FixedSequence",
    "Gaussian",
    "Interval",
    "Laplace",
    "Loss",
    "Norm",
    "Odometer",
    "Pure",
    "RandomizedResponse",
    "Remaining",
    "Sampled",
    "SampledBatch",
    "Selected",
    "SelectedPoisson",
    "Sensitivity",
    "Shuffled",
    "SubsetResponse",
    "Unit",
    "account",
    "calibrate",
    "check_budget",
    "check_delta",
    "classical_gaussian_sigma",
    "compose",
    "delta_for",
    "edge",
    "event",
    "expected_runs",
    "family",
    "filter",
    "fixed_sequence_bound",
    "from_wire",
    "gaussian_delta",
    "gaussian_epsilon",
    "gaussian_log_delta",
    "gaussian_sigma",
    "group",
    "laplace_scale",
    "node",
    "odometer",
    "parse",
    "rows",
    "select",
    "shuffled_epsilon",
    "tightest",
    "to_wire",
    "unparse",
    "user",
    "user_level",
    "weight",
]

"""Floor 8: attacking mechanisms, to find faults and to measure how much is really lost.

>>> from defocus import audit
>>> def mean(ages):  # no noise at all
...     return sum(ages) / len(ages)
>>> audit.lower_bound(mean, ([30, 40], [30, 40, 50]), trials=1000, claimed=1).verdict
'violation'
"""

from defocus.audit.canary_runs import run
from defocus.audit.findings import Finding
from defocus.audit.history import History, Repeated, Twins, history
from defocus.audit.lower_bounds import Pairs, lower_bound, search
from defocus.audit.membership import Membership, membership
from defocus.audit.membership_attacks import ClosestRecord, MarginalDensity, SecretGuess
from defocus.audit.neighbours import Pair, neighbours
from defocus.audit.reconstruction import Reconstruction, published, reconstruct, reconstruction
from defocus.audit.report import keep, report
from defocus.audit.roc import Curve, Promise, Rate
from defocus.audit.runs import batched
from defocus.audit.target import Target
from defocus.audit.targets import attack, targets
from defocus.privacy.one_run import OneRun, one_run

__all__ = [
    "ClosestRecord",
    "Curve",
    "Finding",
    "History",
    "MarginalDensity",
    "Membership",
    "OneRun",
    "Pair",
    "Pairs",
    "Promise",
    "Rate",
    "Reconstruction",
    "Repeated",
    "SecretGuess",
    "Target",
    "Twins",
    "attack",
    "batched",
    "history",
    "keep",
    "lower_bound",
    "membership",
    "neighbours",
    "one_run",
    "published",
    "reconstruct",
    "reconstruction",
    "report",
    "run",
    "search",
    "targets",
]

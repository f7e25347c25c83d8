"""Floor 8: attacking mechanisms, to find faults and to measure how much is really lost.

>>> from defocus import audit
>>> def mean(ages):  # no noise at all
...     return sum(ages) / len(ages)
>>> audit.lower_bound(mean, ([30, 40], [30, 40, 50]), trials=1000, claimed=1).verdict
'violation'
"""

from defocus.audit.findings import Finding
from defocus.audit.lower_bounds import Pairs, lower_bound, search
from defocus.audit.neighbours import Pair, neighbours
from defocus.audit.one_run import OneRun, one_run
from defocus.audit.runs import batched
from defocus.audit.target import Target
from defocus.audit.targets import attack, targets

__all__ = [
    "Finding",
    "OneRun",
    "Pair",
    "Pairs",
    "Target",
    "attack",
    "batched",
    "lower_bound",
    "neighbours",
    "one_run",
    "search",
    "targets",
]

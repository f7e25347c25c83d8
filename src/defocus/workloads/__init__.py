"""Floor 6: workloads. Many linear questions about one histogram, answered together with the least noise.

A workload is described, a plan finds what to measure for it, and a release measures that with exact noise and
reconstructs every answer.

>>> from defocus import workloads as w
>>> ages = w.plan(w.ranges(100), epsilon=1, delta=1e-6, noise="gaussian")
>>> ages.error.total < 0.5 * ages.identity_error
True
"""

from defocus.workloads.answers import WorkloadAnswer
from defocus.workloads.builders import explicit, identity, kron, prefix, ranges, total, union
from defocus.workloads.marginals import Marginals, marginals
from defocus.workloads.planner import GivenStrategy, plan, strategy
from defocus.workloads.plans import Error, Plan
from defocus.workloads.record_counts import Records, records
from defocus.workloads.streams import RunningSum
from defocus.workloads.streams.run import Running, Step
from defocus.workloads.workload import Workload

__all__ = [
    "Error",
    "GivenStrategy",
    "Marginals",
    "Plan",
    "Records",
    "Running",
    "RunningSum",
    "Step",
    "Workload",
    "WorkloadAnswer",
    "explicit",
    "identity",
    "kron",
    "marginals",
    "plan",
    "prefix",
    "ranges",
    "records",
    "strategy",
    "total",
    "union",
]

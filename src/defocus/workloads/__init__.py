"""Floor 5: workloads."""

from defocus.workloads.streams import RunningSum
from defocus.workloads.streams_running import Running, Step

__all__ = ["Running", "RunningSum", "Step"]

"""Collection without trust: each person randomises on their own device, and a server estimates from the reports.

>>> from defocus import local
>>> asked = local.oracle("oue", 100, epsilon=1)
>>> reports = asked.encode([3] * 1000 + [7] * 500)
>>> estimate = asked.estimate(reports)
>>> bool(abs(estimate.counts[3] - 1000) < 8 * estimate.errors[3])
True
"""

from defocus.lazy_imports import lazy

__getattr__, __dir__, __all__ = lazy(__name__)

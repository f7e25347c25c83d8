"""Defocus: learn from a crowd without showing a person.

A release is a mechanism applied to data under a unit, charged to one ledger before it is sampled.

>>> import defocus as dp
>>> count = dp.mechanisms.Laplace.calibrated(epsilon=0.1)
>>> count.error, count.interval(0.95)
(9.98..., 30)
>>> dp.Budget(1, 1e-6).covers(dp.privacy.account(5 * count.event))
True

Rooms are opened when they are first asked for, so that importing this page stays quick.
"""

from defocus.lazy_imports import lazy

__getattr__, __dir__, __all__ = lazy(__name__)

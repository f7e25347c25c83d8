"""Floor 2: the algebra of privacy. Events say what happened, accountants say what it cost, budgets say how much may.

>>> from defocus import privacy
>>> event = 1000 * privacy.Sampled(privacy.Gaussian(1.0), 0.01)
>>> round(privacy.account(event, method="rdp").epsilon(1e-5), 4)
2.1013
"""

from defocus.lazy_imports import lazy

__getattr__, __dir__, __all__ = lazy(__name__)

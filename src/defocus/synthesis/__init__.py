"""Floor 8: synthetic data. Records fitted to noisy marginals of a private table, for one charge.

>>> from defocus import synthesis
>>> sorted(name for name in synthesis.__all__ if name.startswith("synth"))
['synthesise', 'synthesise_people']
"""

from defocus.lazy_imports import lazy

__getattr__, __dir__, __all__ = lazy(__name__)

"""Floor 8: synthetic data. Records fitted to noisy marginals of a private table, for one charge.

>>> from defocus import synthesis
>>> sorted(synthesis.__all__)
['Generator', 'Synthesiser', 'synthesise']
"""

from defocus.synthesis.generator import Generator
from defocus.synthesis.synthesiser import Synthesiser, synthesise

__all__ = ["Generator", "Synthesiser", "synthesise"]

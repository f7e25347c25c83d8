"""Floor 8: synthetic data. Records fitted to noisy marginals of a private table, for one charge.

>>> from defocus import synthesis
>>> sorted(name for name in synthesis.__all__ if name.startswith("synth"))
['synthesise', 'synthesise_people']
"""

from defocus.synthesis.comparison import Comparison, compare
from defocus.synthesis.generator import Generator
from defocus.synthesis.networks import GraphGenerator, GraphSynthesiser
from defocus.synthesis.noise_aware import Combined, combine
from defocus.synthesis.people import PeopleGenerator, PeopleSynthesiser, synthesise_people
from defocus.synthesis.synthesiser import Synthesiser, synthesise

__all__ = [
    "Combined",
    "Comparison",
    "Generator",
    "GraphGenerator",
    "GraphSynthesiser",
    "PeopleGenerator",
    "PeopleSynthesiser",
    "Synthesiser",
    "combine",
    "compare",
    "synthesise",
    "synthesise_people",
]

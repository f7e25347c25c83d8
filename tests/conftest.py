"""One profile for every property test: the same examples on every run, and no deadline on shared machines.

Explore with other examples by ``pytest --hypothesis-profile=explore``.
"""

from hypothesis import settings

settings.register_profile("steady", derandomize=True, deadline=None, print_blob=False)
settings.register_profile("explore", deadline=None, max_examples=1000)
settings.load_profile("steady")

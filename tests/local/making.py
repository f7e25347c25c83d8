"""Designs for tests: sketches are small, so that their counts are."""

from typing import Any

from defocus.errors import Number
from defocus.local import Oracle
from defocus.local.designs import Categorical, design


def small(name: str, domain: Any, epsilon: Number, **options: Any) -> Categorical:
    """The design of this name; a sketch has 16 rows of 64 columns, RAPPOR 4 cohorts, and d-bit asks twice."""
    if name in {"cms", "hcms"}:
        options = {"rows": 16, "width": 64} | options
    if name == "d-bit":
        options = {"asked": 2} | options
    if name == "rappor":
        options = {"cohorts": 4} | options
    return design(name, domain, epsilon, **options)


def small_oracle(name: str, domain: Any, epsilon: Number, **options: Any) -> Oracle:
    """The oracle of the same design."""
    return Oracle(small(name, domain, epsilon, **options))

"""Decoding is exact: fed with the law itself, it returns the probabilities of support that designs state."""

from typing import Any

import numpy as np
import pytest
from tests.local.making import small_oracle

from defocus.local.clients import categorical
from defocus.local.designs import GeometryResponse, LocalHashing
from defocus.local.domains import Categories
from defocus.local.servers.supports import supports
from defocus.noise.testing import seeded

CASES: list[Any] = [
    *(LocalHashing(Categories.of(20), 1, order) for order in (2, 3, 4, 5, 9)),
    *(GeometryResponse(Categories.of(20), 1, order) for order in (2, 3, 4, 5, 7, 8, 9)),
]


@pytest.mark.parametrize("design", CASES, ids=lambda design: f"{design.name} over {design.order}")
def test_every_report_supports_whom_it_should(design: LocalHashing | GeometryResponse) -> None:
    levels = design.levels
    hit = np.repeat([True, False], [levels.favoured, levels.others])
    index = np.concatenate([np.arange(levels.favoured), np.arange(levels.others)]).astype(np.uint64)
    high, low = 5, 2  # instead of weights of 60 bits
    for code in (0, 1, 7, 19):
        codes = np.full(len(hit), code)
        if isinstance(design, LocalHashing):
            cells = categorical.place_hashing(design, codes, hit, index.copy())
        else:
            cells = categorical.place_geometry(design, codes, hit, index.copy())
        assert len(set(cells.tolist())) == len(cells), "two draws give one report"
        tally = np.bincount(cells, weights=np.where(hit, high, low), minlength=design.layout.cells).astype(np.int64)
        found = supports(design, tally)
        assert found[code] == high * levels.favoured
        others = np.delete(found, code)
        assert (others == others[0]).all(), "some categories are mistaken for it more often than others"
        if isinstance(design, LocalHashing):
            assert others[0] * design.order == tally.sum()


@pytest.mark.parametrize("name", ["olh", "pgr"])
@pytest.mark.parametrize("epsilon", [0.25, 1, 2, 3, 4.5, 6, 9])
def test_large_and_small_epsilons_are_served(name: str, epsilon: float) -> None:
    asked = small_oracle(name, 40, epsilon, outside="refuse")
    people = np.arange(8000) % 40
    found = asked.estimate(asked.encode(people, seeded(1)))
    assert (np.abs(found.counts - 200) < 6 * found.errors + 1e-6).all()

"""The law of every oracle by enumeration: every outcome's exact probability under every category.

Where a client splits a draw from its placing (k-rr, olh, pgr, hadamard, hcms), every draw is placed by the client's own
``place``. Where reports are sets or rows of bits (unary encodings, subset, d-bit, rappor, cms), the law is written out
here from the design's integers; that clients follow it is for statistics to tell (``test_enumeration.py``).
"""

import math
from collections import defaultdict
from collections.abc import Callable
from fractions import Fraction
from itertools import combinations, product
from typing import Any

import numpy as np

from defocus.local.clients import categorical
from defocus.local.designs import (
    KRR,
    Categorical,
    CountMeanSketch,
    DBitFlip,
    Design,
    GeometryResponse,
    Hadamard,
    HadamardSketch,
    LocalHashing,
    Rappor,
    SubsetSelection,
    Unary,
)
from defocus.local.designs.unary import UnaryLaw
from defocus.local.hashes import bloom_positions, sketch_hashes

Law = dict[int, Fraction]


def law(design: Design, code: int) -> Law:
    """How likely each report is for a person of category ``code``; for rappor, each filter that is remembered."""
    return _LAWS[type(design)](design, code)


def _levels(design: KRR | GeometryResponse | LocalHashing, code: int) -> Law:
    """All cells of both levels, placed at once."""
    levels, found = design.levels, defaultdict[int, int](int)
    hit = np.repeat([True, False], [levels.favoured, levels.others])
    index = np.concatenate([np.arange(levels.favoured), np.arange(levels.others)]).astype(np.uint64)
    codes = np.full(len(hit), code)
    match design:
        case KRR():
            cells = categorical.place_k_rr(codes, hit, index)
        case GeometryResponse():
            cells = categorical.place_geometry(design, codes, hit, index)
        case _:
            cells = categorical.place_hashing(design, codes, hit, index)
    for cell, favoured in zip(cells.tolist(), hit.tolist(), strict=True):
        found[cell] += levels.high if favoured else levels.low
    return {cell: Fraction(weight, levels.total) for cell, weight in found.items()}


def _hadamard(design: Hadamard, code: int) -> Law:
    found = defaultdict[int, Fraction](Fraction)
    words = 1 << (64 - design.order)
    for row, flipped in product(range(1 << design.order), (False, True)):
        cell = categorical.place_hadamard(np.array([code]), np.array([row], np.uint64), np.array([flipped]))[0]
        weight = design.flips if flipped else words - design.flips
        found[int(cell)] += Fraction(weight, 1 << 64)
    return found


def _subset(design: SubsetSelection, code: int) -> Law:
    k, m = design.domain.size, design.members
    sets = [sum(1 << i for i in chosen) for chosen in combinations(range(k), m)]
    inside, outside = design.p / math.comb(k - 1, m - 1), (1 - design.p) / math.comb(k - 1, m)
    return {each: inside if each >> code & 1 else outside for each in sets}


def _sketch(design: CountMeanSketch, code: int) -> Law:
    found = {}
    for row in range(design.rows):
        at = sketch_hashes(design.seed, design.rows, design.width, np.array([row]), np.array([code]))[0]
        for report, chance in unary(design.bits, design.width, 1 << int(at)).items():
            found[row << design.width | report] = chance / design.rows
    return found


def _hadamard_sketch(design: HadamardSketch, code: int) -> Law:
    found = defaultdict[int, Fraction](Fraction)
    words = 1 << (64 - design.order)
    for pair, flipped in product(range(1 << design.order), (False, True)):
        cell = categorical.place_hadamard_sketch(
            design, np.array([code]), np.array([pair], np.uint64), np.array([flipped])
        )[0]
        found[int(cell)] += Fraction(design.flips if flipped else words - design.flips, 1 << 64)
    return found


def _d_bit(design: DBitFlip, code: int) -> Law:
    k, found = design.domain.size, {}
    chosen = list(combinations(range(k), design.asked))
    for about in chosen:
        for yes in product((False, True), repeat=design.asked):
            chance = Fraction(1, len(chosen))
            for category, answer in zip(about, yes, strict=True):
                one = design.bits.p if category == code else design.bits.q
                chance *= one if answer else 1 - one
            found[sum(1 << (c if answer else c + k) for c, answer in zip(about, yes, strict=True))] = chance
    return found


def _rappor(design: Rappor, code: int) -> Law:
    """Of what is remembered, with the cohort: every report follows from it."""
    law, found = UnaryLaw(*design.permanent, int((1 - design.flip) * 2**63)), {}
    positions = bloom_positions(design.domain, design.cohorts, design.width, design.hashes)
    for cohort in range(design.cohorts):
        ones = sum(1 << i for i in set(positions[cohort, code].tolist()))
        for report, chance in unary(law, design.width, ones).items():
            found[cohort << design.width | report] = chance / design.cohorts
    return found


def disguised(design: Rappor, code: int) -> Law:
    """How likely each first report of RAPPOR is: remembered ones are shown as ones with chance 3/4, zeros with 1/2."""
    found = {}
    positions = bloom_positions(design.domain, design.cohorts, design.width, design.hashes)
    kept, flipped = Fraction(1, 2) + (1 - design.flip) / 4, Fraction(1, 2) + design.flip / 4
    for cohort in range(design.cohorts):
        ones = sum(1 << i for i in set(positions[cohort, code].tolist()))
        for report, chance in independent(kept, flipped, design.width, ones).items():
            found[cohort << design.width | report] = chance / design.cohorts
    return found


def tilted(expected: Law, power: Fraction) -> Law:
    """The law that favours the same reports by ``power`` times the epsilon, for designs with two levels of chances."""
    weights = {report: float(chance) ** float(power) for report, chance in expected.items()}
    total = sum(weights.values())
    return {report: Fraction(weight / total) for report, weight in weights.items()}


def unary(bits: UnaryLaw, width: int, ones: int) -> Law:
    """Independent bits; which of them are ones before the noise is ``ones``."""
    return independent(bits.p, bits.q, width, ones)


def independent(p: Fraction, q: Fraction, width: int, ones: int) -> Law:
    """Independent bits, each a one with chance p where it was a one before the noise, and with chance q where not."""
    found = {}
    for report in range(1 << width):
        chance = Fraction(1)
        for i in range(width):
            one = p if ones >> i & 1 else q
            chance *= one if report >> i & 1 else 1 - one
        found[report] = chance
    return found


_LAWS: dict[type[Design], Callable[[Any, int], Law]] = {
    CountMeanSketch: _sketch,
    DBitFlip: _d_bit,
    GeometryResponse: _levels,
    Hadamard: _hadamard,
    HadamardSketch: _hadamard_sketch,
    KRR: _levels,
    LocalHashing: _levels,
    Rappor: _rappor,
    SubsetSelection: _subset,
    Unary: lambda design, code: unary(design.bits, design.domain.size, 1 << code),
}


def worst_ratio(design: Categorical) -> Fraction:
    """The largest ratio of probabilities of one report under two categories."""
    laws = [law(design, code) for code in range(design.domain.size)]
    for each in laws:
        assert sum(each.values()) == 1
    reports = set().union(*laws)
    return max(max(each[r] for each in laws) / min(each[r] for each in laws) for r in reports)

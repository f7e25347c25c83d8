"""The law of every oracle by enumeration: every outcome's exact probability under every category."""

from collections import defaultdict
from fractions import Fraction
from itertools import product

import numpy as np

from defocus.local.clients import hadamard, k_rr
from defocus.local.designs import KRR, Design, Frequency, Hadamard, Unary
from defocus.local.designs.unary import UnaryLaw

Law = dict[int, Fraction]


def law(design: Design, code: int) -> Law:
    """How likely each report is for a person of category ``code``, through the client's own placing of draws."""
    match design:
        case KRR():
            return _k_rr(design, code)
        case Hadamard():
            return _hadamard(design, code)
        case Unary():
            return unary(design.bits, design.domain.size, 1 << code)
    raise AssertionError(design)


def _k_rr(design: KRR, code: int) -> Law:
    levels, found = design.levels, defaultdict[int, Fraction](Fraction)
    for hit, index, weight in [(True, 0, levels.high)] + [(False, i, levels.low) for i in range(levels.others)]:
        cell = k_rr.place(np.array([code]), np.array([hit]), np.array([index], np.uint64))[0]
        found[int(cell)] += Fraction(weight, levels.total)
    return found


def _hadamard(design: Hadamard, code: int) -> Law:
    found = defaultdict[int, Fraction](Fraction)
    words = 1 << (64 - design.order)
    for row, flipped in product(range(1 << design.order), (False, True)):
        cell = hadamard.place(np.array([code]), np.array([row], np.uint64), np.array([flipped]))[0]
        weight = design.flips if flipped else words - design.flips
        found[int(cell)] += Fraction(weight, 1 << 64)
    return found


def unary(bits: UnaryLaw, width: int, ones: int) -> Law:
    """Independent bits; which of them are ones before the noise is ``ones``."""
    found = {}
    for report in range(1 << width):
        chance = Fraction(1)
        for i in range(width):
            one = bits.p if ones >> i & 1 else bits.q
            chance *= one if report >> i & 1 else 1 - one
        found[report] = chance
    return found


def worst_ratio(design: Frequency) -> Fraction:
    """The largest ratio of probabilities of one report under two categories."""
    laws = [law(design, code) for code in range(design.domain.size)]
    for each in laws:
        assert sum(each.values()) == 1
    reports = set().union(*laws)
    return max(max(each[r] for each in laws) / min(each[r] for each in laws) for r in reports)

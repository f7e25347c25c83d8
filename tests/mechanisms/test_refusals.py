"""What the room refuses: one row for each call, with its error, its words and its remedy."""

from collections.abc import Callable

from tests.refusals import Row, check, each

from defocus.errors import CannotCalibrateError, DefocusError, InvalidParameterError, NotExactError, UnfitDataError
from defocus.mechanisms import (
    AboveThreshold,
    Exponential,
    Geometric,
    Grid,
    Laplace,
    PartitionSelection,
    RandomizedResponse,
    ReportNoisyMax,
    advise_choice,
)
from defocus.mechanisms.mechanism import integers, rationals
from defocus.noise.testing import seeded

REFUSED: list[Row] = [
    (
        "a stream refuses fractional answers",
        lambda: list(AboveThreshold(epsilon=1, threshold=0).stream([0.5], seeded(1))),  # type: ignore[list-item]
        UnfitDataError,
        "but the data has type float",
        "put every record on an integer grid first, for",
    ),
    (
        "a choice needs an epsilon",
        lambda: advise_choice(epsilon=None, candidates=3),  # type: ignore[arg-type]
        InvalidParameterError,
        "epsilon must be",
        "pass an int, a float or a Fraction.",
    ),
    (
        "a missing value out of bounds is refused (1)",
        lambda: Grid(1).contributions([1.0], low=0, high=1, missing=5),
        InvalidParameterError,
        "missing must lie between",
        "choose missing in [low, high].",
    ),
    (
        "a missing value out of bounds is refused (2)",
        lambda: Grid(1).total([], low=0, high=1, missing=5),
        InvalidParameterError,
        "missing must lie between",
        "choose missing in [low, high].",
    ),
    (
        "a tiny epsilon is refused at once not when it is sampled",
        lambda: Laplace.calibrated(epsilon=1e-13),
        InvalidParameterError,
        "up to 2\\*\\*40",
        "use a coarser grid, a smaller sensitivity or a",
    ),
    (
        "an epsilon too small for the samplers is refused when it is made",
        lambda: Geometric(epsilon=1e-15),
        InvalidParameterError,
        "2\\*\\*40",
        "use a coarser grid, a smaller sensitivity or a",
    ),
    (
        "another length than declared is refused with both lengths (1)",
        lambda: integers([1, 2, 3], length=2),
        UnfitDataError,
        "3 entries, but this mechanism was made for 2",
        "pass 2 entries, or make the mechanism for 3;",
    ),
    (
        "another length than declared is refused with both lengths (2)",
        lambda: rationals([1, 2, 3], length=2),
        UnfitDataError,
        "3 utilities, but this mechanism was made for 2",
        "pass one utility for each of the 2 candidates;",
    ),
    (
        "a rule that would keep nothing is refused",
        lambda: PartitionSelection(epsilon=1e-8, delta=1e-9),
        CannotCalibrateError,
        "a million units",
        "raise epsilon or delta, or bound each unit to",
    ),
    (
        "an estimate needs one count for each category",
        lambda: RandomizedResponse(epsilon=1).estimate([1, 2, 3]),
        UnfitDataError,
        "made for 2",
        "pass 2 entries, or make the mechanism for 3;",
    ),
    (
        "the number of candidates is declared and held",
        lambda: Exponential(epsilon=1, candidates=3).sample([1, 2]),
        UnfitDataError,
        "2 utilities, but this mechanism was made for 3",
        "pass one utility for each of the 3 candidates;",
    ),
    (
        "a truthy word does not halve the noise",
        lambda: Exponential(epsilon=1, candidates=2, monotone="no"),  # type: ignore[arg-type]
        InvalidParameterError,
        "monotone must be True or False",
        "pass monotone=True or False.",
    ),
    (
        "parameters too far apart are refused",
        lambda: Exponential(epsilon=5e-324, candidates=2),
        InvalidParameterError,
        r"2\*\*500 apart",
        "pass parameters of ordinary size.",
    ),
    (
        "fractional utilities are refused (1)",
        lambda: ReportNoisyMax(epsilon=1, candidates=2).sample([0.5, 1.5]),  # type: ignore[list-item]
        NotExactError,
        "but the data has type float",
        "put every record on an integer grid first, for",
    ),
    (
        "fractional utilities are refused (2)",
        lambda: ReportNoisyMax(epsilon=1, candidates=2, sensitivity=0.5),  # type: ignore[arg-type]
        InvalidParameterError,
        "whole number",
        "pass an int, sensitivity >= 1.",
    ),
]


@each(REFUSED)
def test_it_is_refused_with_a_remedy(
    call: Callable[[], object], error: type[DefocusError], words: str, fix: str
) -> None:
    check(call, error, words, fix)

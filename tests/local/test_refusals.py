"""What the room refuses: one row for each call, with its error, its words and its remedy."""

from collections.abc import Callable

from tests.refusals import Row, check, each

from defocus.errors import (
    CannotCalibrateError,
    DefocusError,
    InvalidParameterError,
    NotShuffledError,
    ShufflerUnavailableError,
)
from defocus.local import Memory, best, mean, oracle
from defocus.local.designs import design
from defocus.local.domains import Categories, Interval
from defocus.local.levels import Levels
from defocus.local.servers import Server
from defocus.local.shuffling import amplified, fetch, local_epsilon
from defocus.local.shuffling.sums import chance_for

REFUSED: list[Row] = [
    (
        "an oracle without memory is refused",
        lambda: Memory(design("k-rr", 5, 1)),
        InvalidParameterError,
        "k-rr has no memory",
        "use rappor, duchi or d-bit for repeated",
    ),
    (
        "a name that nothing has is refused with the names there are",
        lambda: design("psychic", 10, 1),
        InvalidParameterError,
        r"'psychic'.*\n.*hadamard",
        "choose one of cms, d-bit, hadamard, hcms, k-rr,",
    ),
    (
        "how many nonces to remember is a whole number",
        lambda: Server(design("k-rr", 5, 1), replays=-1),
        InvalidParameterError,
        "replays",
        "pass an int, replays >= 0.",
    ),
    (
        "remembered noise is not amplified",
        lambda: amplified(design("rappor", 8, 2), 100),
        NotShuffledError,
        "not independent",
        "charge the local event, which covers all",
    ),
    (
        "the refusal for secure aggregation says what to do",
        lambda: amplified(oracle("k-rr", 2, 1).design, 100, deployment="secure-aggregation"),
        NotShuffledError,
        r"one sum[^\n]*\nTo fix: charge the local event",
        "charge the local event of each report; or add",
    ),
    (
        "bad questions are refused (1)",
        lambda: amplified(oracle("k-rr", 2, 1).design, 0),
        InvalidParameterError,
        "users must be a whole number of at least 1",
        "pass an int, users >= 1.",
    ),
    (
        "bad questions are refused (2)",
        lambda: amplified("k-rr", 100),  # type: ignore[arg-type]
        InvalidParameterError,
        "pass an oracle",
        "pass an oracle, such as local.oracle(...), or",
    ),
    (
        "bad questions are refused (3)",
        lambda: local_epsilon(lambda e: design("k-rr", 2, e), 1, 1e-4, 1e-12),
        CannotCalibrateError,
        "more users",
        "gather more users, or allow a larger epsilon or",
    ),
    (
        "a shuffler that is not there is told (1)",
        lambda: fetch("http://127.0.0.1:9"),
        ShufflerUnavailableError,
        r"could not be reached[^\n]*\nTo fix: check that it runs",
        "check that it runs at this address and carries",
    ),
    (
        "a shuffler that is not there is told (2)",
        lambda: fetch("ftp://127.0.0.1"),
        InvalidParameterError,
        "no address",
        "write http://127.0.0.1:8080.",
    ),
    (
        "too few coins are refused",
        lambda: chance_for(10, (1, -1), 0.1, 1e-9),
        CannotCalibrateError,
        "more users",
        "gather more users, let each toss more coins, or",
    ),
    (
        "rules for what lies outside are the declared ones (1)",
        lambda: Categories.of(5, outside="ignore"),  # type: ignore[arg-type]
        InvalidParameterError,
        "'refuse' or 'other'",
        "choose one of the two.",
    ),
    (
        "rules for what lies outside are the declared ones (2)",
        lambda: Interval(0, 1, "drop"),  # type: ignore[arg-type]
        InvalidParameterError,
        "'clip' or 'refuse'",
        "choose one of the two.",
    ),
    (
        "too many cells for a word are refused with a remedy",
        lambda: Levels.of(favoured=1, others=2**60, epsilon=1),
        InvalidParameterError,
        r"too many for 64 random bits.*\n.*oue",
        "use fewer categories, or another oracle: oue",
    ),
    (
        "a seed is refused",
        lambda: oracle("k-rr", 10, 1).encode([1], 42),  # type: ignore[arg-type]
        InvalidParameterError,
        "bits must be a source",
        "leave bits out; a test that needs repeatable",
    ),
    (
        "an oracle of no name is refused with the closest (1)",
        lambda: oracle("hadamrd", 5, 1),
        InvalidParameterError,
        r"To fix: did you mean hadamard\? Else choose one of cms, d-bit",
        "did you mean hadamard? Else choose one of cms,",
    ),
    (
        "an oracle of no name is refused with the closest (2)",
        lambda: mean("oue", 0, 1, 1),
        InvalidParameterError,
        r"There is no numeric oracle.*\nTo fix: choose one of duchi",
        "choose one of duchi, hybrid, laplace,",
    ),
    (
        "an oracle of no name is refused with the closest (3)",
        lambda: oracle("zzzz", 5, 1),
        InvalidParameterError,
        "To fix: choose one of",
        "choose one of cms, d-bit, hadamard, hcms, k-rr,",
    ),
    (
        "what is wrong with the question is said (1)",
        lambda: best(10, -1),
        InvalidParameterError,
        "epsilon",
        "choose epsilon in [1/1024, 32].",
    ),
    (
        "what is wrong with the question is said (2)",
        lambda: best(0, 1),
        InvalidParameterError,
        "size of the domain",
        "pass an int, the size of the domain >= 1.",
    ),
]


@each(REFUSED)
def test_it_is_refused_with_a_remedy(
    call: Callable[[], object], error: type[DefocusError], words: str, fix: str
) -> None:
    check(call, error, words, fix)

"""What the room refuses: one row for each call, with its error, its words and its remedy."""

from collections.abc import Callable
from fractions import Fraction

from tests.refusals import Row, check, each

from defocus.errors import DefocusError, ExpressionError, InvalidParameterError, UnsupportedEventError
from defocus.privacy import Budget, Concentrated, DiscreteGaussian, Laplace, account, calibrate, weight
from defocus.privacy.accounting import gdp, zcdp
from defocus.privacy.accounting.shuffling.reports import reports_of
from defocus.privacy.composition import Cost
from defocus.privacy.events import Gaussian, Pure, RandomizedResponse, Shuffled
from defocus.privacy.expressions import family, read
from defocus.privacy.losses import checked_delta
from defocus.privacy.selection import select

REFUSED: list[Row] = [
    (
        "there is no lower bound to promise",
        lambda: account(Shuffled(RandomizedResponse(1), 100), adjacency="replace").interval(1e-6),
        DefocusError,
        "no certified lower bound",
        "use epsilon(delta), which is certified from",
    ),
    (
        "noise without a largest loss is refused",
        lambda: reports_of(Gaussian(1)),
        UnsupportedEventError,
        "pure local epsilon",
        "describe what each user sends as Pure(epsilon),",
    ),
    (
        "rho is not given",
        lambda: gdp.account(Gaussian(1)).rho(),
        DefocusError,
        "does not give rho",
        'use account(event, method="zcdp"), or a budget',
    ),
    (
        "an unknown name lists the known ones (1)",
        lambda: account(Gaussian(1), method="pdl"),
        InvalidParameterError,
        "did you mean pld",
        "did you mean pld? Else choose one of pld, rdp,",
    ),
    (
        "an unknown name lists the known ones (2)",
        lambda: account(Gaussian(1), method="magic"),
        InvalidParameterError,
        "pld, rdp, zcdp, gdp, advanced, basic",
        "did you mean basic? Else choose one of pld,",
    ),
    (
        "an unknown name lists the known ones (3)",
        lambda: account(Gaussian(1), adjacency="swap"),
        InvalidParameterError,
        "add_remove, replace",
        "choose one of add_remove, replace.",
    ),
    (
        "mu is not given",
        lambda: zcdp.account(Gaussian(1)).mu(),
        DefocusError,
        "does not give mu",
        'use account(event, method="gdp"), or a budget',
    ),
    (
        "where the accountant decides and not the budget it says so (1)",
        lambda: calibrate(lambda x: DiscreteGaussian(x, 2, 3), Budget(20, 1e-5)),
        UnsupportedEventError,
        "sigma at least",
        "use a finer grid, so that sigma is larger in",
    ),
    (
        "where the accountant decides and not the budget it says so (2)",
        lambda: calibrate(lambda x: Concentrated(1 / x), Budget(1, 1e-5)),
        UnsupportedEventError,
        r"(?s)pld accountant cannot express Concentrated.*To fix: .*zcdp",
        'use account(event, method="rdp") or',
    ),
    (
        "where the accountant decides and not the budget it says so (3)",
        lambda: calibrate(Laplace, Budget(mu=1)),
        UnsupportedEventError,
        "gdp accountant cannot express Laplace",
        'use account(event, method="pld").',
    ),
    (
        "costs of different filters do not add up",
        lambda: Cost([0.0]) + Cost([0.0, 1.0]),
        InvalidParameterError,
        "different filters",
        "use one filter per budget.",
    ),
    (
        "a family without its unknown is refused (1)",
        lambda: family("gaussian(1)"),
        ExpressionError,
        "The unknown x does not occur",
        "write x for the number to be found, as in 1000",
    ),
    (
        "a family without its unknown is refused (2)",
        lambda: family("x * gaussian(1)")(2.0),
        ExpressionError,
        "x is not a count",
        "write the count as a whole number.",
    ),
    (
        "a family without its unknown is refused (3)",
        lambda: family("sampled(x, 0.1)")(2.0),
        ExpressionError,
        "A number is not an event",
        "write an event, for example gaussian(1.0).",
    ),
    (
        "a text too long is refused before it is read",
        lambda: read("(" * 1_000_000),
        ExpressionError,
        "more than 20000",
        "count equal events with *, or compose them in",
    ),
    (
        "delta one is no guarantee",
        lambda: checked_delta(1),
        InvalidParameterError,
        r"\[0, 1\)",
        "choose delta in [0, 1).",
    ),
    (
        "a mean out of reach of the shape is refused",
        lambda: select(Gaussian(1), runs=1e9, eta=-0.99),
        InvalidParameterError,
        "eta nearer to 0",
        "choose fewer runs, or eta nearer to 0.",
    ),
    (
        "an eta without a law is refused before the search",
        lambda: select(Pure(1), runs=20, eta=-2),
        InvalidParameterError,
        "eta",
        "pass eta > -1, often 0.",
    ),
    (
        "a bound of too many digits to be stored is refused",
        lambda: weight(bound=Fraction(1, 10**2000)),
        InvalidParameterError,
        "too many digits",
        "round bound to fewer digits.",
    ),
]


@each(REFUSED)
def test_it_is_refused_with_a_remedy(
    call: Callable[[], object], error: type[DefocusError], words: str, fix: str
) -> None:
    check(call, error, words, fix)

"""Accountants: each makes a loss of an event, and each holds its composition rule in one place.

pld       certified privacy-loss distributions: the tightest, with a lower bound; the default
rdp       Rényi divergences
zcdp      zero-concentrated: one additive number
gdp       Gaussian, only where it is exact
advanced  the advanced composition theorem
basic     epsilons and deltas added up
"""

from collections.abc import Callable
from typing import Literal

from defocus.errors import InvalidParameterError, Number, UnsupportedEventError, choice
from defocus.privacy.accounting import advanced, basic, gdp, pld, rdp, zcdp
from defocus.privacy.events import Approximate, Event, described, parts_of
from defocus.privacy.losses import Loss
from defocus.privacy.units import Adjacency

__all__ = [
    "ACCOUNTANTS",
    "account",
    "accountant",
    "advanced",
    "basic",
    "gdp",
    "pld",
    "rdp",
    "tightest",
    "tightest_at",
    "zcdp",
]

ACCOUNTANTS: dict[str, Callable[[Event, Adjacency], Loss]] = {
    "pld": pld.account,
    "rdp": rdp.account,
    "zcdp": zcdp.account,
    "gdp": gdp.account,
    "advanced": advanced.account,
    "basic": basic.account,
}
_ALSO = {
    **dict.fromkeys(("prv", "privacylossdistribution"), "pld"),
    **dict.fromkeys(("renyi", "rényi", "moments", "momentsaccountant"), "rdp"),
    "gaussian": "gdp",
}
"""What others call these accountants."""


def accountant(name: object) -> str:
    """The accountant of this name, or of another name in use.

    >>> accountant("PRV"), accountant("Rényi")
    ('pld', 'rdp')
    """
    return choice("accountant", name, ACCOUNTANTS, _ALSO)


def account(
    event: Event,
    method: str = "pld",
    adjacency: Adjacency | str = Adjacency.ADD_REMOVE,
    *,
    conversion: Literal["tight", "textbook"] = "tight",
) -> Loss:
    r"""What ``event`` costs, in the eyes of the accountant that ``method`` names.

    ``conversion="textbook"`` is for ``method="rdp"``: from a divergence R at order :math:`\alpha` it takes
    :math:`\varepsilon = R + \ln(1/\delta)/(\alpha - 1)` (Mironov 2017, Proposition 3), which many texts and older
    programs do. It is valid and looser than the default; use it to compare with such numbers.

    Guarantee:
        Every answer of the loss is an upper bound, float error included, for releases whose privacy parameters were
        fixed in advance; for parameters chosen on the way, see :func:`defocus.privacy.filter`.

    >>> from defocus.privacy.events import Gaussian
    >>> round(account(Gaussian(1), method="gdp").epsilon(1e-5), 4)
    4.3772
    >>> runs = 1000 * Gaussian(100)
    >>> [round(account(runs, "rdp", conversion=c).epsilon(1e-5), 3) for c in ("tight", "textbook")]
    [1.308, 1.567]
    """
    if not isinstance(event, Event):
        raise InvalidParameterError(
            f"account() needs an event, but got {described(event)}.",
            fix="read the text first, as in account(parse(text))."
            if isinstance(event, str)
            else "pass for example Gaussian(1.0), or the event of a mechanism.",
        )
    name = accountant(method)
    try:
        neighbours = Adjacency(adjacency)
    except ValueError as error:
        raise InvalidParameterError(
            f"There is no adjacency named {adjacency!r}.", fix=f"choose one of {', '.join(Adjacency)}."
        ) from error
    if name == "rdp":
        return rdp.account(event, neighbours, conversion=conversion)
    if conversion != "tight":
        raise InvalidParameterError(
            f"A conversion is chosen for Rényi divergences, and {name} has none.",
            fix='pass method="rdp", or leave conversion out.',
        )
    return ACCOUNTANTS[name](event, neighbours)


def tightest(event: Event, adjacency: Adjacency | str = Adjacency.ADD_REMOVE) -> Loss:
    """What ``event`` costs, in the eyes of the tightest accountant that can express it: pld, else rdp.

    >>> from defocus.privacy.events import Gaussian, Selected
    >>> tightest(Gaussian(1)).accountant, tightest(Selected(Gaussian(5), 0.1)).accountant
    ('pld', 'rdp')
    """
    try:
        return account(event, "pld", adjacency)
    except UnsupportedEventError:
        return account(event, "rdp", adjacency)


def tightest_at(event: Event, delta: Number, adjacency: Adjacency | str = Adjacency.ADD_REMOVE) -> Loss:
    """What ``event`` costs in the eyes of the accountant that gives the least epsilon at ``delta``.

    That is the tightest one, but where parts of the event spend all of delta outright, which leaves none for its
    rounding: adding up is exact then.

    >>> from defocus.privacy.events import Approximate, Laplace
    >>> event = Approximate(0.5, 1e-6) + Laplace(2)
    >>> tightest(event).epsilon(1e-6), round(tightest_at(event, 1e-6).epsilon(1e-6), 9)
    (1.0, 1.0)
    """
    found = tightest(event, adjacency)
    if not any(isinstance(part, Approximate) for part, _ in parts_of(event)):
        return found
    try:
        added = account(event, "basic", adjacency)
    except UnsupportedEventError:
        return found
    return min(found, added, key=lambda loss: loss.epsilon(delta))

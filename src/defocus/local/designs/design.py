"""A design: the public description of one local randomiser. It travels as JSON and makes client and server alike."""

import hashlib
import json
import math
from abc import ABC, abstractmethod
from fractions import Fraction
from functools import lru_cache
from typing import Any, ClassVar, Literal, Protocol, TypeAlias

from defocus.errors import InvalidParameterError, Number, whole
from defocus.local.domains import Categories, Domain
from defocus.local.layouts import Layout
from defocus.local.levels import Levels, checked_epsilon
from defocus.privacy import events
from defocus.privacy.wire import write_number

__all__ = ["VERSION", "Categorical", "Describes", "Design", "Favouring", "Frequency", "Overlap", "design_of"]

Overlap: TypeAlias = Literal["alike", "varied", "none"]

VERSION = 1
"""Of the description and of the wire format. A report of another version is not read."""

_LONGEST_REPORT = 1 << 20
"""A device may be told a description by strangers; this much it can make and send."""


class Design(ABC):
    """Domain, epsilon and the exact law of one report. Frozen; whatever it says is public.

    A design is checked whole when it is made, since a device may be told one by strangers: the domain is of the kind
    that its law is for, epsilon is in range, and what is left is checked in :meth:`_complete`.
    """

    __slots__ = ()
    chosen: ClassVar[tuple[str, ...]] = ()
    """The fields that are chosen beyond domain and epsilon."""
    domain: Domain
    epsilon: Number

    def __post_init__(self) -> None:
        self._suits()
        self._complete()
        _ = self.law  # refused here rather than at the first report
        if self.layout.length > _LONGEST_REPORT:
            raise InvalidParameterError(
                f"A report would have {self.layout.length} bytes, more than {_LONGEST_REPORT}.",
                fix="use fewer categories, or an oracle with short reports, such as pgr or hcms.",
            )

    @abstractmethod
    def _suits(self) -> None:
        """Check domain and epsilon."""

    def _complete(self) -> None:  # noqa: B027  # most designs have no other fields
        """Check the other fields."""

    @property
    @abstractmethod
    def name(self) -> str:
        """What it is called."""

    @property
    @abstractmethod
    def layout(self) -> Layout:
        """What a report holds."""

    @property
    @abstractmethod
    def law(self) -> dict[str, int]:
        """The integers that decide every probability. Part of the digest: who computes others is refused."""

    @property
    @abstractmethod
    def ratio(self) -> Fraction:
        """The largest ratio between the probabilities of one report under two values; at most e**epsilon."""

    @property
    def options(self) -> dict[str, Any]:
        """Choices beyond domain and epsilon, with JSON types."""
        return {name: getattr(self, name) for name in self.chosen}

    @property
    def promise(self) -> str:
        """In words: by what a report is made, and what it promises."""
        where = f"{self.name}, for {self.domain.described}"
        return f"{where}: randomised on each person's own device, epsilon {float(self.epsilon):g} for each report"

    @property
    def event(self) -> events.Event:
        """What one report costs its person in the local model. Reports about one person compose by ``+`` and ``*``."""
        return events.Pure(self.epsilon)

    def to_wire(self) -> dict[str, Any]:
        """The whole description with JSON types."""
        return {
            "format": "defocus.local",
            "version": VERSION,
            "oracle": self.name,
            "domain": self.domain.to_wire(),
            "epsilon": write_number(self.epsilon),
            "options": self.options,
            "law": self.law,
        }

    @property
    def digest(self) -> bytes:
        """Eight bytes of SHA-256 over the description: what every report carries of it."""
        return _digest(self)


class Describes(Protocol):
    """Whatever was made from a design and knows it, such as an oracle."""

    @property
    def design(self) -> Design:
        """The description."""
        ...


def design_of(asked: Design | Describes) -> Design:
    """A design as it is, or that of an oracle."""
    design: object = getattr(asked, "design", asked)
    if not isinstance(design, Design):
        raise InvalidParameterError(
            f"The description of an oracle is needed, but got {type(asked).__name__}.",
            fix="pass an oracle, such as local.oracle(...), or its design.",
        )
    return design


class Categorical(Design):
    """A design for categories."""

    __slots__ = ()
    domain: Categories

    def _suits(self) -> None:
        given: object = self.domain
        if not isinstance(given, Categories):
            raise InvalidParameterError(
                f"A domain of categories is needed, but it is {type(given).__name__}.",
                fix="pass Categories; for numbers choose a numeric oracle.",
            )
        object.__setattr__(self, "epsilon", checked_epsilon(self.epsilon))

    @abstractmethod
    def variance(self, n: int, count: int = 0, *, pairs: int = 0) -> float:
        """The variance of the estimated count of a category that ``count`` of ``n`` people are in."""

    @property
    def spread(self) -> float:
        """The standard error of a rare category's estimated share of the people, times the root of their number."""
        return math.sqrt(self.variance(1))


class Frequency(Categorical):
    r"""A design whose reports *support* categories: one's own with probability p, each other one with probability q.

    Error:
        With :math:`S_v` of n reports supporting category v, :math:`(S_v - nq)/(p-q)` estimates without bias how many
        people, :math:`n_v`, are in it, with variance :math:`(n_v\,p(1-p) + (n-n_v)\,q(1-q))/(p-q)^2`.
    Reference:
        Wang, Blocki, Li, Jha (2017), Locally differentially private protocols for frequency estimation, Section 3.
    """

    __slots__ = ()

    @property
    @abstractmethod
    def p(self) -> Fraction:
        """The exact probability that a report supports its own category."""

    @property
    @abstractmethod
    def q(self) -> Fraction:
        """The exact probability that a report supports any other category."""

    @property
    @abstractmethod
    def overlap(self) -> Overlap:
        """Whether a report favours a set of categories by one factor, and how far two categories' sets overlap.

        Shuffling is accounted for by it, so every design says: "alike" for all pairs; "varied", as with public hash
        functions, where it depends on the pair; "none" where reports favour no set.
        """

    @property
    def collisions(self) -> Fraction:
        r"""What two people of one other category add to the variance by colliding with this category together.

        Where hash functions are drawn for each report, as in all oracles but sketches, they add nothing.
        """
        return Fraction(0)

    @property
    def together(self) -> tuple[Fraction, Fraction]:
        """How likely a report supports its own category and a given other, and how likely two given others.

        As if these were independent, unless a design knows better.
        """
        return self.p * self.q, self.q**2

    def variance(self, n: int, count: int = 0, *, pairs: int = 0) -> float:
        r"""The variance of the estimated count of a category that ``count`` of ``n`` people are in.

        Sketches also need to know how people bunch in the other categories: ``pairs`` is
        :math:`\sum_{w \ne v} n_w(n_w-1)`.
        """
        reports, held = whole("n", n), whole("count", count)
        p, q = self.p, self.q
        spread = (held * p * (1 - p) + (reports - held) * q * (1 - q)) / (p - q) ** 2
        return float(spread + self.collisions * whole("pairs", pairs))


class Favouring(Frequency):
    """A design whose reports are cells of two weights: those that its own category favours, and the others."""

    __slots__ = ()

    @property
    @abstractmethod
    def levels(self) -> Levels:
        """The two weights, and how many cells have each."""

    @property
    def ratio(self) -> Fraction:
        """One weight over the other."""
        return self.levels.ratio

    @property
    def p(self) -> Fraction:
        """The probability of a favoured cell."""
        return self.levels.chance


@lru_cache(maxsize=128)
def _digest(design: Design) -> bytes:
    text = json.dumps(design.to_wire(), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).digest()[:8]

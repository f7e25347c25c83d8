"""An oracle: both sides of one design in one object, for simulations, tests and small collections."""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal, final

from defocus.errors import InvalidParameterError, Number
from defocus.local.clients import Client
from defocus.local.counting import Countable, counted
from defocus.local.designs import Categorical, design, from_json, to_json
from defocus.local.domains import Categories
from defocus.local.estimates import Estimate, estimate
from defocus.local.processing import Process, process
from defocus.local.reports import Reports
from defocus.local.servers import Server
from defocus.noise import Bits
from defocus.privacy import events

__all__ = ["Oracle", "oracle"]


@final
@dataclass(frozen=True, slots=True)
class Oracle:
    """A frequency oracle. What it holds is public; it makes the client, the server and the estimate.

    >>> colours = oracle("k-rr", ["red", "green", "blue"], epsilon=2)
    >>> reports = colours.encode(["red", "blue", "red"])
    >>> colours.estimate(reports).categories
    ['red', 'green', 'blue', 'other']
    """

    design: Categorical

    @property
    def name(self) -> str:
        """What it is called."""
        return self.design.name

    @property
    def domain(self) -> Categories:
        """The categories."""
        return self.design.domain

    @property
    def epsilon(self) -> Number:
        """What one report costs, as declared; the exact law costs no more."""
        return self.design.epsilon

    @property
    def ratio(self) -> Fraction:
        """E to the epsilon of the exact law: the largest ratio of probabilities, at most e**epsilon."""
        return self.design.ratio

    @property
    def event(self) -> events.Event:
        """What one report costs its person, for a ledger whose unit is the person."""
        return self.design.event

    @property
    def report_bytes(self) -> int:
        """The length of one payload; a message has 10 bytes more, a batch 18 for all of its reports."""
        return self.design.layout.length

    def variance(self, n: int, count: int = 0, *, pairs: int = 0) -> float:
        """The variance of the estimated count of a category that ``count`` of ``n`` people are in."""
        return self.design.variance(n, count, pairs=pairs)

    def client(self) -> Client:
        """The device's side."""
        return Client(self.design)

    def server(self, *, replays: int = 0) -> Server:
        """The collector's side."""
        return Server(self.design, replays=replays)

    def encode(self, values: Any, bits: Bits | None = None) -> Reports:
        """One report for each value, each of another person."""
        return self.client().encode(values, bits)

    def estimate(
        self,
        reports: Countable,
        *,
        processing: Process | None = None,
    ) -> Estimate:
        """Unbiased counts from reports, messages, or what a server counted; biased ones by a named ``processing``.

        From no reports at all, counts are 0 and their errors are not known.
        """
        found = estimate(counted(self.design, reports))
        return found if processing is None else process(found, processing)

    def to_json(self) -> str:
        """The public description."""
        return to_json(self.design)

    @staticmethod
    def from_json(text: str | bytes) -> "Oracle":
        """Read a description."""
        found = from_json(text)
        if not isinstance(found, Categorical):
            raise InvalidParameterError(f"{found.name} is about numbers.", fix="read it with Mean.from_json.")
        return Oracle(found)


def oracle(
    name: str, domain: Any, epsilon: Number, *, outside: Literal["refuse", "other"] = "other", **options: Any
) -> Oracle:
    """A frequency oracle by name, over ``domain`` (a number of categories, or their labels).

    >>> oracle("hadamard", 1000, 1)
    Oracle(design=Hadamard(domain=Categories(size=1001, labels=None, outside='other'), epsilon=1))
    """
    return Oracle(design(name, domain, epsilon, outside=outside, **options))

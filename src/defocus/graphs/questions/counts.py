"""Single counts: edges, stars, triangles."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, final

from defocus.errors import InvalidParameterError, count
from defocus.graphs.distributed.graph import HUBS
from defocus.graphs.noise import guessed, instance_noises, noises, numbers, offered
from defocus.graphs.public import Public
from defocus.graphs.question import Method
from defocus.graphs.questions.node_counts import node_cap, node_edges, node_triangles
from defocus.graphs.statistics import ClosedEdges, Edges, Stars, Triangles
from defocus.privacy.budgets import Budget

__all__ = ["AskClosedEdges", "AskEdges", "AskStars", "AskTriangles"]

_SHARED = "the largest number of neighbours that two nodes share"


@final
@dataclass(frozen=True, slots=True)
class AskEdges:
    """How many edges there are. Under node privacy at most ``cap`` count at a node; without it a cap is found."""

    cap: int | None = None
    words: ClassVar[str] = "number of edges"
    in_sql: ClassVar[bool] = True

    def __post_init__(self) -> None:
        _checked_cap(self.cap)

    def check(self, public: Public) -> None:
        """Refuse graphs of which it cannot be asked."""
        if public.unit.kind != "node":
            Edges().sensitivity(public)

    def methods(self, public: Public, budget: Budget) -> Sequence[Method]:
        """Noise for one edge, or for one node."""
        if public.unit.kind == "node":
            return node_edges(public, budget, self.cap)
        return noises(Edges(), public, budget, numbers("edges"))


@final
@dataclass(frozen=True, slots=True)
class AskTriangles:
    """How many triangles there are. ``typical`` is a public guess of the most neighbours that two nodes share.

    Under node privacy at most ``cap`` of them count at a node; without it a cap is found.
    """

    typical: int | None = None
    cap: int | None = None
    words: ClassVar[str] = "number of triangles"
    in_sql: ClassVar[bool] = True

    def __post_init__(self) -> None:
        _checked_cap(self.cap)

    def check(self, public: Public) -> None:
        """Refuse graphs of which it cannot be asked."""
        if public.unit.kind == "node":
            node_cap(public, self.cap)
            return
        _undirected(public, "triangles")
        Triangles().sensitivity(public)

    def methods(self, public: Public, budget: Budget) -> Sequence[Method]:
        """Noise for n - 2, or for the largest number of common neighbours."""
        if public.unit.kind == "node":
            return node_triangles(public, budget, self.cap)
        _undirected(public, "triangles")
        typical = guessed(self.typical, public)
        follows = f"{_SHARED}, or the degree that {HUBS} nodes reach if that is larger" if public.engine else _SHARED
        return offered(
            lambda: noises(Triangles(), public, budget, numbers("triangles")),
            lambda: instance_noises(
                "triangles",
                public,
                budget,
                follows=follows,
                typical=typical,
                level=Triangles().local,
                cap=public.n - 2,
            ),
        )


@final
@dataclass(frozen=True, slots=True)
class AskClosedEdges:
    """How many edges are in a triangle."""

    words: ClassVar[str] = "number of edges in a triangle"

    def check(self, public: Public) -> None:
        """Refuse graphs of which it cannot be asked."""
        _undirected(public, "triangles")
        ClosedEdges().sensitivity(public)

    def methods(self, public: Public, budget: Budget) -> Sequence[Method]:
        """Noise for the worst graph, or for the largest number of common neighbours."""
        self.check(public)
        return offered(
            lambda: noises(ClosedEdges(), public, budget, numbers("gwesp")),
            lambda: instance_noises(
                "gwesp",
                public,
                budget,
                follows=f"one more than {_SHARED}",
                typical=guessed(None, public) + 1,
                level=ClosedEdges().level,
                cap=2 * (public.n - 2) + 1,
                factor=2,
                local=False,
            ),
        )


@final
@dataclass(frozen=True, slots=True)
class AskStars:
    """How many k-stars there are. ``typical`` is a public guess of the two largest degrees together."""

    k: int = 2
    typical: int | None = None
    in_sql: ClassVar[bool] = True

    def __post_init__(self) -> None:
        Stars(self.k)

    @property
    def words(self) -> str:
        """What is asked."""
        return f"number of {self.k}-stars"

    def check(self, public: Public) -> None:
        """Refuse graphs of which it cannot be asked."""
        _undirected(public, "stars")
        Stars(self.k).sensitivity(public)

    def methods(self, public: Public, budget: Budget) -> Sequence[Method]:
        """Noise for the worst graph, or for the two largest degrees."""
        _undirected(public, "stars")
        stars = Stars(self.k)
        stars.sensitivity(public)
        title, power = f"stars_{self.k}", self.k - 1
        typical = guessed(self.typical, public) if self.typical is not None else 2 * guessed(None, public)

        def level(graph: Any) -> Sequence[int]:
            return int(stars.exact(graph)[0]), stars.level(graph)

        follows = "the sum of the two largest degrees" if self.k == 2 else "the size of the two largest degrees"
        return offered(
            lambda: noises(stars, public, budget, numbers(title)),
            lambda: instance_noises(
                title,
                public,
                budget,
                follows=follows,
                typical=typical,
                level=level,
                cap=2 * math.comb(public.n - 2, power),
                power=power,
                factor=Fraction(1, math.factorial(power)),
                local=self.k == 2,
            ),
        )


def _checked_cap(cap: int | None) -> None:
    if cap is not None:
        count("cap", cap)


def _undirected(public: Public, what: str) -> None:
    if public.directed:
        raise InvalidParameterError(
            f"There are no {what} of directed graphs here.", fix="open the graph without directed=True."
        )

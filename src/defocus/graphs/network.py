"""A private graph and its questions: free to preview, charged once when released."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

from defocus.answers import Preview, PreviewColumn, Released
from defocus.answers.tables import line
from defocus.errors import InvalidParameterError, Number, UnknownQuestionError
from defocus.graphs.data import RULES, Data
from defocus.graphs.distributed.open import supported
from defocus.graphs.kernels.rows import ready
from defocus.graphs.public import Public, Statistic
from defocus.graphs.question import (
    Checking,
    Method,
    Question,
    answered,
    chosen,
    depends,
    foretold,
    from_record,
    to_record,
)
from defocus.graphs.questions import (
    AskClustering,
    AskCommunities,
    AskDegrees,
    AskEdges,
    AskErgm,
    AskGroups,
    AskHistogram,
    AskInteractions,
    AskJoint,
    AskLabellings,
    AskPageRank,
    AskPartition,
    AskStars,
    AskSubgraphs,
    AskTop,
    AskTriangles,
    AskWeights,
)
from defocus.graphs.statistics import Edges, Joint, Stars, Triangles
from defocus.graphs.statistics.joint import NAMES, named
from defocus.ledger import Ledger, PlannedNoise, Receipt, Remaining
from defocus.noise import Bits
from defocus.noise.bits import source as bits_of
from defocus.release.charge import spendable
from defocus.release.paid_computation import perform
from defocus.release.preview import previewed

__all__ = ["GraphQuery", "Network"]


@final
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class GraphQuery:
    """What is asked, of which graph. Made by the methods of a network; everything in it but the data is public.

    Guarantee:
        :meth:`preview` and :meth:`plan` look at no edge. :meth:`release` charges the ledger first, as one event, then
        computes, then adds noise. Whatever fails afterwards keeps the charge and says nothing about an edge.

    >>> from defocus import examples
    >>> g = examples.ring()
    >>> [method.name for method in g.edges().methods(epsilon=1)]
    ['laplace']
    >>> g.close()
    """

    question: Question
    public: Public
    data: Data
    ledger: Ledger
    rules: tuple[str, ...] = RULES

    def methods(self, *, epsilon: Number | None = None, delta: Number | None = None) -> tuple[Method, ...]:
        """Every way to answer, with its noise; public and free."""
        if self.public.engine:
            supported(self.question)
        return tuple(self.question.methods(self.public, spendable(epsilon, delta)))

    def plan(self, *, epsilon: Number | None = None, delta: Number | None = None, method: str | None = None) -> Method:
        """The ``method`` of this name with its noise; the one with the least error by default."""
        return chosen(self.question, self.methods(epsilon=epsilon, delta=delta), method)

    def preview(
        self, *, epsilon: Number | None = None, delta: Number | None = None, method: str | None = None
    ) -> Preview:
        """How far off each method would be and what it would cost. Free: no edge is looked at."""
        methods = self.methods(epsilon=epsilon, delta=delta)
        used = chosen(self.question, methods, method)
        ranked = sorted(methods, key=lambda each: each.error)
        ways = [PreviewColumn(each.name, each.how, each.error, each.interval, depends=depends(each)) for each in ranked]
        return previewed(
            [way for way, each in zip(ways, ranked, strict=True) if each is used],
            used.event,
            question=self.question.words,
            asked=spendable(epsilon, delta),
            replan=lambda other: self.plan(epsilon=epsilon, delta=other, method=method).event,
            ledger=self.ledger,
            rules=(*self.rules, *used.rules),
            methods=tuple(ways),
            method=used.name,
            foretold=foretold(used),
            absolute=True,
            thing="entry",
        )

    def release(
        self,
        *,
        epsilon: Number | None = None,
        delta: Number | None = None,
        method: str | None = None,
        purpose: str | None = None,
        who: str | None = None,
        request: str | None = None,
        bits: Bits | None = None,
    ) -> Released:
        """Charge, compute, add noise, and show.

        Args:
            epsilon: what the release may cost.
            delta: likewise; without it only methods that need none are used.
            method: one of :meth:`methods` by its name, such as "ladder"; the one with the least error by default.
            purpose: why, in one line; the question itself by default.
            who: by whom; the account's name by default.
            request: a name for this request. If an answer to it was recorded, that answer is returned again, free.
            bits: the source of random bits; the system's by default.
        """
        self.data.check() if self.public.engine else ready()
        asked = spendable(epsilon, delta, self.ledger)
        used = self.plan(epsilon=epsilon, delta=delta, method=method)
        why = self.ledger.purpose_of(purpose, self.question.words)
        drawn_from = bits_of(bits)
        rules = (*self.rules, *used.rules)

        def compute(receipt: Receipt) -> Released:
            with self.data.steady() as data:
                result = used.run(data, drawn_from)
            plan = (PlannedNoise(used.name, used.event),)
            return answered(result, self.question.words, receipt, rules, method=used.name, asked=asked, plan=plan)

        return perform(
            used.event,
            compute,
            ledger=self.ledger,
            purpose=why,
            description=self.question.words[:400],
            written=to_record,
            read=from_record,
            facts=repr((self.question, self.public, used.name, rules)),
            who=who,
            request=request,
            asked=asked,
            replan=lambda other: self.plan(epsilon=epsilon, delta=other, method=method).event,
        )

    def __repr__(self) -> str:
        return f"GraphQuery({self.question.words})"


@final
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Network:
    """A private graph with its ledger. Made by :func:`~defocus.graphs.open.open_graph`.

    Every question is free to preview: ``g.triangles().preview(epsilon=0.5)``. Releasing it charges the ledger first.

    >>> from defocus import examples
    >>> g = examples.ring()
    >>> round(g.edges().preview(epsilon=1).error, 2), g.triangles().preview(epsilon=1).fits
    (0.85, True)
    >>> g.close()
    """

    data: Data
    public: Public
    ledger: Ledger
    name: str
    rules: tuple[str, ...]

    def ask(self, question: Question) -> GraphQuery:
        """Any question: one of those below, or your own."""
        asked: object = question
        if not isinstance(asked, Question):
            raise InvalidParameterError(
                f"A graph is asked a question, but this is {type(asked).__name__}.",
                fix="use the methods of the graph, such as triangles(); or give it words and methods(public, budget).",
            )
        if self.public.engine:
            supported(question)
        if isinstance(question, Checking):
            question.check(self.public)
        return GraphQuery(question, self.public, self.data, self.ledger, self.rules)

    def edges(self, *, cap: int | None = None) -> GraphQuery:
        """How many edges there are. Under node privacy at most ``cap`` count at a node; without it a cap is found."""
        return self.ask(AskEdges(cap))

    def degrees(self, *, side: str | None = None) -> GraphQuery:
        """How many neighbours each node has; of directed graphs, the "out" or "in" ``side``."""
        return self.ask(AskDegrees(side=side))

    def degree_sequence(self, *, side: str | None = None) -> GraphQuery:
        """All degrees in order of size, without saying whose they are: far less noisy than degree by degree."""
        return self.ask(AskDegrees(ranked=True, side=side))

    def degree_histogram(self, *, at_most: int | None = None, side: str | None = None) -> GraphQuery:
        """How many nodes have each degree; degrees of ``at_most`` and more are counted together."""
        return self.ask(AskHistogram(at_most, side=side))

    def triangles(self, *, typical: int | None = None, cap: int | None = None) -> GraphQuery:
        """How many triples of nodes are joined to each other.

        ``typical`` is a public guess of the largest number of neighbours that two nodes share. It chooses between
        methods and foretells their error; the noise itself follows the graph. Under node privacy, at most ``cap``
        triangles count at a node; without it a cap is found.
        """
        return self.ask(AskTriangles(typical, cap))

    def stars(self, k: int = 2, *, typical: int | None = None) -> GraphQuery:
        """How many ways there are to choose a node and ``k`` of its neighbours."""
        return self.ask(AskStars(k, typical))

    def joint(self, *statistics: Any, weights: Sequence[Number] | None = None) -> GraphQuery:
        """Several statistics in one release: names such as "edges" and "triangles", or statistics themselves.

        With nothing named, the statistics of an exponential random graph model: edges, 2-stars and triangles. The
        shares of epsilon are in proportion to ``weights``, one for each; without them the total error is made small.
        """
        parts: Sequence[Any] = [_statistic(statistic) for statistic in statistics] or [Edges(), Stars(2), Triangles()]
        return self.ask(AskJoint(Joint(parts), None if weights is None else tuple(weights)))

    def top_degrees(self, k: int = 20) -> GraphQuery:
        """The ``k`` nodes that have the most neighbours."""
        return self.ask(AskTop(k))

    def clustering(self) -> GraphQuery:
        """How often two neighbours of a node are joined to each other."""
        return self.ask(AskClustering())

    def subgraph_counts(self, *shapes: str) -> GraphQuery:
        """How many of several small graphs there are: "edges", "triangles", "stars_2", "stars_3", …."""
        return self.ask(AskSubgraphs(shapes) if shapes else AskSubgraphs())

    def pagerank(self, *, damping: Number = 0.85, top: int | None = None) -> GraphQuery:
        """The PageRank of every node, or of the ``top`` nodes; a smaller ``damping`` needs far less noise."""
        return self.ask(AskPageRank(damping, top))

    def communities(
        self, *, at_most: int = 10, labellings: Sequence[Any] | None = None, eta: Number | None = None
    ) -> GraphQuery:
        """How many communities stand out, up to ``at_most``; or which of several public ``labellings`` fits best.

        Labellings are compared by the likelihood of a block model whose probabilities are between ``eta`` and
        1 - ``eta``, 0.001 by default. One edge moves it by ln((1 - eta)/eta): a larger eta needs less noise, and fits
        blocks with fewer edges than that less well.
        """
        if labellings is not None:
            return self.ask(AskLabellings(tuple(labellings), *(() if eta is None else (eta,))))
        if eta is not None:
            raise InvalidParameterError(
                "eta bounds the probabilities of a block model, which labellings have.",
                fix="pass labellings=[…] too, or leave eta out.",
            )
        return self.ask(AskCommunities(at_most))

    def group_edges(self, *, groups: Any, queries: Mapping[str, Sequence[Any]] | None = None) -> GraphQuery:
        """How many edges there are inside and between public ``groups``, one label for each node in their order.

        ``queries`` asks for sums of these, each a list of pairs of groups by its name, and measures what is best for
        all of them together: ``{"cut": [("a", "b"), ("a", "c")], "inside a": [("a", "a")]}``.
        """
        return self.ask(AskGroups(groups, queries or {}))

    def partition(self, *, k: int, typical: int | None = None) -> GraphQuery:
        """Which of ``k`` communities each node is in. A preview says which communities can be found at this price.

        ``typical`` is a public guess of how many more neighbours a node has in its own community than in any other.
        """
        return self.ask(AskPartition(k, typical))

    def ergm(self, *terms: str) -> GraphQuery:
        """An exponential random graph model with "edges" and any of "gwesp", "stars_2" and "triangles", and its fit.

        By default "edges" and "gwesp", edges in a triangle: models with 2-stars and triangles are degenerate where a
        graph is clustered, and then have no coefficients.
        """
        return self.ask(AskErgm(terms) if terms else AskErgm())

    def weights(self, kind: str = "total") -> GraphQuery:
        """Sums of weights where one weight is protected: "total", "strength" of every node, or "each" by itself."""
        return self.ask(AskWeights(kind))

    def interactions(self, *, every: Any, start: Any = None, end: Any = None, running: bool = False) -> GraphQuery:
        """How many interactions there were in each step of time; ``running``, how many since the start.

        ``start`` and ``end`` are public, and must be given: dates, or whole numbers where times are such.
        """
        return self.ask(AskInteractions(every, start, end, running))

    def __getattr__(self, name: str) -> Any:
        """Refuse what is not there, and say what can be asked."""
        asks = sorted(
            key
            for key, made in vars(Network).items()
            if getattr(made, "__annotations__", {}).get("return") in {GraphQuery, "GraphQuery"} and key != "ask"
        )
        raise UnknownQuestionError(name, asks)

    def remaining(self) -> Remaining:
        """What is left of the budget."""
        return self.ledger.remaining()

    def close(self) -> None:
        """Give up the connections of the ledger, which itself stays, and the engine, if there is one."""
        self.data.close()
        self.ledger.close()

    def __enter__(self) -> "Network":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __str__(self) -> str:
        nodes = "a private number of nodes" if self.public.nodes is None else f"{self.public.nodes} public nodes"
        way = "directed" if self.public.directed else "undirected"
        return f"{line(self.name)}: {nodes}, {way}\nprotects {self.public.unit}; left: {self.remaining()}"

    def __repr__(self) -> str:
        return f"<graph {self.name!r:.80}>"


def _statistic(wanted: Any) -> Any:
    """A statistic, or the one that a name stands for."""
    statistic = wanted if isinstance(wanted, Statistic) else named(wanted)
    if statistic is None:
        raise InvalidParameterError(
            f"There is no statistic {wanted!r:.60} to release jointly.",
            fix=f"choose among {', '.join(NAMES)}, or pass a statistic.",
        )
    return statistic

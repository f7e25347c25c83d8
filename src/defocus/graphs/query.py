"""A question about a graph: free to preview, charged once when it is released."""

from dataclasses import dataclass
from typing import final

from defocus.answers import Preview, PreviewColumn, Released
from defocus.errors import Number
from defocus.graphs.answers import answered, from_record, to_record
from defocus.graphs.data import RULES, Data
from defocus.graphs.distributed.open import supported
from defocus.graphs.kernels.compiler import ready
from defocus.graphs.public import Public
from defocus.graphs.question import Method, Question, chosen, foretold
from defocus.ledger import Ledger, Receipt
from defocus.noise import Bits
from defocus.noise.bits import source as bits_of
from defocus.release.charge import spendable
from defocus.release.paid_computation import perform
from defocus.release.preview import previewed
from defocus.release.purposes import allowed

__all__ = ["GraphQuery"]


@final
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class GraphQuery:
    """What is asked, of which graph. Made by the methods of a network; everything in it but the data is public.

    Guarantee:
        :meth:`preview` and :meth:`plan` look at no edge. :meth:`release` charges the ledger first, as one event, then
        computes, then adds noise. Whatever fails afterwards keeps the charge and says nothing about an edge.

    >>> import tempfile
    >>> import defocus as dp
    >>> home = tempfile.TemporaryDirectory()
    >>> ring = [(i, (i + 1) % 100) for i in range(100)]
    >>> g = dp.open_graph(ring, unit=dp.edge(), budget=dp.Budget(2), nodes=range(100), ledger=f"{home.name}/g")
    >>> [method.name for method in g.edges().methods(epsilon=1)]
    ['laplace']
    >>> g.close(); home.cleanup()
    """

    question: Question
    public: Public
    data: Data
    ledger: Ledger
    rules: tuple[str, ...] = RULES
    purposes: tuple[str, ...] | None = None

    def methods(self, *, epsilon: Number, delta: Number | None = None) -> tuple[Method, ...]:
        """Every way to answer, with its noise; public and free."""
        if self.public.engine:
            supported(self.question)
        return tuple(self.question.methods(self.public, spendable(epsilon, delta)))

    def plan(self, *, epsilon: Number, delta: Number | None = None, method: str | None = None) -> Method:
        """The ``method`` of this name with its noise; the one with the least error by default."""
        return chosen(self.question, self.methods(epsilon=epsilon, delta=delta), method)

    def preview(self, *, epsilon: Number, delta: Number | None = None, method: str | None = None) -> Preview:
        """How far off each method would be and what it would cost. Free: no edge is looked at."""
        methods = self.methods(epsilon=epsilon, delta=delta)
        used = chosen(self.question, methods, method)
        ranked = sorted(methods, key=lambda each: each.error)
        ways = [PreviewColumn(each.name, each.how, each.error, each.interval) for each in ranked]
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
        epsilon: Number,
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
            purpose: why, in one line; the question itself unless told.
            who: by whom; the account's name unless told.
            request: a name for this request. If an answer to it was recorded, that answer is returned again, free.
            bits: the source of random bits; the system's unless told.
        """
        self.data.check() if self.public.engine else ready()
        asked = spendable(epsilon, delta, self.ledger)
        used = self.plan(epsilon=epsilon, delta=delta, method=method)
        why = allowed(purpose, self.purposes, self.question.words)
        drawn_from = bits_of(bits)
        rules = (*self.rules, *used.rules)

        def compute(receipt: Receipt) -> Released:
            with self.data.steady() as data:
                result = used.run(data, drawn_from)
            return answered(result, self.question.words, receipt, rules, method=used.name, asked=asked)

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

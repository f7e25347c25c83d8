"""Looking before spending: which methods could answer a question, how far off each would be, and what it would cost."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, final

from defocus.answers import tables
from defocus.answers.columns import brief
from defocus.answers.explanation import told
from defocus.graphs.answers import NOISE_ONLY, beyond, biased, covered
from defocus.graphs.question import Method, foretold
from defocus.ledger import Ledger, Remaining
from defocus.privacy.budgets import Budget
from defocus.release.charge import Replan
from defocus.release.guarantee import Promise
from defocus.release.preview import Prospect, json_number

__all__ = ["GraphPreview"]


@final
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class GraphPreview:
    """What an answer would be like. Depends on public facts and guesses only; nothing was charged.

    ``methods`` are all that could be used, least error first; ``method`` is the one that would be. ``prospect`` says
    what it would cost, whether the budget covers it now, and what is left.

    >>> import tempfile
    >>> import defocus as dp
    >>> home = tempfile.TemporaryDirectory()
    >>> ring = [(i, (i + 1) % 100) for i in range(100)]
    >>> g = dp.open_graph(ring, unit=dp.edge(), budget=dp.Budget(2), nodes=range(100), ledger=f"{home.name}/g")
    >>> seen = g.edges().preview(epsilon=1)
    >>> seen.method.name, seen.interval
    ('laplace', 3.0)
    >>> g.close(); home.cleanup()
    """

    question: str
    method: Method
    methods: tuple[Method, ...]
    prospect: Prospect
    rules: tuple[str, ...]
    foretold: tuple[str, ...] = ()
    """On what the foretold error rests, or what it depends on."""

    @classmethod
    def of(
        cls,
        question: str,
        method: Method,
        methods: Sequence[Method],
        *,
        asked: Budget,
        replan: Replan,
        ledger: Ledger,
        rules: Sequence[str],
    ) -> "GraphPreview":
        """The preview of a release by ``method`` charged to ``ledger``, which is asked and not changed."""
        prospect = Prospect.of(method.event, asked=asked, replan=replan, ledger=ledger)
        ranked = tuple(sorted(methods, key=lambda each: each.error))
        return cls(question, method, ranked, prospect, tuple(rules), foretold(method))

    @property
    def promise(self) -> Promise | None:
        """What the answer alone would promise; None if no accountant can say."""
        return self.prospect.promise

    @property
    def fits(self) -> bool:
        """Whether the budget covers it now."""
        return self.prospect.fits

    @property
    def remaining(self) -> Remaining:
        """What is left now."""
        return self.prospect.remaining

    @property
    def after(self) -> Remaining | None:
        """What would be left, None if it does not fit."""
        return self.prospect.after

    @property
    def error(self) -> float:
        """The absolute error to expect of an entry."""
        return self.method.error

    @property
    def interval(self) -> float:
        """The half-width to expect at 95 %; NaN where it cannot be foretold."""
        return self.method.interval

    def to_dict(self) -> dict[str, Any]:
        """The preview with JSON types only."""
        return {
            "question": self.question,
            "method": self.method.name,
            "methods": [
                {
                    "name": each.name,
                    "error": json_number(each.error),
                    "interval": json_number(each.interval),
                    "how": each.how,
                }
                for each in self.methods
            ],
            "confidence": 0.95,
            "intervals": covered(self.rules),
            "rules": list(self.rules),
            "foretold": list(self.foretold),
            **self.prospect.to_dict(),
        }

    def explain(self, *, html: bool = False) -> str:
        """The preview in plain words."""
        others = [f"{each.name}: {each.how}" for each in self.methods if each is not self.method]
        said = self.prospect.facts(
            rules=(*self.rules, *self.foretold), noise=[self.method.how, *biased(self.rules)], instead=others
        )
        return told({"question": [self.question], **said}, html=html)

    def __str__(self) -> str:
        return tables.text_page(self._cells(), self._notes(), title=f"expected: {self.question}")

    def __repr__(self) -> str:
        return f"<preview: {self.question}>"

    def _repr_html_(self) -> str:
        return tables.html_page(self._cells(), self._notes(), title=f"expected: {self.question}")

    def _cells(self) -> tables.Cells:
        rows = [
            [
                "→" if each is self.method else "",
                each.name,
                brief(each.error),
                f"± {brief(each.interval)}" if math.isfinite(each.interval) else "–",
            ]
            for each in self.methods
        ]
        noise = NOISE_ONLY if beyond(self.rules) else "95 % of the noise"
        return ["", "method", "expected error", noise], rows, [False, False, True, True]

    def _notes(self) -> list[str]:
        return [*self.foretold, *biased(self.rules), *self.prospect.notes()]

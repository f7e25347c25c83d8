"""A question about a table: free to preview, charged once when it is released."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, final

from defocus.answers import Effect, Preview, Released, Rule
from defocus.answers.columns import checked_names
from defocus.answers.progress import shown
from defocus.answers.rules import rules_of
from defocus.errors import InvalidParameterError, Number, in_range
from defocus.ledger import Ledger, Receipt
from defocus.mechanisms import PartitionSelection
from defocus.noise import Bits
from defocus.noise.bits import source as bits_of
from defocus.release.charge import spendable
from defocus.release.paid_computation import perform
from defocus.release.preview import previewed
from defocus.tables import bulk
from defocus.tables.answers import answered, from_record, to_record
from defocus.tables.bias import Bias
from defocus.tables.contribution import DEFAULT_ROWS, Bound
from defocus.tables.display import groups_words, question_page
from defocus.tables.execution import Run, rehearse, statements
from defocus.tables.grouping_sets import ALL, GroupingSets, Layout
from defocus.tables.keys import Keys, StoredKeys, in_memory
from defocus.tables.noise import Together
from defocus.tables.parts import part_rules
from defocus.tables.planner import MeasurementPlan, Plan, keys_need_delta, plan
from defocus.tables.reading import Reading
from defocus.tables.rows import Rows
from defocus.tables.weights import RowSampler

__all__ = ["Query", "printable"]

_SHOWN = 12


@final
@dataclass(frozen=True, slots=True, eq=False)
class Query:
    """What is asked, of which rows, in which groups. Made by ``agg``; everything in it is public.

    Guarantee:
        :meth:`preview` and :meth:`plan` look at no row. :meth:`release` charges the ledger first, as one event, then
        computes, then adds noise. Whatever fails afterwards keeps the charge and says nothing about a row.

    >>> import defocus as dp
    >>> from defocus import examples
    >>> visits = examples.visits()
    >>> question = visits.bound(rows=1).agg(people=dp.count())
    >>> question.release(epsilon=0.5).names
    ['people']
    >>> visits.close()
    """

    rows: Rows
    ledger: Ledger
    bound: Bound | None
    by: tuple[str, ...]
    keys: Keys | StoredKeys | None
    arrangement: MeasurementPlan
    weights: Mapping[str, Number]
    reading: Reading | None = None
    """What the answer is read from the released numbers by, where it is not these numbers."""
    among: Keys | None = None
    """Where keys are found, those columns of them that were named: groups are all these, for each that is found."""
    bias: Bias | None = None
    """What is declared about rows beyond the bound and about clipping, which intervals then hold."""
    sets: GroupingSets | None = None
    """Several sets of groups, where not only those of all keys are asked for."""
    layout: Layout | None = None
    """Their groups, where the keys are known."""
    text: str | None = None
    """The question as somebody wrote it, for the record, where that is another text than :attr:`question`."""
    together: Together | None = None
    """How it is answered with other owners of rows; alone by default."""

    def __post_init__(self) -> None:
        if not self.arrangement.aggregates:
            raise InvalidParameterError("Nothing is asked.", fix="write for example agg(visits=dp.count()).")
        checked_names(list(self.by if self.sets is None else self.sets.names), self.arrangement.titles)
        if self.sets is not None:
            self._check_sets()
        named = () if self.among is None else self.among.table.column_names
        if self.keys is None and self.rows.unit is not None and self.rows.unit in {*self.by} - {*named}:
            raise InvalidParameterError(
                f"Each group would be one {self.rows.unit}, and groups are shown only if many people are in them: none"
                " could be. Nothing was charged.",
                fix="group by what people share; or make a feature of a person first, such as"
                ' per_person(visits="COUNT(*)"), and group by that.',
            )

    def _check_sets(self) -> None:
        for name, aggregate in self.arrangement.apart:
            raise InvalidParameterError(
                f"{name!r:.60} is the {aggregate.words}, which does not add up over groups: a total is not the sum of"
                " its parts.",
                fix="ask for counts of rows, sums and means in several sets of groups, and the rest one set at a time.",
            )

    def share(self, **weights: Number) -> "Query":
        """The same question with more of the budget for some columns: ``share(visits=2)`` counts visits twice."""
        names = [name for name, _ in self.arrangement.aggregates]
        for name, weight in weights.items():
            if name not in names:
                raise InvalidParameterError(
                    f"There is no column {name!r:.60} to give a larger share to.",
                    fix=f"choose among {', '.join(names)}.",
                )
            in_range(f"the share of {name}", weight, 1e-6, 10**6)
        return replace(self, weights={**self.weights, **weights})

    def covering(self, *, beyond: Number | None = None, clipped: Mapping[str, Number] | None = None) -> "Query":
        """The same question with intervals that also hold what bounding and clipping take away, as far as you declare.

        Args:
            beyond: the largest share of the rows of any group that lies beyond the bound on one person.
            clipped: by column, how far clipping moves an average at most.
        """
        if self.reading is not None:
            raise InvalidParameterError("Tests and curves have intervals of their own.", fix="leave covering(…) out.")
        return replace(self, bias=Bias.declared(beyond, clipped, dict(self.arrangement.aggregates)))

    def plan(self, *, epsilon: Number | None = None, delta: Number | None = None) -> Plan:
        """Which measurements would be made, with which noise, and what the engine would be asked for. Free.

        The statements are made of public facts alone; how the engine goes about them is known to its owner.
        """
        planned = self._planned(epsilon, delta)
        return replace(
            planned, statements=statements(planned, self.rows, self.by, self.bound, self.keys, among=self.among)
        )

    def _planned(self, epsilon: Number | None, delta: Number | None) -> Plan:
        if self.keys is None and not delta:
            raise keys_need_delta(self.ledger.remaining().delta)
        planned = plan(
            self.arrangement,
            self.bound,
            spendable(epsilon, delta),
            unit=self.ledger.unit,
            keys=None if self.keys is None else self.keys.number,
            weights=self.weights,
            everything=not self.by and self.rows.number_is_declared,
            levels=None if self.sets is None else self.sets.planned(self.layout),
            sites=1 if self.together is None else self.together.overlap,
        )
        if self.together is None:
            return planned
        if self.reading is not None or (self.sets is not None and self.sets.exact):
            raise InvalidParameterError(
                "Several owners answer together with counts, sums, means and variances.",
                fix="leave tests, curves and exact totals out, and compute them of what is released.",
            )
        return planned.shared(self.together)

    def preview(self, *, epsilon: Number | None = None, delta: Number | None = None) -> Preview:
        """How exact each column would be and what it would cost. Free: no row is looked at."""
        planned = self._planned(epsilon, delta)
        columns = {
            name: aggregate.foreseen(name, planned.others[name], planned.grid_of(aggregate))
            for name, aggregate in self.arrangement.apart
        }
        for name, statistic in self.arrangement.statistics:
            place = self.arrangement.source[name]
            split, noise = self.arrangement.splits[place], planned.splits[place]
            finest = None if self.layout is None else self._variances(planned, place)[-1]
            columns[name] = [statistic.foreseen(name, split, noise, planned.grid, finest)]
        ordered = self.arrangement.in_order(columns)
        foretold = (*self._until_found(planned), *self._by_set(planned))
        if self.reading is not None:
            ordered, foretold = self.reading.foreseen(ordered, planned)
        return previewed(
            ordered,
            planned.event,
            question=self.question,
            asked=spendable(epsilon, delta),
            replan=lambda other: self._planned(epsilon, other).event,
            ledger=self.ledger,
            rules=self._rules(planned),
            foretold=foretold,
        )

    def _variances(self, planned: Plan, split: int) -> list[float]:
        """The mean variance of a cell in each set of groups, in squared rows."""
        assert self.layout is not None  # noqa: S101  # asked where keys are known
        return [float(each.mean()) for each in self.layout.variances(planned.levels[split], planned.grid)]

    def _until_found(self, planned: Plan) -> tuple[str, ...]:
        """For which bound errors are foretold, where it is yet to be found, and how they grow with it."""
        if planned.contributions is None:
            return ()
        most = DEFAULT_ROWS if self.bound is None else self.bound.total
        grow = f"10 times as large with {10 * most}, and 100 times with {100 * most}"
        return (f"errors are foretold for {most} rows of one {self.rows.unit}; how many count is found: {grow}",)

    def _by_set(self, planned: Plan) -> tuple[str, ...]:
        """How exact counts are in each set of groups."""
        if self.sets is None:
            return ()
        if self.layout is None:
            return ("errors are those of the finest groups alone; all sets of groups are estimated together",)
        cells, variances = self.arrangement.splits[0].cells, self._variances(planned, 0)
        said = [
            f"{', '.join(self.sets.names[i] for i in one) or ALL} {math.sqrt(cells * variance):.3g}"
            for one, variance in zip(self.sets.sets, variances, strict=True)
        ]
        by_set = f"standard errors of the number of rows by set of groups: {'; '.join(said[:_SHOWN])}"
        return (by_set, *self.sets.processing())

    def release(
        self,
        *,
        epsilon: Number | None = None,
        delta: Number | None = None,
        purpose: str | None = None,
        who: str | None = None,
        request: str | None = None,
        bits: Bits | None = None,
        progress: Callable[[float], None] | None = None,
    ) -> Released:
        """Charge, compute, add noise, and show.

        Args:
            epsilon: what the release may cost.
            delta: likewise; without it only mechanisms that need none are used.
            purpose: why, in one line; the question itself by default.
            who: by whom; the account's name by default.
            request: a name for this request. If an answer to it was recorded, that answer is returned again, free.
            bits: the source of random bits; the system's by default.
            progress: called now and then with the percentage that the engine has done; without it, a terminal or
                notebook shows a bar for what takes more than two seconds.
        """
        asked, planned = spendable(epsilon, delta, self.ledger), self._planned(epsilon, delta)
        why = self.ledger.purpose_of(purpose, self.question)
        drawn_from = bits_of(bits)
        words = self._rules(planned, found=True)
        known = in_memory(self.keys)
        rehearse(self.rows, self.by, self.arrangement.texts)

        def compute(receipt: Receipt) -> Released:
            run = Run(
                planned,
                self.rows,
                self.by,
                self.bound,
                drawn_from,
                RowSampler.drawn(drawn_from) if self.together is None else RowSampler(f"{self.together.key:032x}"),
                tell,
                self.bias,
                among=self.among,
                sets=self.sets,
                layout=self.layout,
            )
            keys, columns, bounds = run.answer(known)
            rules, sets = (*words, *bounds), self.sets
            more: dict[str, Any] = {} if sets is None else {"ordered": True, "processing": sets.processing()}
            more |= {"asked": asked, "plan": planned.noise}
            answer = answered(keys.table, columns, self.question, receipt, rules, **more)
            return answer if self.reading is None else self.reading.read(answer, planned)

        with shown(progress) as tell:
            return perform(
                planned.event,
                compute,
                ledger=self.ledger,
                purpose=why,
                description=printable(f"{self._unprotected}{self.text or self.question}")[:400],
                written=to_record,
                read=from_record,
                facts=self._facts(words),
                who=who,
                request=request,
                asked=asked,
                replan=lambda other: self._planned(epsilon, other).event,
                bar=False,
            )

    def release_to(
        self,
        folder: str | Path,
        *,
        epsilon: Number | None = None,
        delta: Number | None = None,
        purpose: str | None = None,
        who: str | None = None,
        request: str | None = None,
        bits: Bits | None = None,
        progress: Callable[[float], None] | None = None,
    ) -> bulk.Written:
        """Charge, compute, add noise where the groups are, and write Parquet files: for more groups than memory holds.

        On Spark the executors draw the noise and write; DuckDB hands on its result block by block. The cost, the law
        of the noise and the guarantee are those of :meth:`release`. See :mod:`defocus.tables.bulk`.

        Args:
            folder: a folder that is made, on this machine or on a file system that all executors reach under this
                path. It is called ``….incomplete`` until all files are there.
            epsilon: what the release may cost.
            delta: likewise.
            purpose: why, in one line; the question itself by default.
            who: by whom; the account's name by default.
            request: a name for this request. If it was answered before, where the files are is returned again, free.
            bits: the source of random bits, of which the secret of the noise is drawn; the system's by default.
            progress: called now and then with the percentage that the engine has done.
        """
        asked, planned = spendable(epsilon, delta, self.ledger), self._planned(epsilon, delta)
        if self.reading is not None or self.sets is not None:
            raise InvalidParameterError(
                "What is read from all groups together is not written to files.", fix="ask it with release(…)."
            )
        if self.among is not None:
            raise InvalidParameterError(
                "Keys are found for all columns or for none in answers in files.", fix="give keys=None, or all keys."
            )
        bulk.answerable(planned, self.by, self.keys, self.bound)
        why = self.ledger.purpose_of(purpose, self.question)
        drawn_from, destination = bits_of(bits), bulk.Destination.of(folder)
        words = self._rules(planned, found=True)

        def check() -> None:
            rehearse(self.rows, self.by, self.arrangement.texts)
            destination.check()
            self.rows.engine.check_store()

        def compute(receipt: Receipt) -> bulk.Written:
            run = Run(
                planned, self.rows, self.by, self.bound, drawn_from, RowSampler.drawn(drawn_from), tell, self.bias
            )
            about = {"question": self.question, "rules": list(words), "receipt": receipt.to_dict()}
            found = bulk.released_to(run, self.keys, destination, about)
            rules = rules_of((*words, *found.rules))
            return bulk.Written(destination.folder, found.groups, found.columns, self.question, receipt, rules, asked)

        with shown(progress) as tell:
            return perform(
                planned.event,
                compute,
                ledger=self.ledger,
                purpose=why,
                description=self.question[:400],
                written=bulk.to_record,
                read=bulk.from_record,
                facts=repr((self._facts(words), str(destination.folder))),
                who=who,
                request=request,
                asked=asked,
                replan=lambda other: self._planned(epsilon, other).event,
                check=check,
                bar=False,
            )

    @property
    def _unprotected(self) -> str:
        """What the record of the charge begins with, where totals are exact."""
        exact = "" if self.sets is None or not self.sets.exact else self.sets.held
        return f"exact, not protected: the totals of {exact}; " if exact else ""

    @property
    def question(self) -> str:
        """What is asked, in one line."""
        asked = ", ".join(
            name if aggregate.words == name else f"{aggregate.words} as {name}"
            for name, aggregate in self.arrangement.aggregates
        )
        groups = f", by {', '.join(self.by) if self.sets is None else self.sets.words()}" if self.by else ""
        if self.reading is not None:
            asked, groups = self.reading.words, ""
        steps = f"; {'; '.join(self.rows.words)}" if self.rows.words else ""
        return printable(f"{asked}{groups}{steps}")

    def _facts(self, words: tuple[str, ...]) -> str:
        """Everything public that the answer depends on."""
        known, keys = self.among if self.keys is None else self.keys, "found"
        if self.layout is not None:  # there may be millions of keys
            keys = self.layout.digest()
        elif known is not None:
            keys = known.facts
        read = tuple(each for each in (self.reading, self.sets) if each is not None)
        most = () if self.bound is None or self.bound.most is None else (f"at most {self.bound.most} rows",)
        return repr((self.rows.facts(), words, self.by, keys, self.bound, self.arrangement.aggregates, *read, *most))

    def __repr__(self) -> str:
        return f"Query({self.question})"

    def _repr_html_(self) -> str:
        return self.page(self.question)

    def page(self, question: str) -> str:
        """The question for a notebook, in these words: what is asked, of whom, and what is left to pay for it."""
        return question_page(question, self.rows, self.ledger, self.bound, groups_words(self.by, self.keys))

    def _rules(self, plan: Plan, *, found: bool = False) -> tuple[Rule, ...]:
        """What is bounded, clipped, dropped and found by rule; what is ``found`` by then, the release says itself."""
        rows, bound, keys, bias = self.rows, self.bound, self.keys, self.bias or Bias()
        said: list[str] = [*part_rules(rows)]
        if bound is not None:
            if self.arrangement.counts_rows and not (found and bound.find):
                effect = Effect.READ if rows.single or not bound.cuts else bias.of_rows
                said.append(Rule(_bounding(rows, bound), effect))
            if self.by and not (found and plan.memberships is not None):
                said += _grouping(rows, bound, keys, self.arrangement, plan)
            said.append(f"rows without a {rows.unit} belong to nobody and are left out")
        arguments = [argument for _, aggregate in self.arrangement.aggregates for argument in aggregate.arguments]
        clipped = {
            each.rule: Effect.READ if each.low is None else bias.of(each.text) for each in arguments if not each.find
        }
        said += [Rule(text, effect) for text, effect in clipped.items()]
        apart = (
            aggregate.rule(rows.unit) for _, aggregate in self.arrangement.apart if not (found and aggregate.finds)
        )
        said += [rule for rule in apart if rule is not None]
        searched = () if found else plan.findings  # a release says what was found
        said += [
            Rule(f"values of {text} beyond bounds that are found privately, at powers of two, are cut", bias.of(text))
            for text in searched
        ]
        if keys is None and plan.selection is not None:
            said.append(Rule(_shown(rows, plan.selection), Effect.TOLD))
        elif keys is not None and keys.rule is not None:
            said.append(keys.rule)
        if self.sets is not None:
            said += self.sets.rules()
        if self.bias is not None:
            said.append(Rule(f"intervals also hold what is declared: {bias}", Effect.TOLD))
        return rules_of(said)


def printable(text: str) -> str:
    r"""Text in one line without control characters, which constants and names may hold and ledgers refuse.

    >>> printable("ward = 'a\nb\x1b'")
    "ward = 'a b?'"
    """
    return "".join(letter if letter.isprintable() else "?" for letter in " ".join(text.split()))


def _bounding(rows: Rows, bound: Bound) -> str:
    if rows.single:
        return f"each {rows.unit} is one row, so nobody counts with more"
    if bound.by == "sampling":
        return f"one {rows.unit} counts with at most {bound}; which ones is chosen at random"
    most = str(replace(bound, groups=None)) if bound.find or bound.rows is not None else str(bound)
    said = f"one {rows.unit} counts with at most {most}"
    return said + (f"; all rows of a {rows.unit} with more count, but with less weight" if bound.total > 1 else "")


def _grouping(
    rows: Rows, bound: Bound, keys: Keys | StoredKeys | None, arrangement: MeasurementPlan, plan: Plan
) -> list[Rule]:
    """In how many groups one person is counted as a person, where that is not in all of them."""
    most = bound.people_in
    asked = any(aggregate.counts == "people" for _, aggregate in arrangement.apart)
    if not asked or bound.by == "sampling" or (keys is not None and keys.number <= most):
        return []
    groups = f"at most {most} group{'' if most == 1 else 's'}"
    if plan.memberships is not None:
        groups = f"a number of groups that is found privately; errors are those of {most} until then"
    return [Rule(f"where people are counted, one {rows.unit} counts in {groups}", Effect.BOUND)]


def _shown(rows: Rows, selection: PartitionSelection) -> str:
    """From how many people on a group is shown, and how many groups so many people can show."""
    half, nearly, of = selection.threshold(), selection.threshold(0.99), selection.groups
    said = (
        f"groups are found privately: one with {half} people is shown half of the time, one with {nearly} nearly always"
    )
    if rows.unit is not None and not rows.single:
        chosen = "one of its groups" if of == 1 else f"{of} of its groups"
        said += f", where each {rows.unit} stands for {chosen}, chosen at random"
    about = max(1, 1000 * of // half)
    return f"{said}; groups of fewer are left out, and of 1 000 people there are at most about {about} to show"

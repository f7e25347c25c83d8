"""A fitted generator of synthetic rows: what was released, and rows drawn from it, as many as are wanted."""

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from html import escape
from pathlib import Path
from typing import Any, final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from defocus.answers import explanation, export
from defocus.answers.columns import brief
from defocus.answers.page import document
from defocus.engines.schema import ARROW, Column, Schema
from defocus.engines.sources import source
from defocus.engines.syntax import column
from defocus.errors import InvalidParameterError, count, whole
from defocus.ledger import Receipt
from defocus.noise import Bits
from defocus.noise.bits import source as bits_of
from defocus.privacy.budgets import Budget
from defocus.privacy.html import html_table
from defocus.synthesis.domains import Domain
from defocus.synthesis.field import quota
from defocus.synthesis.inference import ENDS, Analysis, analysed, with_cells, with_facts
from defocus.synthesis.measurement import Fitted, pairs_of
from defocus.synthesis.noise_aware import Combined, combine, redrawn
from defocus.synthesis.prediction import Prediction
from defocus.synthesis.saving import check_fit, packed, saved, unpacked
from defocus.synthesis.targets import Noisy
from defocus.tables.rows import Rows

__all__ = ["HOLDS", "Generator", "codes_within", "conditioned", "seeded"]

_FORMAT = "defocus synthetic data 1"
_TRIES = 20
_MOVED, _SHUFFLES = 5, 3
"""So many tables are analysed with values moved within their cells, and with columns made independent."""
HOLDS = "defocus condition"
"""The column that says whether all conditions hold."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class Generator:
    """Synthetic rows, and how good they are. Made by :func:`synthesise`; everything about it is released.

    Guarantee:
        Depends on the data through noisy counts only, which were charged; drawing rows, however many, costs nothing.

    >>> import defocus as dp
    >>> from defocus import examples
    >>> home = examples.folder()
    >>> table = examples.people()
    >>> made = dp.synthesise(table, epsilon=2, delta=1e-6, columns={"age": (0, 99)})
    >>> made.sample(5).schema.names
    ['age', 'smoker']
    >>> made.sample(100, where="smoker").num_rows
    100
    >>> made.save(f"{home}/people.json")
    >>> dp.synthesis.Generator.load(f"{home}/people.json").sample(3).num_rows
    3
    >>> table.close()
    """

    domains: tuple[Domain, ...]
    order: tuple[str, ...]
    """The columns of the synthetic table, in its order."""
    fitted: Fitted = field(repr=False)
    question: str
    rules: tuple[str, ...] = ()
    constraints: tuple[str, ...] = ()
    computed: Mapping[str, str] = field(default_factory=dict)
    receipt: Receipt | None = field(default=None, repr=False)
    asked: Budget | None = None
    together: int = 1
    """How many rows may be of one person."""

    def __repr__(self) -> str:
        return f"Generator({len(self.fitted.records)} records of {', '.join(self.order):.200})"

    def sample(self, n: int | None = None, *, where: str | None = None, bits: Bits | None = None) -> pa.Table:
        """Synthetic rows in the types of the table: as many as there are records, or ``n``.

        Args:
            n: how many rows.
            where: only rows for which a condition holds, drawn from the law of the records given that condition.
            bits: where randomness comes from; the operating system by default.
        """
        return self._sampled(n, where, seeded(bits))

    def _sampled(
        self, n: int | None, where: str | None, random: np.random.Generator, place: float | None = None
    ) -> pa.Table:
        """Synthetic rows; with a ``place`` from 0 to 1, all values are there in their cells, and not spread evenly.

        NaN stands for the place of the roundest value of each cell.
        """
        records = self.fitted.records
        number = len(records) if n is None else whole("n", n, at_least=0)
        with conditioned(self._schema, self.computed, self.constraints, where) as (schema, checked):
            kinds = pa.schema([(name, ARROW[schema[name].kind]) for name in self.order])
            if where is None and not self.constraints:
                made = checked(self._decoded(_dealt(len(records), number, random), random, place))
                return made.select(kinds.names).cast(kinds)
            kept: list[pa.Table] = []
            there = 0
            for _ in range(_TRIES):
                places = _dealt(len(records), max(number, len(records)), random)
                rows = checked(self._decoded(places, random, place))
                kept.append(rows.filter(rows[HOLDS]).select(kinds.names))
                there += kept[-1].num_rows
                if there >= number:
                    break
        if not there:
            raise InvalidParameterError(
                "No synthetic record meets this condition.",
                fix="ask for a more frequent one: what is rare in the data is hidden by the noise.",
            )
        chosen = np.arange(number) if there >= number else _dealt(there, number, random)
        return pa.concat_tables(kept).take(pa.array(random.permutation(chosen))).cast(kinds)

    def draws(self, number: int = 20, *, bits: Bits | None = None) -> Iterator[pa.Table]:
        """Several noise-aware tables, for :func:`combine`: each as if the release had drawn other noise and people.

        See :mod:`defocus.synthesis.noise_aware`. Up to four times as many rows as there are records in each.
        """
        chance = bits_of(bits)
        for fitted in redrawn(self.fitted, count("number", number), seeded(chance), together=self.together):
            yield replace(self, fitted=fitted).sample(bits=chance)

    def infer(
        self, analysis: Callable[[pa.Table], tuple[Any, Any]], *, number: int = 20, bits: Bits | None = None
    ) -> Combined:
        """What an analysis finds, with errors that know about the noise, about drawing rows, and about cells.

        Within a cell of several values nothing is known. What moving values within their cells may change adds to the
        error; it is infinite where an analysis asks for single values, or where all tables agree exactly for no reason
        that was declared (:mod:`defocus.synthesis.inference`). Declare a list of values, or a step, to know more.

        Args:
            analysis: a function of a synthetic table to ``(estimates, variances)``, as if the table were real.
            number: how many tables are drawn and analysed.
            bits: where randomness comes from.
        """
        chance, found = bits_of(bits), []
        ends: list[tuple[Any, ...]] = []
        for fitted in redrawn(self.fitted, count("number", number), seeded(chance), together=self.together):
            one, seed = replace(self, fitted=fitted), chance.integer(128)

            def at(place: float | None, one: Generator = one, seed: int = seed) -> tuple[Any, Any]:
                return analysed(analysis, one._sampled(None, None, np.random.default_rng(seed), place))

            found.append(at(None))
            if len(ends) < _MOVED and any(domain.wide for domain in self.domains):
                ends.append(tuple(at(place)[0] for place in ENDS))
        made = combine([own[0] for own in found], [own[1] for own in found])
        if ends:
            made = with_cells(made, [own[0] for own in found[: len(ends)]], ends)
        return self._with_facts(made, analysis, chance) if np.isinf(made.error).any() else made

    def _with_facts(self, made: Combined, analysis: Analysis, chance: Bits) -> Combined:
        """What was found, without error where it follows from constraints: seen in columns that are independent."""
        if not self.constraints:
            return made
        random, errors = seeded(chance), []
        for _ in range(_SHUFFLES):
            shuffled = np.stack([random.permutation(own) for own in self.fitted.records.T], 1)
            loose = replace(self, fitted=replace(self.fitted, records=shuffled))
            try:
                both = [one.sample(bits=chance) for one in (loose, replace(loose, constraints=()))]
            except InvalidParameterError:  # nobody meets the constraints there
                return made
            held, free = (analysed(analysis, table) for table in both)
            errors.append(with_facts(made, held, free[0]).error)
        return replace(made, error=np.max(errors, axis=0))

    @property
    def quality(self) -> pa.Table:
        """How far records are from the data in pairs or in what must be good: total variation distance, with its noise.

        Measured with budget that was held back, after the records were fitted.
        """
        names = [domain.name for domain in self.domains]
        sets, distances = self.fitted.checked, self.fitted.distances
        return pa.table(
            {
                "columns": [", ".join(names[i] for i in own) for own in sets],
                "measured": [len(own) == 1 or own in self.fitted.tables for own in sets],
                "distance": np.clip(distances.counts, 0, 1),
                "error": np.full(len(sets), distances.sigma),
            }
        )

    @property
    def distance(self) -> float:
        """The mean total variation distance over the pairs, or the sets that must be good, as measured."""
        return float(np.clip(self.fitted.distances.counts.mean(), 0, 1))

    @property
    def distance_error(self) -> float:
        """The standard error of :attr:`distance` by noise."""
        return float(self.fitted.distances.sigma / np.sqrt(len(self.fitted.distances.counts)))

    @property
    def prediction(self) -> Prediction | None:
        """How well a model trained on these rows predicts a column of private ones, where ``predict=`` asked for it."""
        return self.fitted.prediction

    def explain(self, *, html: bool = False) -> str:
        """What was measured, how good the rows are, what is protected, and what it cost."""
        measured = len(self.fitted.tables)
        pairs = len(pairs_of(len(self.domains)))
        said: dict[str, Sequence[str]] = {
            "made": [
                f"{len(self.fitted.records)} records; about {self.fitted.total:.0f} rows were counted",
                f"all columns and {measured} of {pairs} pairs of columns were measured"
                if measured
                else "no pair of columns could be told from noise: columns are independent of each other",
            ],
            "quality": [
                f"mean total variation distance of pairs: {brief(self.distance)} ± {brief(self.distance_error)}",
                "by bins, measured with budget that was held back",
                *self._coarse(),
                *self._predicted(),
            ],
            "held": [*self.constraints, *(f"{name} is {text}" for name, text in self.computed.items())],
            "rules": self.rules,
        }
        if self.receipt is not None:
            said |= explanation.topics(self.receipt, self.asked)
        return explanation.told(said, html=html)

    def _coarse(self) -> Iterator[str]:
        """Columns most of whose records are in one bin, inside of which the distance sees nothing."""
        for domain, bins, margin in zip(self.domains, self.fitted.bins, self.fitted.margins, strict=True):
            counts = np.maximum(margin.counts, 0)
            cells = np.bincount(bins, minlength=len(counts))
            largest = int(counts.argmax())
            share = counts[largest] / max(counts.sum(), 1e-9)
            if cells[largest] > 1 and share > 0.5:
                yield f"{domain.name} has {len(cells)} bins, and about {share:.0%} of records in one of them"

    def _predicted(self) -> Iterator[str]:
        found = self.prediction
        if found is not None:
            sure = (
                f"{brief(found.auc)} ± {brief(found.error)}" if math.isfinite(found.error) else "unknown: too few rows"
            )
            yield (
                f"{found.column} as predicted by a logistic model of synthetic rows: area under the curve {sure} on"
                f" private rows, {brief(found.synthetic)} on synthetic ones"
            )

    def report(self, path: str | Path, *, title: str = "Synthetic data") -> Path:
        """Write one HTML file: quality by pairs and columns, what was measured, and what it cost."""
        quality = self.quality.sort_by([("distance", "descending")]).to_pylist()
        pairs = [[row["columns"], "yes" if row["measured"] else "no", f"{row['distance']:.4f}"] for row in quality]
        columns = [
            [domain.name, str(domain.kind), str(domain.size), str(int(bins.max()) + 1), f"{apart:.4f}"]
            for domain, bins, apart in zip(self.domains, self.fitted.bins, self._divergences(), strict=True)
        ]
        error = f"total variation distance, standard error {self.fitted.distances.sigma:.2g} each"
        heads = ["column", "kind", "codes", "bins", "Jensen–Shannon divergence"]
        body = (
            f"<h2>What this is</h2>{self.explain(html=True)}"
            "<h2>Columns</h2><p>Divergence between noisy counts, which were paid for, and synthetic records.</p>"
            f"{html_table(heads, columns, right=[False, False, True, True, True], caption='columns')}"
            f"<h2>Pairs of columns</h2><p>{escape(error)}; mean {self.distance:.4f}.</p>"
            + html_table(["columns", "measured", "distance"], pairs, right=[False, False, True], caption="pairs")
        )
        export.write_bytes(path, document(title, body).encode("utf-8", "replace"))
        return Path(path)

    def save(self, path: str | Path) -> None:
        """Write everything but the receipt to one JSON file, which holds no code."""
        export.write_bytes(path, json.dumps(self.to_json()).encode())

    @classmethod
    def load(cls, path: str | Path) -> "Generator":
        """What :meth:`save` wrote."""
        return saved(path, _FORMAT, cls.from_json, "is not a saved generator of this version")

    def to_json(self) -> dict[str, Any]:
        """Everything but the receipt, with JSON types only."""
        fitted = self.fitted
        return {
            "format": _FORMAT,
            "question": self.question,
            "order": list(self.order),
            "rules": list(self.rules),
            "constraints": list(self.constraints),
            "computed": dict(self.computed),
            "domains": [domain.to_json() for domain in self.domains],
            "records": packed(fitted.records.astype(np.int32)),
            "bins": [packed(own.astype(np.int32)) for own in fitted.bins],
            "within": [packed(own) for own in fitted.within],
            "margins": [[packed(own.counts), own.sigma] for own in fitted.margins],
            "tables": [[list(columns), packed(own.counts), own.sigma] for columns, own in fitted.tables.items()],
            "total": fitted.total,
            "together": self.together,
            "distances": [packed(fitted.distances.counts), fitted.distances.sigma],
            "checked": [list(own) for own in fitted.checked],
            **({} if fitted.prediction is None else {"prediction": fitted.prediction.to_json()}),
        }

    @classmethod
    def from_json(cls, written: Mapping[str, Any], receipt: Receipt | None = None) -> "Generator":
        """The generator that :meth:`to_json` wrote."""

        def noisy(counts: Mapping[str, Any], sigma: float) -> Noisy:
            return Noisy(unpacked(counts), float(sigma))

        records = unpacked(written["records"], np.int32)
        domains = tuple(map(Domain.from_json, written["domains"]))
        bins = tuple(unpacked(own, np.int32).astype(np.int64) for own in written["bins"])
        fitted = Fitted(
            records,
            bins,
            tuple(unpacked(own) for own in written["within"]),
            tuple(noisy(*own) for own in written["margins"]),
            {tuple(map(int, columns)): noisy(*own) for columns, *own in written["tables"]},
            float(written["total"]),
            noisy(*written["distances"]),
            tuple(tuple(map(int, own)) for own in written["checked"]),
            Prediction.from_json(written.get("prediction")),
        )
        order, rules, constraints = (tuple(map(str, written[name])) for name in ("order", "rules", "constraints"))
        computed = {str(name): str(text) for name, text in written["computed"].items()}
        check_fit(domains, fitted)
        if not {*order} <= {*computed, *(domain.name for domain in domains)} or len({*order}) < len(order):
            raise ValueError("columns are not known")
        return cls(
            domains=domains,
            fitted=fitted,
            question=str(written["question"]),
            computed=computed,
            receipt=receipt,
            order=order,
            rules=rules,
            constraints=constraints,
            together=whole("together", written.get("together", 1), at_least=1),
        )

    @property
    def _schema(self) -> Schema:
        return Schema(Column(domain.name, domain.kind) for domain in self.domains)

    def _decoded(self, places: NDArray[np.int64], random: np.random.Generator, place: float | None = None) -> pa.Table:
        """Values for the records at these places: bins become codes by noisy shares, and codes values."""
        columns = {}
        for i, domain in enumerate(self.domains):
            fitted = self.fitted
            codes = codes_within(fitted.bins[i], fitted.within[i], fitted.records[places, i], random)
            shares = random.random(len(codes))
            if place is not None:
                shares = np.full(len(codes), place)
                if domain.edges and np.isnan(place):
                    shares = domain.roundest()[codes]
            columns[domain.name] = domain.decode(codes, shares)
        return pa.table(columns)

    def _divergences(self) -> Iterator[float]:
        """For each column the Jensen–Shannon divergence between its noisy counts and its records, in bits."""
        for i, margin in enumerate(self.fitted.margins):
            p = np.maximum(margin.counts, 0)
            q = np.bincount(self.fitted.records[:, i], minlength=len(p)).astype(float)
            p, q = p / max(p.sum(), 1e-9), q / max(q.sum(), 1e-9)
            middle = (p + q) / 2
            yield float(sum(_relative_entropy(own, middle) for own in (p, q)) / 2)


def codes_within(
    bins: NDArray[np.int64], within: NDArray[np.float64], own: NDArray[Any], random: np.random.Generator
) -> NDArray[np.int64]:
    """A code for each bin of a column, by how many records have each code of the bin."""
    codes = np.zeros(len(own), np.int64)
    order = np.argsort(own, kind="stable")
    ends = np.searchsorted(own[order], np.arange(int(bins.max()) + 2))
    for one in range(int(bins.max()) + 1):
        chosen, inside = order[ends[one] : ends[one + 1]], np.flatnonzero(bins == one)
        if len(chosen):
            codes[chosen] = inside[random.permutation(quota(within[inside] + 1e-9, len(chosen), random))]
    return codes


def seeded(bits: Bits | None) -> np.random.Generator:
    """A generator for post-processing, from bits that are uniform."""
    return np.random.default_rng(bits_of(bits).integer(128))


_Checked = Callable[[pa.Table], pa.Table]


@contextmanager
def conditioned(
    schema: Schema, computed: Mapping[str, str], constraints: Sequence[str], where: str | None = None
) -> Iterator[tuple[Schema, _Checked]]:
    """The schema with computed columns, and what adds them to rows, with whether all conditions hold.

    Conditions are functions of one row, read as those of a table. A constraint that is NULL holds; ``where`` does not.
    """
    empty = source(pa.schema([(one.name, ARROW[one.kind]) for one in schema]).empty_table())
    try:
        plain = Rows(empty.engine, empty.relation, schema, None)
        rows = plain.derive(computed) if computed else plain
        for condition in (*constraints, *([] if where is None else [where])):
            rows.where(condition)  # refused here, where it is no condition
        told = rows.schema
    finally:
        empty.engine.close()
    parts = [f"COALESCE(({text}), TRUE)" for text in constraints] + ([] if where is None else [f"({where})"])

    def checked(table: pa.Table) -> pa.Table:
        if not computed and not parts:
            return table
        read = source(table)
        try:
            own = Rows(read.engine, read.relation, schema, None)
            own = own.derive(computed) if computed else own
            own = own.derive({HOLDS: " AND ".join(parts)}) if parts else own
            return read.engine.run(own.select([column(name) for name in own.schema.names]))
        finally:
            read.engine.close()

    yield told, checked


def _dealt(records: int, number: int, random: np.random.Generator) -> NDArray[np.int64]:
    """So many places, each record as often as every other give or take one, in random order."""
    whole_rounds, rest = divmod(number, records)
    every = [random.permutation(records) for _ in range(whole_rounds)]
    return np.concatenate([np.zeros(0, np.int64), *every, random.permutation(records)[:rest]]).astype(np.int64)


def _relative_entropy(p: NDArray[np.float64], q: NDArray[np.float64]) -> float:
    there = p > 0
    return float((p[there] * np.log2(p[there] / q[there])).sum())

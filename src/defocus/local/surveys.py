"""Several attributes of each person, and collections charged to a ledger."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias, final

import numpy as np

from defocus.errors import InvalidParameterError, Number, choice, whole
from defocus.ledger import Ledger, Receipt
from defocus.local.designs import Changing, DBitFlip, Frequency, Rappor
from defocus.local.designs.numeric import Duchi
from defocus.local.designs.rappor import rappor_regression
from defocus.local.domains import Categories
from defocus.local.estimates import Estimate, group_variances, scaled_up
from defocus.local.frequent_strings import HeavyHitters
from defocus.local.levels import checked_epsilon
from defocus.local.means import Mean
from defocus.local.oracles import Oracle, best
from defocus.local.reports import Reports
from defocus.local.shuffling import MultiMessageHistogram, MultiMessageSum, Round
from defocus.noise import Bits, uniform
from defocus.noise.bits import source
from defocus.privacy import Adjacency, events
from defocus.privacy.translation import PERSONS
from defocus.release.charge import charge

__all__ = ["Asked", "Attributes", "Tables", "attributes", "collect", "collection_event"]


_LARGEST = 1 << 20
"""Cells of a joint table: more could not be told from noise, nor be shown."""


@final
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Tables:
    """Reports about sets of attributes, by set.

    >>> asked = attributes({"sex": 2, "age": 3}, epsilon=1)
    >>> len(asked.encode({"sex": [0, 1, 1], "age": [2, 0, 1]}))
    3
    """

    reports: Mapping[tuple[str, ...], Reports]

    def __len__(self) -> int:
        return sum(len(report) for report in self.reports.values())


@final
@dataclass(frozen=True, slots=True)
class Attributes:
    r"""Each person reports one of some sets of attributes, drawn at random, with all of epsilon.

    ``how="each"`` asks about single attributes, ``"pairs"`` about all pairs, whose tables also give correlations, and
    ``"joint"`` about all attributes at once. Dividing people among d questions costs a factor d in variance; dividing
    epsilon among them, as is also done, costs about :math:`d^2`, so it is never better.

    Guarantee:
        A person makes one epsilon-LDP report about one set, drawn independently of the values; so they pay epsilon.

    Error:
        A set is asked of about n/d people, so counts scaled up to n have d times the variance of the oracle, plus that
        of which people are asked, :math:`(d - 1)\,n_v(1 - n_v/n)`. Sums over cells have the variance of sums, which is
        less than the sum of variances where cells compete for reports; it is stated exactly for k-rr, subset selection
        and unary encodings, and up to some 30 % too large for pgr.
    Reference:
        Nguyên et al. (2016), Collecting and analyzing data from smart device users with local differential privacy; Ren
        et al. (2018), LoPub, for joint tables.

    >>> asked = attributes({"sex": 2, "age": 10}, epsilon=1, how="pairs")
    >>> list(asked.oracles)
    [('sex', 'age')]
    """

    domains: Mapping[str, Categories]
    epsilon: Number
    oracles: Mapping[tuple[str, ...], Oracle]

    def __post_init__(self) -> None:
        """Devices are asked by these oracles: none may cost more than was agreed on, or be about something else."""
        object.__setattr__(self, "epsilon", checked_epsilon(self.epsilon))
        for names, oracle in self.oracles.items():
            declared = len(set(names)) == len(names) and set(names) <= set(self.domains)
            plain = declared and oracle.domain.labels is None and oracle.domain.outside == "refuse"
            cells = math.prod(self.domains[name].size for name in names) if declared else 0
            if not plain or oracle.domain.size != cells or oracle.epsilon > self.epsilon:
                raise InvalidParameterError(
                    f"An oracle does not suit the attributes {', '.join(map(str, names))}: it costs more than "
                    "epsilon, or has another domain.",
                    fix="let attributes(...) choose the oracles.",
                )

    @property
    def event(self) -> events.Event:
        """What a person pays in all."""
        return events.Pure(self.epsilon)

    def encode(self, columns: Mapping[str, Any], bits: Bits | None = None) -> Tables:
        """One report for each person; ``columns`` has one value of every attribute for each of them."""
        draw = source(bits)
        codes = {name: domain.codes(self._column(columns, name)) for name, domain in self.domains.items()}
        sizes = {len(code) for code in codes.values()}
        if len(sizes) != 1:
            raise InvalidParameterError(
                "The columns of the attributes differ in length.",
                fix="give one value of every attribute for each person.",
            )
        sets = list(self.oracles)
        chosen = uniform(len(sets), sizes.pop(), draw)
        out = {}
        for i, names in enumerate(sets):
            people = np.flatnonzero(chosen == i)
            shape = [self.domains[name].size for name in names]
            cells = np.ravel_multi_index([codes[name][people] for name in names], shape)
            out[names] = self.oracles[names].encode(cells, draw)
        return Tables(out)

    def table(self, tables: Tables, names: Sequence[str]) -> Estimate:
        """The estimated counts of all people over a set of attributes, in the order of their names, flattened.

        From every set that was asked about and holds these attributes, by summing over the others, and averaged with
        weights that are inverse to the variance. Unbiased.
        """
        wanted = (names,) if isinstance(names, str) else tuple(names)
        everyone = len(tables)
        total, weight = np.zeros((2, 1)), 0.0
        for asked, reports in tables.reports.items():
            if not wanted or not set(wanted) <= set(asked) or len(set(wanted)) != len(wanted) or len(reports) < 2:
                continue
            part = self._marginal(reports, asked, wanted, everyone)
            share = 1 / float(part.variances.mean())
            total, weight = total + share * np.stack([part.counts, share * part.variances]), weight + share
        if not weight:
            raise InvalidParameterError(
                f"No set that was asked about holds {', '.join(map(str, wanted))}.",
                fix="ask about pairs or jointly, or name attributes that were asked about.",
            )
        counts, variances = total / np.array([[weight], [weight**2]])
        sets = len(self.oracles)
        told = f"one of {sets} sets of attributes of each person, epsilon {float(self.epsilon):g} for each person"
        return Estimate(counts, variances, everyone, collected=told)

    def _marginal(self, reports: Reports, asked: tuple[str, ...], wanted: Sequence[str], everyone: int) -> Estimate:
        design, estimate = self.oracles[asked].design, self.oracles[asked].estimate(reports)
        if isinstance(design, Rappor):
            rappor_regression(design)  # refused where there are more candidates than bits: sums need unbiased counts
        shape = [self.domains[name].size for name in asked]
        others = tuple(i for i, name in enumerate(asked) if name not in wanted)
        kept = [name for name in asked if name in wanted]
        order = [kept.index(name) for name in wanted]
        summed, spread = (
            each.reshape(shape).sum(axis=others).transpose(order).ravel()
            for each in (estimate.counts, estimate.variances)
        )
        if isinstance(design, Frequency) and not design.collisions:
            spread = group_variances(design, estimate.reports, summed, math.prod(shape[i] for i in others))
        counts, variances = scaled_up(summed, spread, estimate.reports, everyone)
        return replace(estimate, counts=counts, variances=variances, labels=None, others=False, nearest=None)

    def _column(self, columns: Mapping[str, Any], name: str) -> Any:
        if name not in columns:
            raise InvalidParameterError(f"The attribute {name} is missing.", fix="pass one column for each attribute.")
        return columns[name]


def attributes(
    domains: Mapping[str, Any],
    epsilon: Number,
    *,
    how: Literal["each", "pairs", "joint"] = "each",
    outside: Literal["refuse", "other"] = "other",
) -> Attributes:
    """Describe a collection of several attributes of each person; ``outside`` as in :class:`Categories`.

    >>> list(attributes({"colour": ["red", "blue"], "size": 3}, epsilon=2).domains)
    ['colour', 'size']
    """
    way = choice("way to ask", how, ("each", "pairs", "joint"))
    given: Any = domains
    if not isinstance(given, Mapping) or not given:
        raise InvalidParameterError("Attributes have names.", fix="pass a mapping from names to domains.")
    categories = {name: Categories.of(domain, outside=outside) for name, domain in domains.items()}
    names = list(categories)
    if way == "each" or len(names) == 1:
        sets: list[tuple[str, ...]] = [(name,) for name in names]
    elif way == "pairs":
        sets = [(a, b) for i, a in enumerate(names) for b in names[i + 1 :]]
    else:
        sets = [tuple(names)]
    return Attributes(
        categories, checked_epsilon(epsilon), {names: _oracle(categories, names, epsilon) for names in sets}
    )


def _oracle(domains: Mapping[str, Categories], names: tuple[str, ...], epsilon: Number) -> Oracle:
    cells = math.prod(domains[name].size for name in names)
    if cells > _LARGEST:
        raise InvalidParameterError(
            f"A table over {', '.join(names)} has {cells} cells, more than {_LARGEST}.", fix="ask about pairs or each."
        )
    return best(cells, epsilon, outside="refuse")  # of cells, which are whole numbers by now


Asked: TypeAlias = (
    Oracle | Mean | Attributes | HeavyHitters | Changing | Round | MultiMessageSum | MultiMessageHistogram
)
"""What can be collected."""


def collect(
    asked: Asked,
    *,
    ledger: Ledger,
    purpose: str,
    who: str | None = None,
    reports: int = 1,
    values: int | None = None,
    changes_are_public: bool = False,
    participation: str = "protected",
) -> Receipt:
    """Charge a collection to a ledger whose unit is the person, and return the receipt. Do this before asking anyone.

    The reports of one person compose with everything else the ledger holds, central or local: a person who reported is
    protected by the sum. Whoever trusts only their own device has the guarantee of their own reports regardless.

    That a person takes part is seen by whoever carries the message, so what is protected is *what* they say. Where
    persons of the ledger are replaced (``replace=True``), that is its promise. Where they are added or removed, say
    ``participation="public"``: whoever has no data then reports as well, as somebody whose value is missing. Every
    domain has an outcome for that, so a person who is added replaces a missing value. The charge says so.

    See :func:`collection_event` for ``reports``, ``values`` and ``changes_are_public``, which the charge says too. A
    collection takes no ``request``: each charge allows people to be asked once more, and there is no answer yet.

    >>> import tempfile, pathlib
    >>> from defocus import Budget, Ledger, local, user
    >>> phones = {"budget": Budget(3), "unit": user("phone", replace=True), "dataset": "phones"}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     ledger = Ledger.open(pathlib.Path(folder) / "l.db", **phones)
    ...     receipt = collect(local.oracle("k-rr", 5, 1), ledger=ledger, purpose="favourite colour", reports=2)
    >>> receipt.event
    Composed(parts=((RandomizedResponse(epsilon=1, categories=6), 2),))
    """
    event = collection_event(asked, reports=reports, values=values, changes_are_public=changes_are_public)
    public = choice("participation", participation, ("protected", "public")) == "public"
    if ledger.unit.per_person not in {None, 1}:
        raise InvalidParameterError(
            f"A collection is about persons, but the ledger was opened for {ledger.unit}.",
            fix='open it for the devices: ledger.data("app", unit=dp.user("device")), and say reports= a person.',
        )
    if ledger.person.kind not in PERSONS and ledger.person.adjacency is not Adjacency.REPLACE:
        raise InvalidParameterError(
            f"A collection is about persons, but the ledger protects {ledger.person}.",
            fix='open a ledger for them: unit=dp.user("phone").',
        )
    if not public and ledger.person.adjacency is not Adjacency.REPLACE:
        raise InvalidParameterError(
            "Reports show who takes part, so a person added or removed is seen; only what they say is protected.",
            fix='let everybody report, with or without data, and say participation="public"; or open the ledger with a'
            ' unit whose values are replaced, for example user("phone", replace=True).',
        )
    domains = [getattr(getattr(asked, "design", asked), "domain", None), *getattr(asked, "domains", {}).values()]
    if public and any(getattr(domain, "outside", None) == "refuse" for domain in domains):
        raise InvalidParameterError(
            "A device without a value would send nothing: its domain refuses what is none of its values.",
            fix="leave outside= out, so that a missing value has an outcome as well.",
        )
    question = f"local reports, {reports} a person"
    question += f", of {asked.epochs} epochs, {asked.changes} changes" if isinstance(asked, Changing) else ""
    question += f", at most {values} values, whose moments of change are public" if (values or 1) > 1 else ""
    question += "; that a person takes part is public" if public else ""
    return charge(event, ledger=ledger, purpose=purpose, who=who, question=question)


def collection_event(
    asked: Asked, *, reports: int = 1, values: int | None = None, changes_are_public: bool = False
) -> events.Event:
    """What ``reports`` reports of one person cost, for values replaced.

    Each report costs the oracle's event anew. Of a :class:`~defocus.local.Changing` value it is all reports of one
    device that cost one event, however the value changes. Where devices remember a value that stays (see
    :class:`~defocus.local.clients.Memory`):

    * ``values=1``: each person's value stays the same, and all their reports together cost one event. Nothing is
      promised to a person whose value changes nevertheless: *when* it changed can be read off the reports.
    * ``values`` = c > 1, with ``rappor`` only: a person's value takes at most c different values, and all reports cost
      c events, *if the moments at which it changes, and returns to an earlier one, are public*.
      ``changes_are_public`` is the owner's word for that. Without it no number of events suffices: of two series of
      values that change at different moments, one makes reports likely that the other hardly ever makes, or never.
      With ``duchi`` and ``d-bit`` it is no use, since *which* bits change tells the values themselves.

    >>> from defocus import local
    >>> asked = local.oracle("k-rr", ["red", "green", "blue"], epsilon=2)
    >>> collection_event(asked)
    RandomizedResponse(epsilon=2, categories=4)
    """
    times = whole("reports", reports, at_least=1)
    if values is None:
        return times * asked.event
    design: Any = getattr(asked, "design", None)
    if not isinstance(design, Rappor | Duchi | DBitFlip) or isinstance(asked, Round):
        raise InvalidParameterError(
            "Reports that are drawn anew each time add up, however few values there are.",
            fix="use rappor, duchi or d-bit with a Memory on each device, or leave values out.",
        )
    different = whole("values", values, at_least=1)
    if different > 1 and not (changes_are_public is True and isinstance(design, Rappor)):
        raise InvalidParameterError(
            f"{different} values of one person cost more than {different} events: reports show when a value changes.",
            fix="collect what changes with local.changing(...), which costs one event; or charge every report (leave "
            "values out), or collect what does not change (values=1); with rappor, say changes_are_public=True if the "
            "moments of change are known to everybody anyway.",
        )
    return min(times, different) * asked.event

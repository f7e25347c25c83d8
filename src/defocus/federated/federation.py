"""Questions to several owners at once: each computes on its own rows, and only noisy sums leave.

Every owner, a *site*, has a table and a ledger of its own. A question is asked at all of them in the same words. Each
charges its own ledger, runs the plan on its own engine, and adds its share of the noise; a secure sum adds up what they
computed. What follows from released numbers, such as the bound on a person's rows that is found first, follows at
all sites alike, so that they go through the same steps.

Guarantee:
    Before noise, sums over the sites are those of the union of their tables, integer by integer. What is released is
    as private as the same question to one table, also towards each site and towards the coordinator with all colluding
    sites, if the others are honest: they know what is released and their own shares of its noise, which are not counted
    on. Each ledger is charged with the whole event, whether or not the release is finished.
Assumes:
    Each person is known at no more sites than ``overlap`` says, one by default; with more, each bounds what a person
    brings there, and the sum moves by that many times as much. Each ledger counts what its own site took part in: a
    person of several loses at most what these say together. A site computes on rows of its own what it is asked, and
    keeps its part of the protocol.
"""

import secrets
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, final

from defocus.answers import Effect, Preview, Released, Rule
from defocus.answers.rules import rules_of
from defocus.errors import DefocusError, InvalidParameterError, LedgerError, Number, TooFewPartiesError, count, whole
from defocus.federated.identity import Identity
from defocus.federated.lockstep import Hub, Link
from defocus.federated.sum_plan import by_name, counted_shares, in_words, too_few
from defocus.privacy.budgets import Budget
from defocus.privacy.events import Event
from defocus.release.charge import admitted, spendable
from defocus.tables import Table
from defocus.tables.query import Query
from defocus.tables.sql.query import SqlQuery

__all__ = ["FederatedQuery", "Federation", "federation"]

_STEPS = frozenset(
    [
        *("where", "for_purpose", "part", "derive", "rename", "per_person"),
        *("join", "bound", "group_by", "agg", "sql_query"),
    ]
)
"""What makes a table or a question of a table, and releases nothing."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class Federation:
    """Tables of several owners, to be asked as one. Made by :func:`federation`.

    ``where``, ``derive``, ``join``, ``per_person``, ``bound``, ``group_by``, ``agg`` and ``sql_query`` are those of a
    table, at every site.

    >>> from defocus import examples
    >>> sites = {name: examples.people() for name in ("north", "south")}
    >>> federation(sites).where("age > 35")
    Federation of north, south
    >>> for table in sites.values(): table.close()
    """

    sites: Mapping[str, Any]
    dropouts: int = 0
    colluding: int = 0
    overlap: int = 1

    def __repr__(self) -> str:
        return f"Federation of {', '.join(self.sites)}"

    def sql(
        self,
        text: str,
        *,
        epsilon: Number | None = None,
        delta: Number | None = None,
        purpose: str | None = None,
        who: str | None = None,
        **how: Any,
    ) -> Released:
        """The answer of all sites to a SELECT; ``sql_query(text)`` is the question itself, with a preview."""
        asked: FederatedQuery = self.sql_query(text, **how)
        return asked.release(epsilon=epsilon, delta=delta, purpose=purpose, who=who)

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name not in _STEPS:
            raise AttributeError(f"A federation has no {name!r}. To fix: ask with sql(…), or with agg(…) as a table.")

        def everywhere(*given: Any, **named: Any) -> Any:
            return self._asked({each: getattr(site, name)(*given, **named) for each, site in self.sites.items()})

        return everywhere

    def _asked(self, made: Mapping[str, Any]) -> Any:
        first = next(iter(made.values()))
        if isinstance(first, Query | SqlQuery):
            return FederatedQuery(dict(made), self.dropouts, self.colluding, self.overlap)
        return replace(self, sites=dict(made))


@final
@dataclass(frozen=True, slots=True, eq=False)
class FederatedQuery:
    """A question to all sites. :meth:`preview` is free; :meth:`release` charges the ledger of every site.

    >>> import defocus as dp
    >>> from defocus import examples
    >>> sites = {name: examples.people() for name in ("north", "south")}
    >>> asked = federation(sites).agg(people=dp.count())
    >>> asked, asked.honest
    (FederatedQuery(number of rows as people; at north, south), 1)
    >>> for table in sites.values(): table.close()
    """

    sites: Mapping[str, Query | SqlQuery]
    dropouts: int = 0
    colluding: int = 0
    overlap: int = 1

    def __repr__(self) -> str:
        return f"FederatedQuery({next(iter(self.sites.values())).question}; at {', '.join(self.sites)})"

    @property
    def honest(self) -> int:
        """How many shares of the noise are counted on."""
        return counted_shares(len(self.sites), self.dropouts, self.colluding)

    def preview(self, *, epsilon: Number | None = None, delta: Number | None = None) -> Preview:
        """How exact each column would be, and what it would cost each site. Free: no row is looked at."""
        first: Preview = next(iter(self._foreseen(epsilon, delta)[0].values()))
        return replace(first, rules=rules_of((*first.rules, self._words)))

    def _foreseen(self, epsilon: Number | None, delta: Number | None) -> tuple[dict[str, Preview], dict[str, str]]:
        """What each site foresees, and why some do not: a ledger that is closed stops nobody but its site."""
        foreseen: dict[str, Preview] = {}
        refused: dict[str, DefocusError] = {}
        for name, link in self._links(secrets.token_bytes(32)).items():
            try:
                foreseen[name] = link.asked.preview(epsilon=epsilon, delta=delta)
            except LedgerError as problem:
                refused[name] = problem
        if not foreseen:
            raise next(iter(refused.values()))
        self._check_same(foreseen)
        return foreseen, {name: problem.what for name, problem in refused.items()}

    def release(
        self,
        *,
        epsilon: Number | None = None,
        delta: Number | None = None,
        purpose: str | None = None,
        who: str | None = None,
    ) -> Released:
        """Charge each site, compute at each, add shares of noise, sum in secret, and show.

        A site that refuses, or fails, takes no part; the answer says so. If more do than may drop out, there is no
        answer; what was charged stays.
        """
        foreseen, refusals = self._foreseen(epsilon, delta)
        event, asked = next(iter(foreseen.values())).event, spendable(epsilon, delta)
        links = self._links(secrets.token_bytes(32))
        answers: dict[str, Released] = {}
        refusals |= self._refusals(list(foreseen), event, asked, purpose)
        if len(refusals) > self.dropouts:
            raise self._too_few(refusals)

        def at(name: str, link: Link) -> None:
            try:
                answers[name] = link.asked.release(epsilon=epsilon, delta=delta, purpose=purpose, who=who)
            except DefocusError as problem:
                refusals[name] = by_name(link.refused or problem.what, list(self.sites))
            except Exception as problem:  # noqa: BLE001  # of a site, whatever it is, no more is told than its kind
                refusals[name] = type(problem).__name__
            finally:
                link.failed = name in refusals and link.hub.failure is None
                link.hub.leave(link.number)

        for name in refusals:
            links[name].hub.leave(links[name].number)
        willing = {name: link for name, link in links.items() if name not in refusals}
        threads = [threading.Thread(target=at, args=each, name=f"site {each[0]}") for each in willing.items()]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        hub = next(iter(links.values())).hub
        if not answers:
            raise self._too_few({name: why for name, why in refusals.items() if links[name].failed or not hub.failure})
        answer = next(answers[name] for name in self.sites if name in answers)
        rules = [*answer.rules, self._words]
        for name, why in refusals.items():
            there = links[name].number in hub.survivors
            rows = "its rows are in these numbers" if there else "its rows are not in these numbers"
            rules.append(Rule(f"{name} took no part to the end, and {rows}: {why}", Effect.TOLD))
        return replace(answer, rules=rules_of(rules))

    def _refusals(self, names: Sequence[str], event: Event, asked: Budget, purpose: str | None) -> dict[str, str]:
        """Which of these sites would refuse, and why, before any is charged."""
        found = {}
        for name in names:
            site = self.sites[name]
            query = site.query if isinstance(site, SqlQuery) else site
            try:
                query.ledger.purpose_of(purpose, query.question)
                if admitted(event, asked, query.ledger) is None:
                    found[name] = "its budget does not cover this"
            except DefocusError as problem:
                found[name] = problem.what
        return found

    def _too_few(self, refusals: Mapping[str, str]) -> TooFewPartiesError:
        return TooFewPartiesError(len(self.sites) - len(refusals), len(self.sites) - self.dropouts, refusals)

    @property
    def _words(self) -> str:
        return in_words(len(self.sites), self.dropouts, self.colluding, self.overlap)

    def _links(self, name: bytes) -> dict[str, Link]:
        identities = [Identity.generate() for _ in self.sites]
        hub = Hub(tuple(each.public for each in identities), name, self.dropouts, self.colluding)
        links = {}
        for place, (site, asked) in enumerate(self.sites.items()):
            link = Link(hub, place + 1, identities[place], self.honest, self.overlap)
            query = asked.query if isinstance(asked, SqlQuery) else asked
            together = replace(query, together=link)
            link.asked = replace(asked, query=together) if isinstance(asked, SqlQuery) else together
            links[site] = link
        return links

    def _check_same(self, foreseen: Mapping[str, Preview]) -> None:
        """Refuse sites that would not compute the same: other columns, bounds, keys or noise."""
        facts = {}
        for name, each in foreseen.items():
            site = self.sites[name]
            query = site.query if isinstance(site, SqlQuery) else site
            keys = "" if query.keys is None else query.keys.facts
            asked = repr(query.arrangement.aggregates)
            facts[name] = (each.question, each.rules, each.event, keys, asked)
        first, agreed = next(iter(facts.items()))
        for name, own in facts.items():
            if own != agreed:
                kinds = ("question", "rules", "noise", "groups", "columns")
                what = next(what for what, a, b in zip(kinds, own, agreed, strict=True) if a != b)
                raise InvalidParameterError(
                    f"The sites {first!r:.40} and {name!r:.40} would not answer alike: their {what} differ.",
                    fix="let all sites declare the same columns, bounds, keys and unit.",
                )


def federation(
    sites: Mapping[str, Any] | str | Path,
    *,
    dropouts: int = 0,
    colluding: int = 0,
    overlap: int = 1,
    key: str | Path | None = None,
    without: Sequence[str] = (),
) -> Any:
    """Several owners' tables, to be asked as one; see :mod:`defocus.federated.federation` for what is promised.

    Args:
        sites: by name, the table of each owner as ``dp.open`` returned it, with a ledger of its own; or a federation
            file, whose sites are processes of their own that run ``defocus site``. The file says the rest then.
        dropouts: how many sites may fail or refuse without voiding an answer. More noise is added for it.
        colluding: how many sites may tell the coordinator what they know. More noise is added for it.
        overlap: at how many sites one person may be known. More noise is added for it.
        key: of the coordinator, for a federation file; ``coordinator.key`` beside it by default.
        without: which sites of a federation file are not asked, such as one that voided a sum; each is one that dropped
            out, of those that may.

    >>> import defocus as dp
    >>> from defocus import examples
    >>> sites = {name: examples.people() for name in ("north", "south", "west")}
    >>> together = federation(sites)
    >>> answer = together.agg(patients=dp.count()).release(epsilon=1)
    >>> 5950 < answer.value < 6050
    True
    >>> for table in sites.values(): table.close()
    """
    if isinstance(sites, str | Path):
        from defocus.federated.remote import remote_federation  # noqa: PLC0415 # not needed for sites in one process

        return remote_federation(sites, key, without)
    if without:
        raise InvalidParameterError("Tables that are not to be asked were passed.", fix="leave them out of the sites.")
    for name, table in sites.items():
        if not isinstance(table, Table):
            raise InvalidParameterError(
                f"The site {name!r:.40} is {type(table).__name__} and not a table.", fix="open it with dp.open(…)."
            )
    if len({id(table.ledger) for table in sites.values()}) < len(sites):
        raise InvalidParameterError("Two sites have one ledger.", fix="open each site's table with its own ledger.")
    number, gone, bad = len(sites), whole("dropouts", dropouts), whole("colluding", colluding)
    if number < 2 or too_few(number, gone, bad):
        raise InvalidParameterError(
            f"Of {number} sites, {gone} may drop out and {bad} collude: the rest is too few to agree on who is left.",
            fix="let twice the drop-outs and the colluding sites be less than all others, or add sites.",
        )
    if not 1 <= count("overlap", overlap) <= number:
        raise InvalidParameterError(f"A person cannot be known at {overlap} of {number} sites.", fix="pass overlap=1.")
    return Federation(dict(sites), gone, bad, overlap)

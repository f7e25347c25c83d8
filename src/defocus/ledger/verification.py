"""Reading a whole chain and saying everything that is wrong with it."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple, final

from defocus.errors import DefocusError, LedgerBusyError, LedgerDamagedError
from defocus.ledger.anchors import Anchor
from defocus.ledger.declarations import Declaration
from defocus.ledger.entries import CHARGE, DATA, GENESIS, NO_HASH, RELEASE, TUNING, Entry, amounts_in, digest
from defocus.ledger.filter import Amounts, Guard, Tally
from defocus.ledger.parts import key_of
from defocus.ledger.receipts import Account
from defocus.ledger.store import Row, Session, Store, checked
from defocus.ledger.terms import Terms
from defocus.privacy.wire import from_wire

__all__ = ["Findings", "Verification", "examine", "linked"]

_BATCH = 500
_SHOWN = 50
_FAR = 2**62
_TRUSTED = (
    "see what else was altered with ledger.verify(), in the terminal defocus ledger verify, and restore the ledger from"
    " a trusted copy."
)
_SLACK = 1e-9
"""Two machines may round a cost differently in the last digits; more than this is an undercharge."""


class Findings:
    """What a check found. True in a condition when nothing is wrong."""

    __slots__ = ()
    problems: tuple[str, ...]

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong."""
        return not self.problems

    def __bool__(self) -> bool:
        return self.ok


@final
@dataclass(frozen=True, slots=True)
class Verification(Findings):
    """What a look at the whole chain found. True in a condition when nothing is wrong.

    ``problems`` mean that the record cannot be trusted; ``notes`` are worth knowing and harmless.

    >>> Verification("a.ledger", 3, 2, 0, None, ("entry 2 was edited",), (), anchored=True).ok
    False
    """

    where: str
    entries: int
    charges: int
    releases: int
    head: Anchor | None
    problems: tuple[str, ...]
    notes: tuple[str, ...]
    anchored: bool

    def __str__(self) -> str:
        counts = f"{self.entries} entries ({self.charges} charges, {self.releases} releases)"
        verdict = "no problem found" if self.ok else f"{len(self.problems)} problem(s) found"
        lines = [f"{self.where}: {counts}; {verdict}."]
        lines += [f"  problem: {text}" for text in self.problems] + [f"  note: {text}" for text in self.notes]
        if self.ok and not self.anchored:
            lines.append("  note: without an anchor, an older copy put back or a chain rewritten whole is not noticed")
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """The findings with JSON types only."""
        return {
            "where": self.where,
            "ok": self.ok,
            "entries": self.entries,
            "charges": self.charges,
            "releases": self.releases,
            "head": str(self.head) if self.head else None,
            "problems": list(self.problems),
            "notes": list(self.notes),
            "anchored": self.anchored,
        }

    def require(self) -> "Verification":
        """Return self, or raise what is wrong."""
        if not self.ok:
            raise LedgerDamagedError(
                str(self), fix="restore the ledger from a trusted copy, and find out who changed it."
            )
        return self


def examine(store: Store, anchors: Iterable[Anchor]) -> Verification:
    """Stream the chain, recompute hashes, links, costs and sums, and compare with the anchors.

    Guarantee:
        Finds every entry edited, deleted, inserted, duplicated or moved, and a tail cut off, as
        long as one anchor at or after it is given and SHA-256 has no collisions. Reads in
        short transactions, so that it does not keep others from charging.
    """
    trail = _Trail(tuple(anchors))
    head: Anchor | None = None
    try:
        with store.connection() as connection:
            if store.place.exists(connection):
                trail.problems += store.place.faults(connection)
            else:
                trail.problem("there is no ledger here")
    except LedgerBusyError:
        raise
    except DefocusError as error:
        trail.problem(error.what)
    try:
        for row in _rows(store, trail):
            trail.step(row)
    except LedgerBusyError:
        raise
    except DefocusError as error:
        trail.stopped(error.what)
    else:
        head = trail.finish()
    shown = trail.problems[:_SHOWN]
    if len(trail.problems) > _SHOWN:
        shown.append(f"and {len(trail.problems) - _SHOWN} more")
    return Verification(
        where=store.place.name,
        entries=trail.entries,
        charges=len(trail.charges),
        releases=len(trail.released),
        head=head,
        problems=tuple(shown),
        notes=tuple(trail.notes[:_SHOWN]),
        anchored=bool(trail.anchors),
    )


_BEGIN = {
    GENESIS: ('{"kind":"genesis",', '{"data":'),
    CHARGE: ('{"cost":', '{"approved_by":'),
    RELEASE: ('{"charge":',),
    DATA: ('{"data":',),
    TUNING: ('{"data":',),
}
"""How the canonical text of each kind begins."""


def linked(store: Store) -> None:
    """Refuse a chain in which an entry was altered, removed, added or moved, or in which a sum falls.

    Guarantee:
        Every text has the hash it is stored with and holds the hash before it, and the head is the last entry, so that
        it vouches for all. From entry to entry no sum is less, in any measure, for everybody and for each part: who
        adds an entry from outside can only spend, and gives nothing back.

    Assumes:
        Prices are believed: an entry that was added from outside for less than its event costs is found only by
        :func:`examine`, which recomputes all of them. Who may write to the database can leave out the charges of the
        future, which no ledger shows, and can rewrite it whole where no anchor is kept elsewhere.

    Error:
        Some 10 microseconds for an entry, 1 second for 100 000.
    """
    last, before, divided = -1, NO_HASH, False
    common: tuple[Amounts, ...] | None = None
    parts: dict[str, Amounts] = {}
    while True:
        with store.session() as session:
            batch, head = session.batch(last, _BATCH), session.head()
            divided |= bool(batch) and '"tally":' in str(batch[0].body)
            until = batch[-1].sequence if len(batch) == _BATCH else _FAR
            listed = set(session.listed(last, until)) if divided else set()
        for row in batch:
            links = _links(row)
            if links is None or (row.sequence, links.previous) != (last + 1, before):
                checked(row)
                raise LedgerDamagedError(
                    f"Entry {row.sequence} of {store.place.name} does not follow entry {last}: one of them was altered,"
                    " removed, added or moved. No receipt was given.",
                    fix=_TRUSTED,
                )
            known = (*(common or links.common), *(parts.get(label, sum_) for label, sum_ in links.parts.items()))
            if not _no_less((*links.common, *links.parts.values()), known):
                raise LedgerDamagedError(
                    f"Entry {row.sequence} of {store.place.name} says that less was spent than the entries before it"
                    " say: it was added from outside. No receipt was given.",
                    fix=_TRUSTED,
                )
            listed ^= {(key_of(label), row.sequence) for label in links.parts}
            parts |= links.parts
            last, before, common = row.sequence, row.hash, links.common
        for sequence in sorted(sequence for _, sequence in listed):
            raise LedgerDamagedError(f"Entry {sequence} is not found under each of its parts.", fix=_TRUSTED)
        if len(batch) < _BATCH:
            break
    if head != Anchor(last, before):
        raise LedgerDamagedError(
            f"The ledger {store.place.name} ends at entry {last}, but its head is elsewhere: it was cut off, moved back"
            " or appended to from outside. No receipt was given.",
            fix=_TRUSTED,
        )


class _Links(NamedTuple):
    """What ties an entry to those before it."""

    previous: str
    common: tuple[Amounts, ...]
    """What was spent, and the two sums behind it where the data has parts."""
    parts: dict[str, Amounts]


def _links(row: Row) -> _Links | None:
    """What a text with its hash and columns says about the entries before it; cheaper than :func:`checked`."""
    if not _sound(row):
        return None
    try:
        said = json.loads(row.body)
        tally = [said["tally"]["common"], said["tally"]["heaviest"]] if "tally" in said else []
        sums = tuple(map(amounts_in, [said["spent"], *tally]))
        parts = {label: amounts_in(sum_) for label, sum_ in said.get("parts", {}).items()}
        return _Links(said["previous"], sums, parts) if said["sequence"] == row.sequence else None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None


def _no_less(sums: tuple[Amounts, ...], known: tuple[Amounts, ...]) -> bool:
    """Whether these are sums in the same measures as those that were ``known``, and none is less."""
    return list(map(len, sums)) == list(map(len, known)) and all(
        now >= before for pair in zip(sums, known, strict=True) for now, before in zip(*pair, strict=True)
    )


def _sound(row: Row) -> bool:
    """Whether a text has its hash and its columns; cheaper than reading it."""
    charge = f"{row.charge}," if row.kind == RELEASE else ""
    return (
        isinstance(row.body, str)
        and digest(row.body) == row.hash
        and row.kind in _BEGIN
        and row.body.startswith(tuple(begin + charge for begin in _BEGIN[row.kind]))
        and (row.charge is None) == (row.kind != RELEASE)
    )


def _rows(store: Store, trail: "_Trail") -> Iterator[Row]:
    after = -_FAR
    while True:
        with store.session() as session:
            batch = session.batch(after, _BATCH)
            trail.divided |= any('"tally":' in str(row.body) for row in batch)
            if trail.divided:
                trail.listed |= set(session.listed(after, batch[-1].sequence if len(batch) == _BATCH else _FAR))
            if len(batch) < _BATCH:
                trail.ending(session)
        yield from batch
        if len(batch) < _BATCH:
            return
        after = batch[-1].sequence


@final
@dataclass(slots=True)
class _Trail:
    """What has been seen so far on the way along the chain."""

    anchors: tuple[Anchor, ...]
    problems: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    entries: int = 0
    last: int = -1
    hash: str = NO_HASH
    previous: Entry | None = None
    guard: Guard | None = None
    terms: Terms | None = None
    charges: set[int] = field(default_factory=set)
    released: set[int] = field(default_factory=set)
    unread: set[int] = field(default_factory=set)
    head: Anchor | None = None
    stored: int = 0
    divided: bool = False
    sums: dict[str, Amounts] = field(default_factory=dict)
    """What each part was charged."""
    listed: set[tuple[str, int]] = field(default_factory=set)
    """The charges of parts that the database lists and no entry has named yet."""

    def problem(self, text: str) -> None:
        self.problems.append(text)

    def stopped(self, why: str) -> None:
        """Note where reading ended; what is no ledger at all has been told already."""
        if self.entries:
            self.problem(f"reading stopped after entry {self.last}: {why}")
        elif not self.problems:
            self.problem(why)

    def ending(self, session: Session) -> None:
        self.head, self.stored = session.head(), session.count()

    def step(self, row: Row) -> None:
        self.entries += 1
        self._number(row.sequence)
        if any(anchor.sequence == row.sequence and anchor.hash != row.hash for anchor in self.anchors):
            self.problem(f"entry {row.sequence} is not the one the anchor was taken of")
        entry = None
        try:
            entry = checked(row)
            if entry.previous != self.hash:
                self.problem(
                    f"entry {row.sequence} does not follow the one before it: altered, inserted, moved or removed"
                )
            self._content(entry)
        except DefocusError as error:
            self.unread.add(row.sequence)
            self.problem(error.what if str(row.sequence) in error.what else f"entry {row.sequence}: {error.what}")
        self.previous, self.last, self.hash = entry, row.sequence, row.hash

    def _number(self, sequence: int) -> None:
        if sequence == self.last:
            self.problem(f"entry {sequence} appears twice")
        elif sequence > self.last + 1:
            self.problem(f"entries {self.last + 1} to {sequence - 1} are missing")
        elif sequence < 0:
            self.problem(f"there is an entry with the number {sequence}")

    def _content(self, entry: Entry) -> None:
        if (entry.kind == GENESIS) != (entry.sequence == 0):
            self.problem(f"entry {entry.sequence} is a {entry.kind}")
        if self.previous is not None and entry.time < self.previous.time:
            self.notes.append(f"the clock went back before entry {entry.sequence}")
        if entry.kind == GENESIS:
            terms = Terms.read(entry.content["terms"])
            if "data" in entry.content:
                Declaration.read(entry.content["data"])
            self.terms, self.guard = terms, Guard.of(terms)
            self._sum(entry, self.guard.start, None if terms.parts is None else Tally.start(self.guard))
        elif entry.kind == CHARGE:
            self.charges.add(entry.sequence)
            self._cost(entry)
        elif entry.kind == RELEASE:
            self._release(entry)
        elif self.previous is not None and entry.kind == TUNING:
            self._sum(entry, self.previous.spent, self.previous.tally)
        elif self.previous is not None:
            declared = Declaration.read(entry.content["data"])
            if self.terms is not None and not declared.fits(self.terms):
                self.problem(f"entry {entry.sequence} declares a unit that does not translate to that of the ledger")
            self._sum(entry, self.previous.spent, self.previous.tally)

    def _cost(self, entry: Entry) -> None:
        if self.guard is None:
            return
        event = from_wire(entry.content["event"])
        due, paid = self.guard.cost(event), amounts_in(entry.content["cost"])
        if len(due) != len(paid):
            self.problem(f"entry {entry.sequence} is charged in units that its filter does not count in")
            return
        if any(have < owed * (1 - _SLACK) for have, owed in zip(paid, due, strict=True)):
            self.problem(f"entry {entry.sequence} is charged less than its event costs")
        elif any(have > owed * (1 + _SLACK) for have, owed in zip(paid, due, strict=True)):
            self.notes.append(f"entry {entry.sequence} is charged more than its event costs")
        self._listed(entry)
        if self.previous is not None and len(self.previous.spent) == len(paid):
            own = {label: self.sums.get(label) for label in entry.parts}
            account = Account(self.guard, self.previous.spent, self.previous.tally, own)
            spent, tally, _ = account.charged(paid)
            self._sum(entry, spent, tally)
            if account.short(due) is not None:
                self.problem(f"entry {entry.sequence} was charged although the budget did not cover it")
            for label, sum_ in entry.parts.items():
                if sum_ != self.guard.add(own[label] or self.guard.start, paid):
                    self.problem(f"entry {entry.sequence} does not carry the sum of what its parts were charged")
        self.sums.update(entry.parts)

    def _listed(self, entry: Entry) -> None:
        """Compare the parts that an entry names with those under which the database finds it."""
        named = {(key_of(label), entry.sequence) for label in entry.parts}
        if not named <= self.listed:
            self.problem(f"entry {entry.sequence} is not found under each of its parts")
        self.listed -= named

    def _release(self, entry: Entry) -> None:
        charge = entry.content["charge"]
        if charge not in self.charges | self.unread:  # an altered charge has been told already
            self.problem(f"entry {entry.sequence} releases something that no earlier entry charged")
        if charge in self.released:
            self.problem(f"entry {entry.sequence} releases a second value for the charge {charge}")
        self.released.add(charge)
        if self.previous is not None:
            self._sum(entry, self.previous.spent, self.previous.tally)

    def _sum(self, entry: Entry, expected: Amounts, tally: Tally | None) -> None:
        if entry.spent != expected or entry.tally != tally:
            self.problem(f"entry {entry.sequence} does not carry the sum of what was spent before and its own cost")

    def finish(self) -> Anchor | None:
        """Compare the end of the chain with the head, the number of rows and the anchors."""
        end = Anchor(self.last, self.hash) if self.entries else None
        if self.head != end:
            self.problem(
                f"the ledger ends at entry {self.last}, but its head is at "
                f"{'nothing' if self.head is None else self.head.sequence}: cut off, or appended to from outside"
            )
        if self.stored != self.entries:
            self.problem(f"{self.entries} entries were read, but {self.stored} are stored: some numbers are used twice")
        if self.listed:
            self.problem(f"{len(self.listed)} charges are listed under parts that they do not name")
        for anchor in self.anchors:
            if anchor.sequence > self.last:
                self.problem(
                    f"the anchor vouches for entry {anchor.sequence}, but the ledger ends at {self.last}: "
                    "an older copy was put back, or the end was cut off"
                )
        return end

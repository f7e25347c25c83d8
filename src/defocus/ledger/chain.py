"""The end of a ledger's chain: what all decisions rest on, checked against everything known about it."""

import contextlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import final

from defocus.errors import LedgerDamagedError, LedgerUnavailableError
from defocus.ledger.anchors import Anchor, AnchorFile
from defocus.ledger.declarations import Declaration
from defocus.ledger.entries import Entry
from defocus.ledger.store import Session, Store, checked
from defocus.ledger.verification import linked
from defocus.privacy.events import Event, compose
from defocus.privacy.wire import from_wire

__all__ = ["Chain", "anchors", "heaviest_events"]


@final
class Chain:
    """The entries of one opened ledger, and the newest one that this process has seen of them."""

    __slots__ = ("_declared", "_seen", "file", "read_only", "store")

    def __init__(self, store: Store, file: AnchorFile | None, *, read_only: bool) -> None:
        self.store = store
        self.file = file
        self.read_only = read_only
        self._seen: Anchor | None = None
        self._declared: tuple[int, Mapping[str, Declaration]] = (-1, {})

    @contextlib.contextmanager
    def end(self, *, write: bool = False) -> Iterator[tuple[Session, Entry]]:
        """A transaction and the last entry in it; while one writes, nobody else can append another."""
        if write and self.read_only:
            raise LedgerUnavailableError(
                f"The ledger {self.store.place.name} was opened for reading only.",
                fix="open it without read_only=True.",
            )
        # Read first: what others append and vouch for after the transaction began is not in its view of the chain.
        known = self.known()
        with self.store.session(write=write) as session:
            yield session, self.last(session, known, lock=write)

    def declarations(self, session: Session, last: Entry) -> Mapping[str, Declaration]:
        """The newest declaration of each data set, by its name. Only entries that were not read before are read."""
        until, known = self._declared
        read = {}
        for row in session.declarations(until):
            content = checked(row).content
            if "data" in content:
                declared = Declaration.read(content["data"])
                read[declared.name] = declared
        self._declared = last.sequence, {**known, **read}
        return self._declared[1]

    def last(self, session: Session, known: Iterable[Anchor], *, lock: bool) -> Entry:
        """The last entry, whose sums all later decisions rest on."""
        head, row = session.end(lock=lock)
        if head is None or row is None or row.hash != head.hash:
            raise LedgerDamagedError(
                f"The last entry of {self.store.place.name} is missing or was altered.",
                fix="run ledger.verify() and restore the ledger from a trusted copy.",
            )
        entry = checked(row)
        for anchor in known:
            witness = row if anchor.sequence == head.sequence else session.row(anchor.sequence)
            if witness is None or witness.hash != anchor.hash:
                raise LedgerDamagedError(
                    f"The ledger {self.store.place.name} ends at entry {head.sequence} and no longer holds entry"
                    f" {anchor.sequence} as it was: an older copy was put back, or its history was rewritten.",
                    fix="put the newest copy back; nothing may be charged until the ledger holds that entry again."
                    + (f" {self.file.anew}" if self.file else ""),
                )
        self._seen = Anchor(entry.sequence, row.hash)
        return entry

    def known(self, given: Anchor | None = None) -> list[Anchor]:
        """What vouches for the chain: an anchor that was given, the newest entry seen, and the anchor file."""
        return anchors([given, self._seen], self.file)

    def follow(self, *, new: bool) -> None:
        """Check every link of the chain and its end, and start the anchor file of a ledger that has none yet."""
        linked(self.store)
        with self.end() as (_, last):
            pass
        if self.file is None or self.file.read() is not None:
            return
        # Where nothing was charged, nothing can have been lost.
        if not (new or last.sequence == 0 or self.file.first_use):
            raise LedgerDamagedError(
                f"The anchor file {self.file.path} is missing, although the ledger has {last.sequence + 1} entries.",
                fix="put it back, or move there the one that lies beside the ledger; if this ledger never had one,"
                " verify it and save one: Ledger.open(where).anchor().save(path).",
            )
        if not self.read_only:
            self.file.replace(Anchor(last.sequence, last.hash))

    def note(self, entry: Entry) -> None:
        """Remember an entry that was committed, here and in the anchor file."""
        self._seen = Anchor(entry.sequence, entry.hash)
        if self.file is not None:
            self.file.advance(self._seen)


def anchors(known: Iterable[Anchor | None], file: AnchorFile | None) -> list[Anchor]:
    """Those anchors that there are, with the one on file."""
    return [anchor for anchor in (*known, file.read() if file else None) if anchor is not None]


def heaviest_events(charges: Iterable[Entry]) -> Event:
    """The events of all charges; of those that name parts, each as often as in the part that had it most often.

    Guarantee:
        It holds every release that anybody's own share of the run holds, as often or more often, so it loses no less.
    """
    everybody: list[Event] = []
    parts: dict[str, Counter[Event]] = {}
    for entry in charges:
        event, labels = from_wire(entry.content["event"]), entry.parts
        if not labels:
            everybody.append(event)
        for label in labels:
            parts.setdefault(label, Counter())[event] += 1
    most: Counter[Event] = Counter()
    for counted in parts.values():
        most |= counted
    return compose([*everybody, *most.elements()])

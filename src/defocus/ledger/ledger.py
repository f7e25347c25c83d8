"""The ledger: the only thing in the house that changes, and it only grows."""

import contextlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, final

from rich.table import Table

from defocus.errors import InvalidParameterError, LedgerMismatchError, LedgerUnavailableError, Number
from defocus.ledger import display
from defocus.ledger.anchors import Anchor, AnchorFile, as_anchor
from defocus.ledger.bundle import Bundle, claim, unit_of
from defocus.ledger.chain import Chain, anchors, heaviest_events
from defocus.ledger.creation import anchor_file_of, check_kinds, is_there, make, place_of, terms_of
from defocus.ledger.declarations import Declaration, allowed, invariants_of, purposes_of
from defocus.ledger.display import Prices
from defocus.ledger.entries import (
    CHARGE,
    DATA,
    RELEASE,
    TUNING,
    Entry,
    amounts_out,
    fingerprint,
    now,
    plain,
    stored_event,
)
from defocus.ledger.filter import Guard, Remaining, Tally
from defocus.ledger.heads import Head, SigningKey
from defocus.ledger.merkle import consistency, inclusion, root
from defocus.ledger.parts import Parts
from defocus.ledger.receipts import Account, Receipt, Recorded, checked_labels
from defocus.ledger.store import Store, checked
from defocus.ledger.terms import Terms
from defocus.ledger.text import line, whoever
from defocus.ledger.verification import Verification, examine
from defocus.privacy.budgets import Budget
from defocus.privacy.calibration import spoken_delta
from defocus.privacy.composition import FixedSequence, fixed_sequence_bound
from defocus.privacy.events import Event
from defocus.privacy.translation import appearance
from defocus.privacy.units import Unit
from defocus.privacy.wire import from_wire

__all__ = ["Ledger", "verify"]

_BATCH = 500


@final
class Ledger:
    """Everything that was ever charged for what was said about one person, or another unit. Made by :meth:`open`.

    A ledger for persons holds all data about them: :meth:`data` is the same ledger for one of its data sets, which says
    by its own unit how a person appears there.

    Guarantee:
        A receipt is given only when its charge is committed and flushed to disk, and only while
        the filter of the budget admits it, whoever else charges at the same time from whatever
        process. A crash can waste budget; it can never lose a charge.
    Assumes:
        The disk honours flushes. Who can write to the database and to its anchor file can rewrite both; keep an anchor
        (:meth:`anchor`, or ``anchor_file=``) where they cannot reach, and opening it tells.

    Error:
        A charge looks at the last entry, and at the newest one of each part it names, so its time does not grow with
        the ledger or with the number of parts.

    Threads may share a ledger. A forked child may go on using it, with connections of its own, unless another
    thread was using it at the moment of the fork.

    >>> import tempfile
    >>> from defocus.privacy.events import Laplace
    >>> from defocus.privacy.units import user
    >>> home = tempfile.TemporaryDirectory()
    >>> path = f"{home.name}/visits.ledger"
    >>> with Ledger.open(path, budget=Budget(1), unit=user("patient"), dataset="visits") as book:
    ...     receipt = book.charge(Laplace(2), purpose="number of visits", who="Ada")
    ...     entry = book.record(receipt, 1041)
    ...     book.verify().ok, len(book)
    (True, 3)
    >>> home.cleanup()
    """

    __slots__ = ("_approver", "_chain", "_data", "_guard", "_made", "_parts", "_purpose", "_terms")

    def __init__(
        self,
        chain: Chain,
        made: Terms,
        guard: Guard,
        parts: tuple[str, ...] = (),
        data: Declaration | None = None,
        *,
        approver: str | None = None,
        purpose: str | None = None,
    ) -> None:
        self._chain = chain
        self._made = made
        self._guard = guard
        self._parts = parts
        self._approver = approver
        self._purpose = purpose
        self._data = data or Declaration(made.dataset, made.unit)
        self._terms = made
        if self._data.name != made.dataset:
            self._terms = replace(made, dataset=self._data.name, unit=self._data.unit, parts=None, person=made.unit)

    @classmethod
    def open(
        cls,
        where: str | Path,
        *,
        budget: Budget | None = None,
        unit: Unit | None = None,
        dataset: str | None = None,
        parts: Parts | None = None,
        filter: str | None = None,  # noqa: A002 - what it is called everywhere
        anchor_file: str | Path | AnchorFile | None = None,
        timeout: Number = 10.0,
        read_only: bool = False,
        who: str | None = None,
        **facts: Any,
    ) -> "Ledger":
        """Open the ledger at ``where``, or make it if there is none.

        Every link of its chain is checked, and the anchor that is kept of it: an entry that was altered, an older copy
        put back, and a ledger that is gone are refused. Leave out ``budget``, ``unit`` and ``dataset`` to open and
        never make.

        Args:
            where: the path of an SQLite file, or ``postgresql://user@host/database?schema=name``.
            budget: how much may ever be lost. Needed to make a ledger; may be repeated later, and must then agree.
            unit: what one person is, and which data sets are neighbours. Likewise.
            dataset: the name of the data. Likewise; but a ledger for persons may be opened for any data about them, as
                by :meth:`data`, and ``unit`` then says how a person appears in it.
            parts: what divides the data into parts with nobody in common, which can be charged apart. Left out, a new
                ledger has none, and one that has some is opened all the same.
            filter: which filter guards a new ledger, by its name in :func:`defocus.privacy.filter`. By default one
                that composes tightly, under which releases may themselves spend the part ``budget.direct`` of delta, or
                all of it if the first release spends more than an eighth of it; choose "basic" where many releases find
                groups, so that epsilons and deltas are always added up.
            anchor_file: a file that follows the last entry, so that a deleted ledger or an older copy is noticed.
                Beside a ledger that is a file by default (``visits.ledger.anchor``), and started there when it is
                missing; better on another disk, where it must exist once something was charged.
            timeout: how many seconds to wait while someone else is writing.
            read_only: never write; charging is refused.
            who: who makes the ledger; the account's name by default.
            facts: ``purposes``, ``identity`` and ``invariants`` of the data, as in :meth:`data`.
        """
        check_kinds(budget=budget, unit=unit, parts=parts)
        store = Store(place_of(where, timeout=timeout, read_only=read_only))
        try:
            file = anchor_file_of(anchor_file, store.place, where)
            given = None if read_only else (dataset, unit, budget)
            if (given is None or None in given) and not is_there(store, file):
                make(store, given, who)  # which refuses, before a file is left behind
            # Making a ledger and starting its anchor file must look like one step to others who open it.
            with contextlib.nullcontext() if file is None or read_only else file.lock():
                there = is_there(store, file)
                if not there:
                    facts["purposes"] = purposes_of(facts.get("purposes"))
                    make(store, given, who, parts=parts, filter=filter, **facts)
                with store.session() as session:
                    terms = terms_of(session)
                chain = Chain(store, file, read_only=read_only)
                ledger = cls(chain, terms, Guard.of(terms))
                chain.follow(new=not there)
                terms.hold(dataset=None, unit=None, budget=budget, filter=filter)
            ledger = ledger.data(dataset, unit=unit, who=who, **facts)
            ledger.terms.hold(dataset=None, unit=None, budget=None, parts=parts)
        except BaseException:
            store.close()
            raise
        return ledger

    @classmethod
    def find(cls, where: str | Path, *, anchor_file: str | Path | AnchorFile | None = None) -> "Ledger | None":
        """The ledger at ``where``, opened for reading only; None if nobody has made it yet.

        One that was made and is gone is refused, as by :meth:`open`.
        """
        with contextlib.closing(Store(place_of(where, timeout=10.0, read_only=True))) as store:
            there = is_there(store, anchor_file_of(anchor_file, store.place, where))
        return cls.open(where, anchor_file=anchor_file, read_only=True) if there else None

    def data(
        self,
        name: str | None = None,
        *,
        unit: Unit | None = None,
        purposes: Iterable[str] | str | None = None,
        identity: str | None = None,
        invariants: object = None,
        who: str | None = None,
        declare: bool = True,
    ) -> "Ledger":
        """The same ledger for one of the data sets about its persons; declared there if it is new.

        What the ledger knows about the data set holds: facts that are left out are those it has, and others are
        refused. A fact that it does not have yet becomes an entry.

        Args:
            name: the name of the data set; the ledger's own by default.
            unit: how a person appears in it, see :func:`defocus.privacy.appearance`; as in the ledger by default.
            purposes: what it may be used for; any purpose by default.
            identity: what tells this data from other data, in one text, of which only a salted digest is kept.
            invariants: which totals may be exact (:class:`defocus.tables.Invariants`), where the data set is new.
            who: who declares it; the account's name by default.
            declare: whether new facts become an entry now; until they do, nothing can be charged.

        >>> import tempfile; from defocus.privacy import edge, user
        >>> home = tempfile.TemporaryDirectory()
        >>> book = Ledger.open(f"{home.name}/a.ledger", budget=Budget(1), unit=user("patient"), dataset="hospital")
        >>> contacts = book.data("contacts", unit=edge(per_person=20))
        >>> print(contacts.unit, contacts.unit.changes, sep="; ")
        all edges of one person, at most 20, added or removed; 20
        >>> book.close(); home.cleanup()
        """
        check_kinds(budget=None, unit=unit)
        title = self._made.dataset if name is None else line("dataset", name, longest=200)
        facts = {"purposes": purposes_of(purposes), "identity": identity, "invariants": invariants}
        with self._chain.end() as (session, last):
            known = self._chain.declarations(session, last)
        declared = Declaration.of(self._made, self._with_own(known), title, unit, **facts)
        if declare and declared != self._found(known, title) and not self._chain.read_only:
            with self._chain.end(write=True) as (session, last):
                known = self._chain.declarations(session, last)
                declared = Declaration.of(self._made, self._with_own(known), title, unit, **facts)
                entry = None
                if declared != self._found(known, title):
                    entry = _declared(last, declared, by=(whoever(who), "declare a data set"))
                    session.append(entry)
            if entry is not None:
                self._chain.note(entry)
        if declared == self._data:
            return self
        return self._view(parts=self._parts if title == self._data.name else (), data=declared)

    def declare(
        self,
        name: str | None = None,
        *,
        why: str,
        unit: Unit | None = None,
        purposes: Iterable[str] | str | None = None,
        renew: bool = False,
        invariants: object = None,
        who: str | None = None,
    ) -> "Ledger":
        """Change what the ledger knows about a data set, for everybody who opens it from now on, and say why.

        Assumes:
            Releases that were charged before stay as they were: where a person turns out to own more rows than was
            declared, they cost such a person more than the ledger shows.

        Args:
            name: the name of the data set; the one that this ledger is opened for by default.
            why: the reason, in one line.
            unit: how a person appears in it from now on.
            purposes: what it may be used for from now on.
            renew: whether the data is a new version, about the same persons: which one is noted when it is next opened.
            invariants: which totals may be exact from now on (:class:`defocus.tables.Invariants`); "" for none.
            who: who changes it; the account's name by default.
        """
        check_kinds(budget=None, unit=unit)
        title, by = self._data.name if name is None else line("dataset", name, longest=200), (whoever(who), why)
        line("why", why)
        if title == self._made.dataset:
            self._made.hold(dataset=None, unit=unit, budget=None)
        with self._chain.end(write=True) as (session, last):
            before = self._found(self._chain.declarations(session, last), title)
            if before is None:
                raise InvalidParameterError(
                    f"This ledger has no data set {title!r:.80}.", fix="open it first: ledger.data(name, unit=…)."
                )
            declared = Declaration(
                title,
                before.unit if unit is None else appearance(self._made.unit, unit),
                before.purposes if purposes is None else purposes_of(purposes),
                None if renew else before.identity,
                before.invariants if invariants is None else invariants_of(invariants),
            )
            entry = _declared(last, declared, by=by)
            session.append(entry)
        self._chain.note(entry)
        return self._view(parts=self._parts if title == self._data.name else (), data=declared)

    def datasets(self) -> list[Declaration]:
        """Every data set that is charged to this ledger, its own first."""
        with self._chain.end() as (session, last):
            known = self._chain.declarations(session, last)
        return list(self._with_own(known).values())

    def _with_own(self, known: Mapping[str, Declaration]) -> dict[str, Declaration]:
        """What is declared, and what the terms say about the ledger's own data where nothing is."""
        own = Declaration(self._made.dataset, self._made.unit)
        return {own.name: own, **known}

    def _found(self, known: Mapping[str, Declaration], name: str) -> Declaration | None:
        """What is declared about a data set: by its newest entry, or for the ledger's own by its terms."""
        return self._with_own(known).get(name)

    def charge(
        self,
        event: Event,
        *,
        purpose: str,
        who: str | None = None,
        request: str | None = None,
        question: str | None = None,
        parts: Iterable[str] | None = None,
    ) -> Receipt:
        """Charge ``event``, durably, and return the receipt that allows one sample; or refuse and charge nothing.

        Args:
            event: what is about to be released.
            purpose: why, in one line.
            who: by whom; the account's name by default.
            request: a name under which the recorded answer can be found again with :meth:`recall`.
            question: what is asked, in one line, for the record.
            parts: the labels of the parts that the release reads, and it reads nothing else; an empty list for
                everybody. Unless given, those that the ledger is :meth:`about`. They are public: whoever asks chooses
                them, and they are written down. Whoever charges answers for it that different labels have no row in
                common, as ``Table.part`` does.
        """
        wire, labels = stored_event(event), self._labels(parts)
        purpose, who = line("purpose", purpose), whoever(who)
        about = {} if self._terms.person is None else {"data": self.dataset}
        if question is not None:
            about["question"] = line("question", question)
        if self._approver is not None:
            about["approved_by"] = self._approver
        if self._purpose is not None:
            allowed(purpose, self.purposes, "")
        request = None if request is None else line("request", request, longest=500)
        cost = self._guard.cost(event)
        with self._chain.end(write=True) as (session, last):
            declared = self._found(self._chain.declarations(session, last), self._data.name)
            held = None if declared is None else (declared.unit, declared.invariants)
            if declared is None or held != (self._data.unit, self._data.invariants):
                raise LedgerMismatchError(
                    f"What the ledger declares about {self.dataset!r:.80} was changed since it was opened; nothing was"
                    " charged.",
                    fix="open the data again.",
                )
            allowed(purpose, declared.purposes, "")
            account = Account.of(self._guard, session, last, labels)
            short = account.short(cost)
            spent, tally, divided = account.charged(cost)
            content = {"event": wire, "cost": amounts_out(cost), "request": request, **about, **divided}
            entry = _after(last, CHARGE, by=(who, purpose), spent=spent, content=content, tally=tally)
            if short is None:
                session.append(entry)
        if short is not None:
            part, before = short
            raise self._guard.refusal(before, event, part)
        self._chain.note(entry)
        return Receipt.of(entry, event, self._terms)

    def record(
        self,
        receipt: Receipt,
        value: Any,
        *,
        description: str | None = None,
        keep: bool = False,
        facts: str | None = None,
    ) -> Entry:
        """Note what was released for a charge: its digest, and with ``keep`` the value itself, which is public now.

        A kept value has ``facts`` beside it: a digest of what it depends on, so that it answers no other question. A
        charge pays for one release; a second one is refused.
        """
        content = {
            "charge": receipt.sequence,
            "digest": fingerprint(value),
            "description": None if description is None else line("description", description),
            "value": [plain(value), *([] if facts is None else [line("facts", facts)])] if keep else None,
        }
        with self._chain.end(write=True) as (session, last):
            row = session.row(receipt.sequence)
            if row is None or row.hash != receipt.hash or row.kind != CHARGE:
                raise InvalidParameterError(
                    f"Receipt {receipt.sequence} was not given by this ledger.",
                    fix="record a release in the ledger that was charged for it.",
                )
            if session.release_of(receipt.sequence) is not None:
                raise InvalidParameterError(
                    f"Charge {receipt.sequence} already paid for a release.", fix="charge again for another sample."
                )
            by = (receipt.who, receipt.purpose)
            entry = _after(last, RELEASE, by=by, spent=last.spent, content=content, tally=last.tally)
            session.append(entry)
        self._chain.note(entry)
        return entry

    def recall(self, request: str) -> Recorded | None:
        """The newest kept answer to a named request, free of charge: showing it again is post-processing."""
        with self._chain.end() as (session, _):
            for row in session.requests(line("request", request, longest=500)):
                answer = session.release_of(row.sequence)
                noted = None if answer is None else checked(answer).content
                if noted is not None and noted["value"] is not None:
                    charge = checked(row)
                    if charge.content.get("data", self._made.dataset) != self.dataset:
                        continue
                    receipt = Receipt.of(charge, from_wire(charge.content["event"]), self._terms)
                    value, *facts = noted["value"]
                    if not facts and isinstance(value, dict):  # where older versions have them
                        facts = [value.get("facts")]
                    return Recorded(value, receipt, noted["description"], *facts)
        return None

    def paid(self, request: str) -> Receipt | None:
        """The newest charge under the name of a request, whether an answer was kept for it or not.

        >>> from defocus import examples
        >>> from defocus.privacy import Laplace
        >>> book = examples.ledger()
        >>> receipt = book.charge(Laplace(2), purpose="a count", request="May")
        >>> book.paid("May") == receipt, book.paid("June"), book.recall("May")
        (True, None, None)
        >>> book.close()
        """
        with self._chain.end() as (session, _):
            for row in session.requests(line("request", request, longest=500)):
                charge = checked(row)
                if charge.content.get("data", self._made.dataset) == self.dataset:
                    return Receipt.of(charge, from_wire(charge.content["event"]), self._terms)
        return None

    def note_tuning(self, what: str, *, why: str, who: str | None = None) -> Entry:
        """Write down what was chosen by looking at raw data, such as a bound: nothing protects such a quantity.

        Args:
            what: what was chosen and how, in one line.
            why: the reason, in one line.
            who: who chose it; the account's name by default.

        >>> from defocus import examples
        >>> book = examples.ledger()
        >>> entry = book.note_tuning("stays are cut at 30 days, the 99th percentile", why="first release", who="Ada")
        >>> [each.content["tuning"] for each in book.entries() if each.kind == "tuning"]
        ['stays are cut at 30 days, the 99th percentile']
        >>> book.close()
        """
        content = {"data": self.dataset, "tuning": line("what", what, longest=1000)}
        by = whoever(who), line("why", why)
        with self._chain.end(write=True) as (session, last):
            entry = _after(last, TUNING, by=by, spent=last.spent, content=content, tally=last.tally)
            session.append(entry)
        self._chain.note(entry)
        return entry

    @property
    def terms(self) -> Terms:
        """Data set, unit, budget and filter, as the first entry has them; see :meth:`data` for other data sets."""
        return self._terms

    @property
    def dataset(self) -> str:
        """The name of the data."""
        return self._terms.dataset

    @property
    def unit(self) -> Unit:
        """What one person is, and which data sets are neighbours."""
        return self._terms.unit

    @property
    def purposes(self) -> tuple[str, ...] | None:
        """What the data may be used for; None where any purpose will do."""
        return self._data.purposes if self._purpose is None else (self._purpose,)

    @property
    def invariants(self) -> str | None:
        """Which totals of the data are exact, in one line; None where none is."""
        return self._data.invariants

    @property
    def person(self) -> Unit:
        """Whom the ledger protects, however such a person appears in the data."""
        return self._made.unit

    @property
    def budget(self) -> Budget:
        """How much may ever be lost."""
        return self._terms.budget

    @property
    def where(self) -> str:
        """Where the ledger is kept, without a password."""
        return self._chain.store.place.name

    def spent(self, *parts: str) -> tuple[float, ...]:
        """Everything charged so far, in the units the filter counts in.

        Where the data has parts, the most that anybody in the named ones was charged, or anybody at all.
        """
        return self.account(parts or None).most()

    def remaining(self, *parts: str) -> Remaining:
        """What is left to spend on a release about the named parts, or about everybody."""
        return self._guard.remaining(self.spent(*parts))

    def account(self, parts: Iterable[str] | None = None) -> Account:
        """Where the people of the named parts, or everybody, stand at one moment: for several questions, read once."""
        labels = self._labels(parts)
        with self._chain.end() as (session, last):
            return Account.of(self._guard, session, last, labels)

    def admits(self, event: Event, *, parts: Iterable[str] | None = None) -> bool:
        """Whether ``event`` would be admitted now. Free, and no promise: someone else may charge first."""
        return self.account(parts).admits(event)

    def words(self) -> str:
        """What was spent and what is left, for people."""
        with self._chain.end() as (_, last):
            used = self._guard.used(last.spent)
        spent = f"{used} was spent" if last.tally is None else last.tally.words(self._guard)
        return f"{spent}; left for everybody: {self._guard.remaining(last.spent)}"

    def about(self, *parts: str) -> "Ledger":
        """The same ledger, whose charges, sums and remainders are those of the named parts by default."""
        return self._view(parts=checked_labels(parts, self._terms))

    def approved(self, by: str) -> "Ledger":
        """The same ledger, whose charges say who approved them.

        >>> from defocus import examples
        >>> from defocus.privacy import Laplace
        >>> book = examples.ledger()
        >>> receipt = book.approved("Olga").charge(Laplace(2), purpose="a count", who="Ada")
        >>> list(book.entries())[receipt.sequence].content["approved_by"]
        'Olga'
        >>> book.close()
        """
        return self._view(approver=line("approved_by", by, longest=200))

    def only_for(self, purpose: str) -> "Ledger":
        """The same ledger, charged for one purpose only, as where people consent to purposes one by one."""
        return self._view(purpose=allowed(purpose, self.purposes, ""))

    def purpose_of(self, purpose: str | None, question: str) -> str:
        """The purpose to charge for, if the owner of the data allows it; the question itself where any will do."""
        return allowed(self._purpose if purpose is None else purpose, self.purposes, question)

    def _view(self, **changed: Any) -> "Ledger":
        """The same ledger, about other data or parts, or charged in another way."""
        now = {"parts": self._parts, "data": self._data, "approver": self._approver, "purpose": self._purpose}
        return Ledger(self._chain, self._made, self._guard, **{**now, **changed})

    @property
    def parts(self) -> tuple[str, ...]:
        """The labels of the parts that the ledger is :meth:`about`, in order; none for everybody."""
        return self._parts

    def tally(self) -> Tally | None:
        """What everybody, and what the heaviest part was charged, and how many parts; None where there are none."""
        with self._chain.end() as (_, last):
            return last.tally

    def anchor(self) -> Anchor:
        """The number and hash of the last entry. Keep it elsewhere, and pass it to :meth:`verify` later."""
        with self._chain.end() as (_, last):
            return Anchor(last.sequence, last.hash)

    def verify(self, anchor: Anchor | tuple[int, str] | str | None = None) -> Verification:
        """Read the whole chain and say everything that is wrong with it; see :class:`Verification`."""
        return examine(self._chain.store, self._chain.known(as_anchor(anchor)))

    def head(self, key: str | Path | SigningKey, *, since: Head | None = None) -> Head:
        """How many entries there are and the root of their Merkle tree, signed; with a proof since an earlier head.

        Args:
            key: the key of the ledger's keeper, or its file, which is made if there is none.
            since: a head that was published before, from which this one then follows provably.
        """
        return _head(
            self._made.id, [bytes.fromhex(entry.hash) for entry in self.entries()], SigningKey.open(key), since
        )

    def bundle(self, request: str | Receipt, *, key: str | Path | SigningKey) -> Bundle:
        """The newest answer that was kept for a request, as a signed file that proves itself: see :class:`Bundle`.

        Args:
            request: the name under which it was released, or the receipt of its charge.
            key: the key of the ledger's keeper, or its file, which is made if there is none.
        """
        named, own = isinstance(request, str), SigningKey.open(key)
        recorded = self.recall(request) if isinstance(request, str) else None
        paid = request if isinstance(request, Receipt) else None if recorded is None else recorded.receipt
        entries = list(self.entries())
        charge = entries[paid.sequence] if paid is not None and paid.sequence < len(entries) else None
        kept = (one for one in entries if one.kind == RELEASE and charge and one.content["charge"] == charge.sequence)
        answer = next(kept, None)
        if paid is None or charge is None or charge.hash != paid.hash or answer is None or not answer.content["value"]:
            what = f"the request {request!r:.80}" if named else "this charge"
            raise InvalidParameterError(
                f"No answer was kept for {what}.", fix="release it under a name, request=…, and bundle that."
            )
        leaves = [bytes.fromhex(entry.hash) for entry in entries]

        def held(entry: Entry) -> dict[str, Any]:
            return {"entry": entry.body, "proof": [hash_.hex() for hash_ in inclusion(leaves, entry.sequence)]}

        tuned = [held(one) for one in entries if one.kind == TUNING and one.content["data"] == self.dataset]
        return Bundle.signed(
            own,
            terms=self._made.to_dict(),
            claim=claim(charge, self._made),
            head=_head(self._made.id, leaves, own, None).to_dict(),
            charge=held(charge),
            release=held(answer),
            **unit_of(self._terms, self._data.identity),
            **({"tuned": tuned} if tuned else {}),
        )

    def entries(self) -> Iterator[Entry]:
        """Every entry, from the first, read in batches. An altered one is refused."""
        after = -1
        while True:
            with self._chain.store.session() as session:
                batch = session.batch(after, _BATCH)
            for row in batch:
                yield checked(row)
            if len(batch) < _BATCH:
                return
            after = batch[-1].sequence

    def events(self) -> Event:
        """Everything charged so far as one event; where the data has parts, no less than anybody's own share of it."""
        return heaviest_events(entry for entry in self.entries() if entry.kind == CHARGE)

    def fixed_sequence(self, delta: Number | None = None) -> FixedSequence:
        """The loss of everything charged, by the tightest accountant, *if the sequence was fixed beforehand*.

        At ``delta``, or that of the budget by default; 1e-6 for budgets in rho and mu.

        The filter holds even when each release was chosen after seeing the ones before; this
        bound does not, so it is reported beside the filter's and never used to admit anything.
        """
        level = spoken_delta(self.budget) if delta is None else delta
        return fixed_sequence_bound(self.events(), level, self.unit.adjacency)

    def history(self) -> list[dict[str, Any]]:
        """Every entry as a plain dictionary."""
        return [entry.to_dict() for entry in self.entries()]

    def table(self, *, newest: int = 20) -> Table:
        """The newest entries for a terminal, with the epsilon of each charge by itself and the budget used by then."""
        entries = self._newest(newest)
        return display.table(self._summary(), entries, Prices.of(self._terms, entries))

    def close(self) -> None:
        """Give up the connections. The ledger itself stays."""
        self._chain.store.close()

    def __enter__(self) -> "Ledger":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __len__(self) -> int:
        return self.anchor().sequence + 1

    def __repr__(self) -> str:
        return f"Ledger({self.dataset!r}, unit={str(self.unit)!r}, budget={self.budget}, where={self.where!r})"

    def _repr_html_(self) -> str:
        entries = self._newest(20)
        return display.page(self._summary(), entries, Prices.of(self._terms, entries))

    def __reduce__(self) -> Any:
        raise InvalidParameterError(
            "A ledger cannot be sent to another process.", fix="send its path and open it there: Ledger.open(path)."
        )

    def _summary(self) -> Mapping[str, str]:
        tally = self.tally()
        divided = "" if tally is None else tally.words(self._guard)
        return display.summary(self._terms, self.remaining(), self.where, len(self), divided)

    def _labels(self, parts: Iterable[str] | None) -> tuple[str, ...]:
        return self._parts if parts is None else checked_labels(parts, self._terms)

    def _newest(self, count: int) -> list[Entry]:
        with self._chain.end() as (session, last):
            return [checked(row) for row in session.batch(last.sequence - count, count)]


def verify(where: str | Path, anchor: Any = None, *, anchor_file: str | Path | None = None) -> Verification:
    """Examine the ledger at ``where`` without opening it for use: works on a damaged one and says what is wrong.

    >>> import tempfile; from defocus.privacy.units import rows
    >>> with tempfile.TemporaryDirectory() as home:
    ...     Ledger.open(f"{home}/a.ledger", budget=Budget(1), unit=rows(), dataset="visits").close()
    ...     print(verify(f"{home}/a.ledger").ok)
    True
    """
    with contextlib.closing(Store(place_of(where, timeout=10.0, read_only=True))) as store:
        file = anchor_file_of(anchor_file, store.place, where)
        if file is not None and not file.first_use and file.read() is None:
            raise LedgerUnavailableError(
                f"There is no anchor file at {file.path}.", fix="check its path, or leave it out."
            )
        return examine(store, anchors([as_anchor(anchor)], file))


def _head(ledger: str, leaves: list[bytes], key: SigningKey, since: Head | None) -> Head:
    proof = () if since is None else tuple(hash_.hex() for hash_ in consistency(leaves, since.size))
    size = 0 if since is None else since.size
    return Head(ledger, len(leaves), root(leaves).hex(), now(), since=size, proof=proof).signed(key)


def _declared(last: Entry, declared: Declaration, *, by: tuple[str, str]) -> Entry:
    content = {"data": declared.to_dict()}
    return _after(last, DATA, by=by, spent=last.spent, content=content, tally=last.tally)


def _after(
    last: Entry,
    kind: str,
    *,
    by: tuple[str, str],
    spent: tuple[float, ...],
    content: Mapping[str, Any],
    tally: Tally | None,
) -> Entry:
    who, purpose = by
    return Entry(last.sequence + 1, kind, now(), who, purpose, last.hash, spent, content, tally)

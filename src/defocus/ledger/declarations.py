"""What a ledger knows about each data set that is charged to it: facts that a call cannot forget or contradict.

A ledger protects persons. Each data set about them is declared in an entry of its own: what it is called, how a person
appears in it, what it may be used for, which of its totals are exact, and which data it is. A later opening may repeat
these facts or leave them out. Other facts are refused until somebody writes a new declaration, with who and why; and so
are exact totals of data that was first opened without any.
"""

import difflib
import hashlib
import hmac
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, final

from defocus.errors import DefocusError, InvalidParameterError, LedgerDamagedError, LedgerMismatchError
from defocus.ledger.terms import Terms
from defocus.ledger.text import line
from defocus.privacy.translation import PERSONS, appearance
from defocus.privacy.units import Unit
from defocus.privacy.wire import read_unit, write_unit

__all__ = ["Declaration", "allowed", "commitment", "invariants_of", "purposes_of"]


@final
@dataclass(frozen=True, slots=True)
class Declaration:
    """One data set of a ledger: its name, how a person appears in it, its purposes and its identity.

    >>> from defocus import edge
    >>> print(Declaration("contacts", edge(per_person=20)))
    contacts: all edges of one person, at most 20, added or removed
    """

    name: str
    unit: Unit
    purposes: tuple[str, ...] | None = None
    """What the data may be used for; None where any purpose will do."""
    identity: str | None = None
    """A commitment to which data it is, with its salt, see :func:`commitment`; None where nobody knows."""
    invariants: str | None = None
    """Which totals of which tree may be exact, unprotected, in one line; None where none may."""

    def fits(self, terms: Terms) -> bool:
        """Whether the unit is one under which persons of the ledger can appear."""
        try:
            return self.unit == (terms.unit if self.name == terms.dataset else appearance(terms.unit, self.unit))
        except DefocusError:
            return False

    def __str__(self) -> str:
        allowed = "" if self.purposes is None else f"; for {'; '.join(self.purposes)}"
        exact = "" if self.invariants is None else f"; exact, and not protected: {self.invariants}"
        return f"{self.name}: {self.unit}{allowed}{exact}"

    def to_dict(self) -> dict[str, Any]:
        """The declaration with JSON types only."""
        return {
            "name": self.name,
            "unit": write_unit(self.unit),
            "purposes": None if self.purposes is None else list(self.purposes),
            "identity": self.identity,
            **({} if self.invariants is None else {"invariants": self.invariants}),
        }

    @classmethod
    def read(cls, data: Any) -> "Declaration":
        """Read a declaration back; anything malformed is refused."""
        try:
            purposes = data["purposes"]
            return cls(
                line("name", data["name"]),
                read_unit(data["unit"]),
                None if purposes is None else tuple(line("a purpose", purpose) for purpose in purposes),
                None if data["identity"] is None else line("identity", data["identity"]),
                invariants_of(data.get("invariants")),
            )
        except (KeyError, TypeError, AttributeError, DefocusError):
            raise LedgerDamagedError(
                "An entry does not say which data set it declares.", fix="restore the ledger from a trusted copy."
            ) from None

    @classmethod
    def of(
        cls, terms: Terms, known: Mapping[str, "Declaration"], name: str, unit: Unit | None, **facts: Any
    ) -> "Declaration":
        """The data set ``name`` of a ledger with these facts, where None leaves one out; a contradiction is refused.

        The data that the ledger was made for appears as its terms say. Any other data set says how a person appears
        in it when it is first opened.
        """
        declared, own = known.get(name), name == terms.dataset
        if own or terms.unit.kind not in PERSONS:
            terms.hold(dataset=name, unit=unit, budget=None)
        told = facts.get("identity")
        if declared is None and told is not None:  # the same data under another name has the same facts
            twins = (one for one in known.values() if one.identity == commitment(told, one.identity))
            twin = next(twins, None)
            declared = None if twin is None else replace(twin, name=name)
        exact = invariants_of(facts.get("invariants"))
        if declared is not None and exact is not None and exact != declared.invariants:
            raise _contradiction(name, "its exact totals are", declared.invariants or "none", exact)
        if declared is None:
            unit = terms.unit if own or unit is None else appearance(terms.unit, unit)
            declared = cls(name, unit, invariants=exact)
        elif unit is not None and unit != declared.unit and appearance(terms.unit, unit) != declared.unit:
            raise _contradiction(name, "a person appears there as", declared.unit, unit)
        purposes = facts.get("purposes")
        identity = None if told is None else commitment(told, declared.identity)
        if purposes is not None and declared.purposes is not None and set(purposes) != set(declared.purposes):
            raise _contradiction(name, "it may be used for", "; ".join(declared.purposes), "; ".join(purposes))
        if identity is not None and declared.identity is not None and identity != declared.identity:
            raise LedgerMismatchError(
                f"The ledger knows other data under the name {name!r:.80}: another place, or other files.",
                fix="open the data that was charged before, or give other data another name= so that its persons are"
                f" charged all the same; if it is a new version about the same persons, ledger.declare({name!r:.80},"
                ' renew=True, why="…"), in the terminal defocus ledger declare.',
            )
        return replace(
            declared,
            purposes=declared.purposes if purposes is None or declared.purposes is not None else tuple(purposes),
            identity=declared.identity or identity,
        )


def commitment(facts: str, earlier: str | None = None) -> str:
    """A salted digest of what identifies a data set, with the salt of an ``earlier`` one, or a fresh one.

    Guarantee:
        Hashes of entries, which receipts show, tell nothing about the data: they are digests of a random salt as well.
    Assumes:
        Who reads the ledger itself knows the salt, and can try a guess of the whole data.

    >>> first = commitment("a.csv")
    >>> commitment("a.csv", first) == first, commitment("b.csv", first) == first, commitment("a.csv") == first
    (True, False, False)
    """
    salt = secrets.token_hex(32) if earlier is None else earlier.partition(":")[0]
    return f"{salt}:{hmac.new(salt.encode(), facts.encode('utf-8', 'backslashreplace'), hashlib.sha256).hexdigest()}"


def _contradiction(name: str, what: str, known: object, given: object) -> LedgerMismatchError:
    return LedgerMismatchError(
        f"The ledger declares about {name!r:.80} that {what} {known!s:.200}, and you gave {given!s:.200}.",
        fix="leave it out, as it is in the ledger; a change is an entry of its own: ledger.declare(…, why=…), in the"
        " terminal defocus ledger declare.",
    )


def purposes_of(purposes: object) -> tuple[str, ...] | None:
    """One purpose or several, each of which a ledger can hold; None where any will do.

    >>> purposes_of("monthly report"), purposes_of(["report", "audit", "report"])
    (('monthly report',), ('report', 'audit'))
    """
    if purposes is None:
        return None
    listed = [purposes] if isinstance(purposes, str) else purposes
    if not isinstance(listed, Iterable) or isinstance(listed, bytes) or not (named := list(listed)):
        raise InvalidParameterError(
            "purposes does not list what the data may be used for.",
            fix='pass purposes=["monthly report"], or leave it out where any purpose will do.',
        )
    return tuple(dict.fromkeys(line("a purpose", one) for one in named))


def invariants_of(invariants: object) -> str | None:
    """Which totals are exact, in one line, as who declares them puts it; nothing, or an empty text, is none."""
    said = "" if invariants is None else str(invariants)
    return line("invariants", said) if said else None


def allowed(purpose: str | None, purposes: tuple[str, ...] | None, question: str) -> str:
    """The purpose to write in the ledger, if the owner of the data allows it; the question itself by default."""
    if purposes is None:
        return purpose if purpose is not None else question[:200]
    if purpose not in purposes:
        near = difflib.get_close_matches(purpose or "", purposes, n=1)
        hint = f"did you mean {near[0]!r}? The" if near else "the"
        raise InvalidParameterError(
            "This data may be used for named purposes only, and "
            + (f"{purpose!r:.60} is none of them." if purpose else "none was named."),
            fix=f"{hint} purposes are {'; '.join(purposes)}."[:1000],
        )
    return str(purpose)

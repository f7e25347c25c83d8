"""Bundles: one signed file that shows what was released, what it cost and where it was charged, to who has no data.

A bundle holds two entries of the ledger as they are hashed there, the charge and the recorded answer; proofs that both
are under a signed head; what the ledger was made for; and the epsilon that is claimed. Everything is signed as one
text in canonical form, so no bit of the file can be changed.
"""

import json
import platform
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from types import MappingProxyType
from typing import Any, final

from defocus.errors import DefocusError, InvalidParameterError, LedgerDamagedError, UnsupportedEventError
from defocus.ledger.entries import CHARGE, RELEASE, TUNING, Entry, amounts_in, canonical, fingerprint, read_body
from defocus.ledger.filter import Guard
from defocus.ledger.heads import Head, SigningKey, signed_by
from defocus.ledger.merkle import included
from defocus.ledger.noise_plan import contradictions
from defocus.ledger.terms import Terms
from defocus.ledger.verification import Findings
from defocus.privacy.composition import single_release_bound
from defocus.privacy.expressions import unparse
from defocus.privacy.wire import from_wire, read_unit, write_unit

__all__ = ["Bundle", "Evidence", "claim", "unit_of"]

_FORMAT = "defocus bundle 1"
_TAG = b"defocus bundle 1\n"
_FIELDS = frozenset({"format", "terms", "unit", "protects", "claim", "charge", "release", "head", "data", "software"})
_TUNED = "tuned"
"""What was chosen by looking at raw data, where anything was."""
_LARGEST = 1 << 24
_SLACK = 1e-9
"""Two machines may round an epsilon differently in the last digits; more than this is a false claim."""


@final
@dataclass(frozen=True, slots=True)
class Evidence(Findings):
    """What a bundle shows, and everything that is wrong with it. True in a condition when nothing is.

    >>> Evidence({"question": "number of visits"}, ("it is not signed by the key that it names",)).ok
    False
    """

    facts: Mapping[str, Any]
    problems: tuple[str, ...] = ()

    def __str__(self) -> str:
        lines = [f"{name + ':':<12} {text}" for name, text in self.facts.items() if name != "value"]
        verdict = "verified" if self.ok else f"{len(self.problems)} problem(s) found"
        return "\n".join([*lines, f"{'verdict:':<12} {verdict}", *(f"  problem: {text}" for text in self.problems)])

    def to_dict(self) -> dict[str, Any]:
        """What was found with JSON types only."""
        return {**self.facts, "ok": self.ok, "problems": list(self.problems)}

    def require(self) -> "Evidence":
        """Return self, or raise what is wrong."""
        if not self.ok:
            raise LedgerDamagedError(str(self), fix="ask whoever published the bundle for the right one.")
        return self


@final
@dataclass(frozen=True, slots=True)
class Bundle:
    """A release that proves itself, made by :meth:`.Ledger.bundle`.

    Guarantee:
        :meth:`verify` needs neither the data nor the ledger. If it finds nothing wrong, the holder of the key has
        stated that this answer was recorded for this charge under this head; the event that was charged costs no more
        than is claimed, as computed anew by the tightest accountant; the ledger was charged what it costs; and where
        the answer states its plan, the noise of all measurements is the one charged.
    Assumes:
        The event and the value are the keeper's word: that the noise was drawn, and drawn once, nobody can see in a
        number. So are unit, budget and data set, which stand in entries that the bundle does not hold, since they also
        say which data it is; and that nothing else was chosen by looking at raw data than the file says. Which key is
        the keeper's must be known from elsewhere.

    >>> from defocus import examples
    >>> home = examples.folder()
    >>> bundle = examples.bundle()
    >>> bundle.save(f"{home}/may.bundle")
    >>> Bundle.load(f"{home}/may.bundle").verify().facts["epsilon"]
    0.25
    """

    body: Mapping[str, Any]
    key: str
    signature: str

    @classmethod
    def signed(cls, key: SigningKey, **body: Any) -> "Bundle":
        """A bundle of these facts, signed."""
        said = {"format": _FORMAT, "software": _software(), **body}
        return cls(MappingProxyType(said), key.public, key.sign(_TAG + canonical(said).encode()))

    @property
    def text(self) -> str:
        """The one text of the bundle."""
        return canonical({"bundle": dict(self.body), "key": self.key, "signature": self.signature})

    def save(self, path: str | Path) -> None:
        """Write the bundle to a file."""
        Path(path).write_text(self.text, encoding="ascii")

    @classmethod
    def load(cls, path: str | Path) -> "Bundle":
        """The bundle in a file; what is not one is refused, and so is one in which a byte was changed."""
        place = Path(path)
        try:
            if place.stat().st_size > _LARGEST:
                raise _unreadable(f"it is larger than {_LARGEST} bytes")
            text = place.read_text(encoding="ascii")
        except OSError as error:
            raise InvalidParameterError(
                f"The bundle {place} cannot be read: {error.strerror}.", fix="name the file of a bundle."
            ) from None
        except UnicodeError:
            raise _unreadable("it is not text") from None
        return cls.parse(text)

    @classmethod
    def parse(cls, text: str) -> "Bundle":
        """The bundle that is written as this text."""
        try:
            fields = json.loads(text)
            same = canonical(fields) == text
        except (ValueError, RecursionError):
            raise _unreadable("it is not JSON") from None
        if not same or not isinstance(fields, dict) or fields.keys() != {"bundle", "key", "signature"}:
            raise _unreadable("its text is not in canonical form")
        body, key, signature = fields["bundle"], fields["key"], fields["signature"]
        if not isinstance(body, dict) or body.keys() - {_TUNED} != _FIELDS or body["format"] != _FORMAT:
            raise _unreadable(f"it is not a {_FORMAT}")
        if not isinstance(key, str) or not isinstance(signature, str):
            raise _unreadable("it is not signed")
        return cls(MappingProxyType(body), key, signature)

    def verify(self, *, key: str | None = None, newer: Head | None = None) -> Evidence:
        """Check the signature, the proofs, the digest of the answer, its plan, and cost and epsilon, computed anew.

        Args:
            key: the public key of the keeper, known from elsewhere; the one in the bundle by default. Of a bundle that
                is signed by another one, nothing is examined: what a stranger writes can take long to compute.
            newer: a later head of the same ledger with a proof since that of the bundle, which shows that nothing was
                rewritten since.
        """
        if not signed_by(self.key, _TAG + canonical(dict(self.body)).encode(), self.signature):
            return Evidence({"key": self.key}, ("it is not signed by the key that it names, or was changed",))
        if key is not None and key.strip().lower() != self.key:
            return Evidence({"key": self.key}, ("it is signed by another key than the one that was expected",))
        problems: list[str] = []
        try:
            facts = self._examined(problems, newer)
        except (DefocusError, KeyError, TypeError, ValueError, AttributeError):
            return Evidence({"key": self.key}, (*problems, "what it holds cannot be read"))
        return Evidence(facts, tuple(problems))

    def _examined(self, problems: list[str], newer: Head | None) -> dict[str, Any]:
        body = self.body
        terms, head, unit = Terms.read(body["terms"]), Head.read(body["head"]), read_unit(body["unit"])
        if head.ledger != terms.id or not head.is_signed(self.key) or head.forged:
            problems.append("its head is not that of its ledger, or not signed as it says")
        charge, release = (self._entry(kind, body[kind], head, problems) for kind in (CHARGE, RELEASE))
        tuned = [self._entry(TUNING, held, head, problems).content["tuning"] for held in body.get(_TUNED, ())]
        if release.content["charge"] != charge.sequence:
            problems.append("its answer was recorded for another charge")
        kept = release.content["value"]
        if not isinstance(kept, list) or not kept or fingerprint(kept[0]) != release.content["digest"]:
            problems.append("its answer is not the one that was recorded")
        if str(unit) != body["protects"]:
            problems.append("the unit in words is not its unit")
        event = from_wire(charge.content["event"])
        due, paid = Guard.of(terms).cost(event), amounts_in(charge.content["cost"])
        if len(due) != len(paid) or any(have < owed * (1 - _SLACK) for have, owed in zip(paid, due, strict=True)):
            problems.append("it was charged less than its event costs")
        measurements, disagreeing = contradictions(kept[0] if kept else None, event, terms.unit.adjacency)
        problems += disagreeing
        claimed, found = body["claim"], claim(charge, terms)
        if found is None or claimed is None:
            problems += [] if found is claimed else ["it claims an epsilon that no accountant can give"]
        elif claimed["delta"] < found["delta"] or claimed["epsilon"] < found["epsilon"] * (1 - _SLACK):
            problems.append(f"it claims epsilon {claimed['epsilon']}, and its event costs {found['epsilon']}")
        if newer is not None and (newer.forged or not newer.is_signed(self.key) or not newer.follows(head)):
            problems.append("the newer head does not follow from its head: the history was rewritten since")
        return {
            "data set": charge.content.get("data", terms.dataset),
            "question": charge.content.get("question") or release.content["description"] or charge.purpose,
            "purpose": charge.purpose,
            "asked by": charge.who,
            **({"approved by": charge.content["approved_by"]} if "approved_by" in charge.content else {}),
            "when": charge.time,
            "protects": str(unit),
            **(found or {}),
            "noise": unparse(event),
            "plan": f"{measurements} measurement(s), whose noise is the one charged" if measurements else "not stated",
            **({"not protected": "; ".join(tuned)} if tuned else {}),
            "budget": str(terms.budget),
            "ledger": f"entries {charge.sequence} and {release.sequence} of {head.size}, {terms.id}",
            "key": self.key,
            "witnesses": ", ".join(other for other, _ in head.signatures if other != self.key) or "none",
            "software": ", ".join(f"{name} {number}" for name, number in body["software"].items()),
            "value": kept[0] if kept else None,
        }

    @staticmethod
    def _entry(kind: str, held: Any, head: Head, problems: list[str]) -> Entry:
        entry, proof = read_body(held["entry"]), [bytes.fromhex(text) for text in held["proof"]]
        found = included(bytes.fromhex(entry.hash), entry.sequence, head.size, proof, bytes.fromhex(head.root))
        if entry.kind != kind or not found:
            problems.append(f"its {kind} is not in the ledger that its head is of")
        return entry

    def __repr__(self) -> str:
        return f"Bundle(signed by {self.key})"


def claim(charge: Entry, terms: Terms) -> dict[str, float] | None:
    """What a charge costs by itself, by the tightest accountant; None where none can tell."""
    try:
        bound = single_release_bound(from_wire(charge.content["event"]), terms.budget, terms.unit.adjacency)
    except UnsupportedEventError:
        return None
    return {"epsilon": bound.epsilon, "delta": bound.delta}


def unit_of(terms: Terms, identity: str | None) -> dict[str, Any]:
    """What a bundle says of the data: whom it protects, and a digest that tells the data from other data only."""
    opaque = None if identity is None else sha256(b"defocus data 1\n" + identity.encode()).hexdigest()
    return {"unit": write_unit(terms.unit), "protects": str(terms.unit), "data": opaque}


def _software() -> dict[str, str]:
    return {"defocus": version("defocus"), "python": platform.python_version(), "numpy": version("numpy")}


def _unreadable(why: str) -> InvalidParameterError:
    return InvalidParameterError(f"This is not a bundle as it was signed: {why}.", fix="ask for the file again.")

"""Floor 3: what was charged, when, by whom and why; durable, transactional, tamper-evident."""

from defocus.ledger.anchors import Anchor
from defocus.ledger.bundle import Bundle, Evidence
from defocus.ledger.declarations import Declaration
from defocus.ledger.entries import Entry
from defocus.ledger.filter import Remaining, Tally
from defocus.ledger.heads import Head, SigningKey, witness
from defocus.ledger.ledger import Ledger, verify
from defocus.ledger.noise_plan import PlannedNoise
from defocus.ledger.parts import Parts
from defocus.ledger.receipts import Receipt, Recorded
from defocus.ledger.terms import Terms
from defocus.ledger.verification import Verification
from defocus.privacy.composition import FixedSequence

__all__ = [
    "Anchor",
    "Bundle",
    "Declaration",
    "Entry",
    "Evidence",
    "FixedSequence",
    "Head",
    "Ledger",
    "Parts",
    "PlannedNoise",
    "Receipt",
    "Recorded",
    "Remaining",
    "SigningKey",
    "Tally",
    "Terms",
    "Verification",
    "verify",
    "witness",
]

"""A bundle for whoever evaluates it: every claim with its evidence, in the order of the pyramid of NIST SP 800-226."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import final

from defocus.answers.page import document
from defocus.ledger import Bundle, Evidence
from defocus.privacy.html import html_table

__all__ = ["Claim", "evaluation", "evaluation_page"]

_COMPUTED, _SIGNED, _OUTSIDE = "computed anew from this file", "the keeper's word, signed", "not in this file"


@final
@dataclass(frozen=True, slots=True)
class Claim:
    """One thing that is claimed about a release, what shows it, and how far that can be checked.

    >>> Claim("ε", "epsilon 0.5", "the event that was charged", "computed anew from this file").topic
    'ε'
    """

    topic: str
    claim: str
    evidence: str
    checked: str


def evaluation(bundle: Bundle) -> Sequence[Claim]:
    """What a release claims under each topic of NIST SP 800-226, and the evidence for it.

    Reference:
        Near, Darais, Lefkovitz, Howarth (2025), Guidelines for Evaluating Differential Privacy Guarantees,
        doi.org/10.6028/NIST.SP.800-226: the parameters and the unit stand at the top of its pyramid, what they rest on
        below.

    >>> from defocus import examples
    >>> from defocus.release import release
    >>> found = evaluation(examples.bundle())
    >>> found[0].claim
    'epsilon 0.25 for this release alone'
    """
    return _claims(bundle.verify())


def _claims(evidence: Evidence) -> list[Claim]:
    facts = evidence.facts
    pair = f"epsilon {facts['epsilon']:.4g}" if "epsilon" in facts else "no epsilon by itself"
    pair += f", delta {facts['delta']:.3g}" if facts.get("delta") else ""
    kept = facts["value"] if isinstance(facts["value"], dict) else {}
    biases = "; ".join(kept.get("rules", ())) or "nothing was bounded or clipped"
    return [
        Claim("Privacy parameters (ε, δ)", f"{pair} for this release alone", f"the event {facts['noise']}", _COMPUTED),
        Claim(
            "Privacy parameters (ε, δ)", f"all releases together stay under {facts['budget']}", facts["ledger"], _SIGNED
        ),
        Claim("Unit of privacy", facts["protects"], "the terms of the ledger, in the signed file", _SIGNED),
        Claim("Privacy variant", "approximate DP" if facts.get("delta") else "pure DP", "the same event", _COMPUTED),
        Claim(
            "Algorithms and their correctness",
            "the noise that was planned is the one that was charged",
            f"plan: {facts['plan']}",
            _COMPUTED if facts["plan"] != "not stated" else _SIGNED,
        ),
        Claim(
            "Algorithms and their correctness",
            "noise was drawn once, with exact integers",
            f"software: {facts['software']}; its mechanisms are tested and audited in the open",
            _SIGNED,
        ),
        Claim(
            "Utility",
            "errors and intervals stand beside every number",
            "the recorded answer, under its digest",
            _SIGNED,
        ),
        Claim(
            "Unprotected quantities",
            facts.get("not protected", "nothing was noted as chosen by looking at raw data"),
            "entries of the ledger, under the signed head",
            _SIGNED,
        ),
        Claim("Bias", biases, "the rules in the recorded answer", _SIGNED),
        Claim(
            "Query model",
            "this release stands in one ledger, which everybody who asks charges",
            f"inclusion of both entries under a signed head; witnesses: {facts['witnesses']}",
            _COMPUTED,
        ),
        Claim("Trust model", "central: the keeper sees the data", "said here, and not shown by any file", _OUTSIDE),
        Claim(
            "Side channels",
            "no float decides an outcome; errors and lengths depend on public facts; run time is not hidden",
            "documented with the software",
            _OUTSIDE,
        ),
        Claim(
            "Access control",
            f"asked by {facts['asked by']}, approved by {facts.get('approved by', 'a rule, not a person')}",
            "the charge, under the signed head",
            _SIGNED,
        ),
        Claim("Data security and collection", "how data was collected and is kept", "ask the keeper", _OUTSIDE),
    ]


def evaluation_page(bundle: Bundle) -> str:
    """The same as one HTML page that needs no other file.

    >>> from defocus import examples
    >>> bundle = examples.bundle()
    >>> "Unit of privacy" in evaluation_page(bundle)
    True
    """
    evidence = bundle.verify()
    claims = [] if not evidence.ok else _claims(evidence)
    problems = "".join(f"<li>{escape(text)}</li>" for text in evidence.problems)
    verdict = (
        "Verified: nothing is wrong with this file." if evidence.ok else f"This file is not true:<ul>{problems}</ul>"
    )
    table = html_table(
        ["topic", "claim", "evidence", "how far it is checked"],
        [[each.topic, each.claim, each.evidence, each.checked] for each in claims],
        caption="Topics of NIST SP 800-226, from the top of its pyramid to the bottom",
        heads=1,
    )
    return document("Evaluation of a differential privacy guarantee", f"<p>{verdict}</p>{table if claims else ''}")

"""``defocus ledger``, ``history``, ``budget`` and ``units``: what was charged, what is left, whom it protects."""

from collections import deque
from dataclasses import asdict, replace
from pathlib import Path

from defocus.answers.explanation import left as left_words
from defocus.answers.plots import burn_down
from defocus.cli.plots import ready, save
from defocus.cli.terminal import console, facts, plain, table, to_json
from defocus.errors import InvalidParameterError, LedgerUnavailableError, count
from defocus.ledger import Declaration, Ledger
from defocus.ledger import verify as examine
from defocus.ledger.display import COLUMNS, MOST_EVENTS, NUMBERS, Prices, cells
from defocus.ledger.entries import CHARGE, Entry
from defocus.ledger.filter import Amounts, Guard
from defocus.privacy import Budget
from defocus.privacy.calibration import spoken_delta
from defocus.privacy.filters import Used
from defocus.privacy.translation import TRANSLATIONS
from defocus.tables.dataset_check import ledger_of
from defocus.tables.dataset_file import read

__all__ = ["declare", "ledger_at", "show", "show_budget", "show_units", "verify"]


def ledger_at(where: str) -> Ledger | None:
    """A ledger for reading only: that of a dataset file, None if nobody has made it yet, or the ledger itself."""
    if "://" not in where and Path(where).suffix.lower() == ".toml":
        return ledger_of(read(where))
    return Ledger.open(where, read_only=True)


def show(where: str, *, last: int | None, as_json: bool) -> None:
    """Print the terms, what is left, and the entries of a ledger, or of that of a dataset file; nothing is written."""
    newest = None if last is None else count("--last", last)
    opened = ledger_at(where)
    if opened is None:
        raise LedgerUnavailableError(
            "Nothing was released yet, so there is no ledger.", fix="ask a question first: defocus query …."
        )
    with opened as ledger:
        entries = list(deque(ledger.entries(), newest))  # all are read, and checked, before anything is shown
        spent, left, anchor, tally = ledger.spent(), ledger.remaining(), ledger.anchor(), ledger.tally()
    prices = Prices.of(ledger.terms, entries)
    if as_json:
        to_json(
            {
                "terms": ledger.terms.to_dict(),
                "spent": prices.labelled(spent),
                "used": prices.used(spent).to_dict(),
                "remaining": str(left),
                "anchor": str(anchor),
                "charges": [prices.to_dict(entry) for entry in entries if entry.kind == CHARGE],
                "entries": [entry.to_dict() for entry in entries],
            }
        )
        return
    terms: list[tuple[str, object]] = [
        ("data", ledger.dataset),
        ("unit", ledger.unit),
        ("budget", ledger.budget),
        ("left", left),
    ]
    if tally is not None:
        terms += [("parts", ledger.terms.parts), ("", tally.words(Guard.of(ledger.terms)))]
    screen = console()
    screen.print(facts([*terms, ("anchor", anchor), ("epsilon", _legend(prices))]))
    screen.print(table(COLUMNS, [cells(entry, prices) for entry in entries], numbers=NUMBERS))


def verify(where: str, *, anchor: str | None, anchor_file: Path | None, as_json: bool) -> bool:
    """Examine a ledger without trusting it, print what was found, and say whether nothing is wrong."""
    verdict = examine(where, anchor, anchor_file=anchor_file)
    if as_json:
        to_json(verdict.to_dict())
        return verdict.ok
    screen = console()
    for place, line in enumerate(str(verdict).split("\n")):
        style = "red" if 0 < place <= len(verdict.problems) else None
        screen.print(plain(line), style=style, soft_wrap=True)
    if verdict.ok and verdict.head is not None:  # nobody should keep an anchor of a chain that cannot be trusted
        screen.print(f"anchor: {verdict.head}", soft_wrap=True)
    return verdict.ok


def declare(
    where: str,
    name: str,
    *,
    why: str,
    who: str | None,
    purposes: list[str] | None,
    per_person: int | None,
    renew: bool,
    no_invariants: bool,
) -> None:
    """Write a new declaration of a data set, and print it."""
    with Ledger.open(where) as ledger:
        known = {one.name: one for one in ledger.datasets()}
        if name not in known:
            raise InvalidParameterError(
                f"This ledger has no data set {name!r:.80}.", fix=f"choose one of {', '.join(known)}."[:1000]
            )
        unit = None if per_person is None else replace(known[name].unit, per_person=per_person)
        exact = "" if no_invariants else None
        facts_now = ledger.declare(name, why=why, who=who, unit=unit, purposes=purposes, renew=renew, invariants=exact)
        declared = next(one for one in facts_now.datasets() if one.name == name)
    console().print(plain(f"declared {declared}"), soft_wrap=True)


def show_units(where: str | None, *, as_json: bool) -> None:
    """Print every way in which a person appears in data; of a ledger, its persons and data sets."""
    if where is None:
        if as_json:
            to_json([asdict(one) for one in TRANSLATIONS])
            return
        screen = console()
        heads = ("a person is", "unit of the data", "changes", "if replaced")
        listed = [(one.appears, one.unit, one.changes, one.replaced) for one in TRANSLATIONS]
        screen.print(table(heads, listed))
        screen.print(facts([(one.appears, one.why) for one in TRANSLATIONS]))
        return
    found = ledger_at(where)
    if found is None:
        dataset = read(where)
        persons, declared = dataset.unit, [Declaration(dataset.name, dataset.unit, dataset.purposes or None)]
    else:
        with found as ledger:
            persons, declared = ledger.person, ledger.datasets()
    if as_json:
        to_json({"protects": str(persons), "data": [replace(one, identity=None).to_dict() for one in declared]})
        return
    screen = console()
    screen.print(facts([("protects", persons)]))
    uses = ["any purpose" if one.purposes is None else "; ".join(one.purposes) for one in declared]
    rows = [(one.name, one.unit, one.unit.changes, use) for one, use in zip(declared, uses, strict=True)]
    screen.print(table(("data", "a person there", "changes", "for"), rows, numbers=("changes",)))


def _legend(prices: Prices) -> str:
    """What the two last columns mean."""
    if prices.alone is None:
        return f"shown for up to {MOST_EVENTS} kinds of releases; add for example --last 20"
    delta = spoken_delta(prices.rule.budget)
    return "of each release alone" + (f", at delta {delta:g} where it is not pure" if delta else "")


_WIDE = 8
_ADDS_UP = 0.01
_NEWEST = 20


def show_budget(where: str, *, part: str | None, plot: Path | None, as_json: bool) -> None:
    """Print, and perhaps plot, how the budget burnt down, for everybody or for those in one part."""
    if plot is not None:
        ready(plot)
    opened = ledger_at(where)
    if opened is None:
        dataset = read(where)
        if as_json:
            to_json({"dataset": dataset.name, "budget": str(dataset.budget), "used": {}, "releases": []})
            return
        lines = [("data", dataset.name), ("protects", dataset.unit), ("budget", dataset.budget)]
        console().print(facts([*lines, ("left", "all of it: nothing was released yet")]))
        return
    with opened as ledger:
        charges = [entry for entry in ledger.entries() if entry.kind == CHARGE]
        about = () if part is None else (part,)
        terms, remaining, tally = ledger.terms, ledger.remaining(*about), ledger.tally()
    guard = Guard.of(terms)
    charges, sums = (charges, [entry.spent for entry in charges]) if part is None else _of(part, charges, guard)
    used = [guard.used(spent) for spent in (guard.start, *sums)]
    if plot is not None:
        left = [guard.remaining(spent) for spent in (guard.start, *sums)]
        data = [entry.content.get("data", terms.dataset) for entry in charges]
        save(burn_down(left, ["start", *(str(entry.sequence) for entry in charges)], data), plot)
    divided = None if tally is None else tally.words(guard)
    if as_json:
        to_json(
            {
                "dataset": terms.dataset,
                "unit": str(terms.unit),
                "budget": str(terms.budget),
                "left": left_words(remaining),
                "used": used[-1].to_dict(),
                "parts": None if terms.parts is None else {**terms.parts.to_dict(), "spent": divided},
                "releases": [_record(entry, share) for entry, share in zip(charges, used[1:], strict=True)],
            }
        )
        return
    screen = console()
    lines = [("data", terms.dataset), ("protects", terms.unit), ("budget", terms.budget)]
    lines += [("left" if part is None else f"left for {part}", left_words(remaining)), ("used", used[-1])]
    lines += [] if divided is None else [("parts", terms.parts), ("", divided)]
    lines += _apart(remaining.epsilon, terms.budget, used[-1])
    screen.print(facts(lines))
    if len(charges) > _NEWEST:
        screen.print(f"the last {_NEWEST} of {len(charges)} releases; all of them: defocus history")
    newest = list(zip(charges, used[1:], strict=True))[-_NEWEST:]
    rows = [(entry.sequence, entry.time[:10], entry.who, entry.purpose, *_bars(after)) for entry, after in newest]
    heads = [f"{used[-1].measure} left", *([] if used[-1].delta is None else ["delta left"])]
    screen.print(table(("#", "when", "who", "purpose", *heads), rows, numbers=("#",)))


def _apart(left: float, budget: Budget, used: Used) -> list[tuple[str, str]]:
    """Why what is left and what is used do not add up, where they do not."""
    whole = budget.epsilon
    if whole is None or abs(left / float(whole) + used.share - 1) < _ADDS_UP:
        return []
    because = "left is what one further release may cost alone, and used is what all releases cost together"
    return [("", f"{because}: many of them compose to less than their sum, so the two do not add up")]


def _of(part: str, charges: list[Entry], guard: Guard) -> tuple[list[Entry], list[Amounts]]:
    """The charges that those in one part bear, with what they had been charged after each."""
    points, sums, own = [], [], guard.start
    for entry in charges:
        if entry.tally is not None and (not entry.parts or part in entry.parts):
            own = entry.parts.get(part, own)
            points.append(entry)
            sums.append(guard.add(entry.tally.common, own))
    return points, sums


def _record(entry: Entry, used: Used) -> dict[str, object]:
    return {
        "sequence": entry.sequence,
        "time": entry.time,
        "who": entry.who,
        "purpose": entry.purpose,
        "used": used.to_dict(),
        **({} if entry.tally is None else {"parts": list(entry.parts)}),
    }


def _bars(used: Used) -> list[str]:
    """What is left of each as a bar."""
    left = [max(0.0, 1.0 - share) for share in (used.share, used.delta) if share is not None]
    return [f"{'█' * round(share * _WIDE)}{'·' * (_WIDE - round(share * _WIDE))} {100 * share:.1f} %" for share in left]

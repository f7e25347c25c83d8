"""``defocus budget``: what was spent on a data set, release by release, and what is left."""

from pathlib import Path

from defocus.answers.guarantee import left as left_words
from defocus.answers.plots import burn_down
from defocus.cli.ledgers import ledger_at
from defocus.cli.privacy import ready, save
from defocus.cli.terminal import console, facts, table, to_json
from defocus.ledger.entries import CHARGE, Entry
from defocus.ledger.filter import Amounts, Guard
from defocus.privacy.filters import Used
from defocus.tables.dataset_file import read

__all__ = ["show"]

_WIDE = 8
_NEWEST = 20


def show(where: str, *, part: str | None, plot: Path | None, as_json: bool) -> None:
    """Print, and perhaps plot, how the budget burnt down, for everybody or for those in one part."""
    if plot is not None:
        ready(plot)
    found = ledger_at(where)
    if found is None:
        dataset = read(where)
        if as_json:
            to_json({"dataset": dataset.name, "budget": str(dataset.budget), "used": {}, "releases": []})
            return
        known = [("data", dataset.name), ("protects", dataset.unit), ("budget", dataset.budget)]
        console().print(facts([*known, ("left", "all of it: nothing was released yet")]))
        return
    with found as ledger:
        charges = [entry for entry in ledger.entries() if entry.kind == CHARGE]
        about = () if part is None else (part,)
        terms, remaining, tally = ledger.terms, ledger.remaining(*about), ledger.tally()
    guard = Guard.of(terms)
    charges, sums = (charges, [entry.spent for entry in charges]) if part is None else _of(part, charges, guard)
    used = [guard.used(spent) for spent in (guard.start, *sums)]
    if plot is not None:
        left = [guard.remaining(spent) for spent in (guard.start, *sums)]
        save(burn_down(left, ["start", *(str(entry.sequence) for entry in charges)]), plot)
    divided = None if tally is None else tally.words(guard)
    if as_json:
        to_json(
            {
                "dataset": terms.dataset,
                "unit": str(terms.unit),
                "budget": str(terms.budget),
                "left": str(remaining),
                "used": used[-1].to_dict(),
                "parts": None if terms.parts is None else {**terms.parts.to_dict(), "spent": divided},
                "releases": [_record(entry, share) for entry, share in zip(charges, used[1:], strict=True)],
            }
        )
        return
    screen = console()
    known = [("data", terms.dataset), ("protects", terms.unit), ("budget", terms.budget)]
    known += [("left" if part is None else f"left for {part}", left_words(remaining)), ("used", used[-1])]
    known += [] if divided is None else [("parts", terms.parts), ("", divided)]
    screen.print(facts(known))
    if len(charges) > _NEWEST:
        screen.print(f"the last {_NEWEST} of {len(charges)} releases; all of them: defocus history")
    newest = list(zip(charges, used[1:], strict=True))[-_NEWEST:]
    rows = [(entry.sequence, entry.time[:10], entry.who, entry.purpose, *_bars(after)) for entry, after in newest]
    heads = [f"{used[-1].measure} left", *([] if used[-1].delta is None else ["delta left"])]
    screen.print(table(("#", "when", "who", "purpose", *heads), rows, numbers=("#",)))


def _of(part: str, charges: list[Entry], guard: Guard) -> tuple[list[Entry], list[Amounts]]:
    """The charges that those in one part bear, with what they had been charged after each."""
    found, sums, own = [], [], guard.start
    for entry in charges:
        if entry.tally is not None and (not entry.parts or part in entry.parts):
            own = entry.parts.get(part, own)
            found.append(entry)
            sums.append(guard.add(entry.tally.common, own))
    return found, sums


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

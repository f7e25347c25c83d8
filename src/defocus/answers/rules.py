"""Rules by which data were read, bounded or cut: sentences that know what they do to the numbers."""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any, final

__all__ = [
    "Effect",
    "Rule",
    "below",
    "covered",
    "cut",
    "exact",
    "expected_rules",
    "missed",
    "rules_in",
    "rules_of",
    "rules_out",
]


class Effect(StrEnum):
    """What a rule does, and so where it is told. Every rule is told in explanations and files.

    >>> Effect("cut") is Effect.CUT
    True
    """

    READ = "read"
    """Says how data are read or what an error rests on."""
    TOLD = "told"
    """Likewise, and is told below the numbers."""
    BOUND = "bound"
    """Bounds what one unit contributes, which no interval tells."""
    CUT = "cut"
    """Takes data away, so that intervals are those of the noise only."""
    OPEN = "open"
    """Leaves ends of intervals open, as what is missing has no bound that is known, and says why."""
    EXACT = "exact"
    """Names numbers that are exact, which nothing protects; told before everything else."""


@final
class Rule(str):
    """A sentence with its effect; anywhere else it is the sentence.

    >>> Rule("at each node, at most 9 of its edges count", Effect.CUT).effect
    <Effect.CUT: 'cut'>
    """

    __slots__ = ("effect",)
    effect: Effect

    def __new__(cls, text: str, effect: Effect = Effect.READ) -> "Rule":
        """A rule; what is one already stays what it is."""
        if isinstance(text, Rule):
            return text
        made = super().__new__(cls, text)
        made.effect = effect
        return made


def rules_of(rules: Sequence[str]) -> tuple[Rule, ...]:
    """The rules; a plain sentence is one about how data are read."""
    return tuple(map(Rule, rules))


def expected_rules(rules: Sequence[str]) -> tuple[Rule, ...]:
    """The rules of a preview: noise alone is foretold, so what leaves intervals open is not in what is foretold.

    >>> expected_rules([Rule("at most 9 count", Effect.OPEN)])[0].effect
    <Effect.CUT: 'cut'>
    """
    return tuple(Rule(str(rule), Effect.CUT) if rule.effect is Effect.OPEN else rule for rule in rules_of(rules))


def cut(rules: Sequence[Rule]) -> list[Rule]:
    """The rules that take data away: how much that is stays private."""
    return [rule for rule in rules if rule.effect is Effect.CUT]


def missed(rules: Sequence[Rule]) -> list[Rule]:
    """The rules whose effect no interval holds, and those about numbers that nothing protects."""
    return [rule for rule in rules if rule.effect in {Effect.BOUND, Effect.CUT, Effect.OPEN, Effect.EXACT}]


def _opened(rules: Sequence[Rule]) -> list[str]:
    """Why ends of intervals are open, in one line, if there is a reason."""
    open_ended = [rule for rule in rules if rule.effect is Effect.OPEN]
    return [f"ends are open: {'; '.join(open_ended)}"] if open_ended else []


def exact(rules: Sequence[Rule]) -> list[str]:
    """The rules about numbers that nothing protects."""
    return [rule for rule in rules if rule.effect is Effect.EXACT]


def below(rules: Sequence[Rule]) -> list[str]:
    """What to write below numbers: why ends are open, what no interval tells, and what is told in any case.

    >>> below([Rule("loops are left out"), Rule("at each node, at most 9 of its edges count", Effect.CUT)])
    ['not in the intervals: at each node, at most 9 of its edges count']
    >>> below([Rule("at each node, at most 9 of its edges count", Effect.OPEN)])
    ['ends are open: at each node, at most 9 of its edges count']
    """
    outside = [rule for rule in rules if rule.effect in {Effect.BOUND, Effect.CUT}]
    told: list[str] = [rule for rule in rules if rule.effect is Effect.TOLD]
    not_held = [f"not in the intervals: {'; '.join(outside)}"] if outside else []
    return [*exact(rules), *_opened(rules), *not_held, *told]


def covered(rules: Sequence[Rule]) -> str:
    """What intervals hold, and how often.

    >>> covered([Rule("weights are cut to their declared range", Effect.CUT)])
    'the noise only, with 95 %; the truth may lie outside: weights are cut to their declared range'
    """
    outside = [rule for rule in rules if rule.effect in {Effect.BOUND, Effect.CUT}]
    some = f"the noise only, with 95 %; the truth may lie outside: {'; '.join(outside)}"
    return "; ".join([some if outside else "the truth, with 95 %", *_opened(rules)])


def rules_out(rules: Sequence[Rule]) -> dict[str, list[str]]:
    """The rules as a ledger keeps them."""
    return {"rules": list(map(str, rules)), "effects": [str(rule.effect) for rule in rules]}


def rules_in(record: Mapping[str, Any], earlier: Mapping[str, Effect]) -> tuple[Rule, ...]:
    """The rules of a record. Earlier versions did not write effects, which ``earlier`` knows by parts of sentences.

    >>> rules_in({"rules": ["edges are left out"]}, {"left out": Effect.CUT})[0].effect
    <Effect.CUT: 'cut'>
    """
    if "effects" in record:
        pairs = zip(record["rules"], record["effects"], strict=True)
        return tuple(Rule(text, Effect(effect)) for text, effect in pairs)
    return tuple(
        Rule(text, next((effect for words, effect in earlier.items() if words in text), Effect.READ))
        for text in record["rules"]
    )

from defocus.answers import Effect, Rule
from defocus.answers.rules import below, covered, cut, rules_of


def test_a_rule_is_its_sentence_wherever_it_is_written() -> None:
    rule = Rule("edges are left out", Effect.CUT)
    assert (rule, repr(rule), f"{rule}") == ("edges are left out", "'edges are left out'", "edges are left out")
    assert Rule(rule).effect is Effect.CUT
    assert [each.effect for each in rules_of(["plain", rule])] == [Effect.READ, Effect.CUT]


def test_effects_decide_and_words_do_not() -> None:
    spoken = [Rule("one patient counts with at most 5 rows; no folder; at each node, at most 3 count")]
    assert below(spoken) == cut(spoken) == []
    assert covered(spoken) == "the truth, with 95 %"
    assert below([Rule("a", Effect.TOLD), Rule("b", Effect.BOUND)]) == ["not in the intervals: b", "a"]

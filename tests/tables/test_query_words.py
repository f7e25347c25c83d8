"""Questions and rules say what is done, in words that fit on one line."""

from typing import Any

from tests.tables.attacks.exact import table

import defocus as dp


def asked(**more: Any) -> Any:
    bounded = table([]).where("x > 1").bound(**(more or {"rows": 3}))
    return bounded.group_by("k", keys=["a", "b"]).agg(
        n=dp.count(),
        m=dp.mean("x", 0, 9, missing=1),
        d=dp.count_distinct("s", at_most=2),
        q=dp.quantiles("z", [0.5, 0.9], 0, 1),
        h=dp.histogram("z", [0, 1]),
        f=dp.mean("z", bounds="find"),
    )


def test_the_question_names_every_column_and_condition() -> None:
    text = asked().question
    assert "\n" not in text
    for part in ("number of rows as n", "mean of x as m", "different s as d", "0.5, 0.9 of z", "by k", "where x > 1"):
        assert part in text


def test_names_of_several_words_are_written_apart() -> None:
    mean = dp.weighted_mean("x", "z", bounds=(0, 9), weight_bounds=(0, 9))
    assert "weighted mean of x and z as m" in table([]).agg(m=mean).question


def test_the_rules_say_what_is_bounded_clipped_left_out_and_found() -> None:
    query = asked()
    rules = " | ".join(query.preview(epsilon=1).rules)
    for part in (
        "at most 3 rows",
        "belong to nobody",
        "clipped to [0, 9]; missing ones are counted as 1",
        "at most 2 different values of s",
        "outside the edges",
        "values of z beyond bounds that are found privately, at powers of two, are cut",
        "2 groups were named beforehand",
    ):
        assert part in rules


def test_until_a_bound_is_found_errors_are_those_of_five_rows_and_afterwards_nobody_says_so() -> None:
    query = table([]).agg(n=dp.count())
    assert "errors are foretold for 5 rows of one" in str(query.preview(epsilon=1))
    told = query.release(epsilon=1).rules
    assert not any("5 rows" in rule for rule in told)
    assert any("a bound that was found privately" in rule for rule in told)


def test_private_keys_are_explained() -> None:
    query = table([]).group_by("k", keys=None).agg(n=dp.count())
    assert any("found privately" in rule for rule in query.preview(epsilon=1, delta=1e-7).rules)


def test_clipping_to_declared_bounds_is_named_below_answers_unless_it_is_covered() -> None:
    query = table([]).bound(rows=3).agg(m=dp.mean("x", 0, 9))
    said = "values of x are clipped to [0, 9]"
    assert said in str(query.preview(epsilon=1)).partition("not in the intervals:")[2]
    covering = query.covering(beyond=0.1, clipped={"x": 1})
    assert "not in the intervals" not in str(covering.preview(epsilon=1))
    counted = table([]).bound(rows=3).agg(n=dp.count())
    assert "clipped" not in str(counted.preview(epsilon=1))

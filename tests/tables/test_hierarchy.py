"""Hierarchies: whole counts that add up over levels, totals that are held exactly, and what is then not promised."""

import itertools
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import defocus as dp
from defocus.errors import InvalidParameterError, LedgerMismatchError, NotDeclaredError, UnknownColumnError
from defocus.noise.testing import seeded
from defocus.tables.planner import Plan
from defocus.tables.query import Query
from defocus.tables.table import Table

PLACES = [(state, county, f"{state}{county}{tract}") for state in "XYZ" for county in range(4) for tract in range(5)]
GEOGRAPHY = pa.table({
    "state": [place[0] for place in PLACES],
    "county": [place[1] for place in PLACES],
    "tract": [place[2] for place in PLACES],
})  # fmt: skip
COUNTS = [(7 * i * i) % 23 if i % 3 else 0 for i in range(len(PLACES))]


def rows(counts: list[int]) -> pa.Table:
    lines = [place for place, number in zip(PLACES, counts, strict=True) for _ in range(number)]
    state, county, tract = zip(*lines, strict=True)
    return pa.table({"state": pa.array(state), "county": pa.array(county, pa.int64()), "tract": pa.array(tract)})


def opened(place: Path, data: Any = None, **how: Any) -> Table:
    given = rows(COUNTS) if data is None else data
    how.setdefault("unit", dp.rows())
    levels = ("state", "county", "tract")
    how.setdefault("invariants", dp.tables.Invariants(levels, GEOGRAPHY, ("all", "state", "county")))
    return dp.open(given, budget=dp.Budget(10**6, 0.01), ledger=place, name="people", **how)


@pytest.fixture
def people(tmp_path: Path) -> Iterator[Table]:
    with opened(tmp_path / "a.ledger") as table:
        yield table


def asked(table: Table, **how: Any) -> Query:
    return table.hierarchy("state", "county", "tract", keys=GEOGRAPHY, **how)


def counted(answer: Any) -> dict[tuple[str, ...], int]:
    keys = zip(*(column.to_pylist() for column in answer.keys.values()), strict=True)
    values = answer["count"].values
    assert (values == np.rint(values)).all() and (values >= 0).all()  # noqa: PT018
    return dict(zip(keys, values.astype(int).tolist(), strict=True))


def adds_up(found: dict[tuple[str, ...], int]) -> None:
    for (state, county, tract), total in found.items():
        if tract != "all":
            continue
        parts = [
            number
            for key, number in found.items()
            if (key[:2] == (state, county) and key[2] != "all")
            or (county == "all" and key[0] == state and key[1] != "all" and key[2] == "all")
            or (state == "all" and key[0] != "all" and key[1] == "all")
        ]
        assert total == sum(parts)


EXACT: dict[tuple[str, ...], int] = {
    **{tuple(map(str, place)): number for place, number in zip(PLACES, COUNTS, strict=True)},
    **{
        (s, str(c), "all"): sum(n for p, n in zip(PLACES, COUNTS, strict=True) if p[:2] == (s, c))
        for s, c in itertools.product("XYZ", range(4))
    },
    **{(s, "all", "all"): sum(n for p, n in zip(PLACES, COUNTS, strict=True) if p[0] == s) for s in "XYZ"},
    ("all", "all", "all"): sum(COUNTS),
}


@pytest.mark.parametrize("delta", [None, 1e-6])
@pytest.mark.parametrize("invariants", [[], ["all"], ["state"], ["all", "county"]], ids=str)
def test_counts_are_whole_and_add_up_and_invariants_are_exact(
    people: Table, invariants: list[str], delta: float | None
) -> None:
    answer = asked(people, invariants=invariants).release(epsilon=0.5, delta=delta, bits=seeded(3))
    found = counted(answer)
    assert set(found) == set(EXACT)
    adds_up(found)
    depth = {"all": 0, "state": 1, "county": 2}
    held = max((depth[name] for name in invariants), default=-1)
    for key, number in found.items():
        if 3 - key.count("all") <= held:
            assert number == EXACT[key]
    assert found != EXACT


def test_without_noise_the_counts_are_the_truth(people: Table) -> None:
    assert counted(asked(people).release(epsilon=10**5)) == EXACT


def test_intervals_are_those_of_unbiased_estimates(people: Table) -> None:
    bits, inside = seeded(5), []
    for _ in range(6):
        answer = asked(people, invariants=["state"]).release(epsilon=1, bits=bits)
        column, truth = answer["count"], np.array([EXACT[key] for key in counted(answer)])
        inside.append((column.low <= truth) & (truth <= column.high))
        assert (column.low >= 0).all()
        exact = column.errors == 0
        assert exact.sum() == 4
        assert (column.low[exact] == column.values[exact]).all()
    assert 0.92 < np.mean(inside) <= 1


def test_what_is_not_protected_is_said_everywhere(people: Table) -> None:
    query = asked(people, invariants=["state"])
    preview, answer = query.preview(epsilon=1), query.release(epsilon=1)
    words = "NOT PROTECTED: the totals of all and state are exact"
    for shown in (str(preview), preview.explain(), str(answer), answer.explain(), answer._repr_html_()):
        assert words in shown
    for told in (preview.explain(), answer.explain()):
        assert "with another in its place that keeps these totals" in told
        assert "with or without it" not in told
        assert "beyond these totals: whatever someone knows" in told
    charged = people.ledger.history()[-2]
    assert "exact, not protected: the totals of all and state" in str(charged)
    plain = asked(people)
    assert "PROTECTED:" not in str(plain.preview(epsilon=1)) + str(plain.release(epsilon=1))


def test_a_request_with_other_invariants_is_another_question(people: Table) -> None:
    first = asked(people, invariants=["state"]).release(epsilon=1, request="a")
    again = asked(people, invariants=["state"]).release(epsilon=1, request="a")
    assert counted(first) == counted(again)
    assert [rule.effect for rule in first.rules] == [rule.effect for rule in again.rules]
    with pytest.raises(InvalidParameterError, match="another question"):
        asked(people, invariants=["all"]).release(epsilon=1, request="a")


def test_noise_is_for_a_row_that_moves_where_totals_are_exact(people: Table) -> None:
    held, free = (asked(people, invariants=names).plan(epsilon=1) for names in (["state"], []))
    sensitivities = {noise.sensitivity.l1 for noise in held.levels[0] if noise is not None and noise.sensitivity}
    assert sensitivities == {2 * held.grid}
    assert {noise.sensitivity.l1 for noise in free.levels[0] if noise is not None and noise.sensitivity} == {free.grid}
    assert held.levels[0][:2] == (None, None)


def measured(query: Query, plan: Plan) -> list[Any]:
    from defocus.tables.measurement import Measuring  # noqa: PLC0415
    from defocus.tables.weights import RowSampler, published  # noqa: PLC0415

    assert query.keys is not None and query.layout is not None  # noqa: PT018
    with published(query.rows, query.by, query.keys, query.bound) as groups:
        (cells,) = Measuring(groups, plan.grid, RowSampler("k")).cells(plan.arrangement.splits)
    return query.layout.sums(cells)


def test_no_row_that_keeps_the_totals_moves_a_level_by_more_than_is_charged(tmp_path: Path) -> None:
    """All pairs of places within one state, of which a row leaves one for the other."""
    base = [1] * len(PLACES)
    seen = set()
    with opened(tmp_path / "b", rows(base)) as table:
        query = asked(table, invariants=["state"], share={})
        plan = query._planned(1, None)
        before = measured(query, plan)
    for there in (1, 5, 19):  # the same county, another one, the last
        moved = base.copy()
        moved[0], moved[there] = 0, 2
        with opened(tmp_path / f"b{there}", rows(moved)) as table:
            after = measured(asked(table, invariants=["state"], share={}), plan)
        for level, noise in enumerate(plan.levels[0]):
            far = int(np.abs(after[level] - before[level]).sum())
            if noise is None:
                assert far == 0
                continue
            assert noise.sensitivity is not None
            assert far <= noise.sensitivity.l1
            seen.add(Fraction(far, noise.sensitivity.l1))
    assert seen == {Fraction(0), Fraction(1)}


def test_noise_has_the_planned_scale_and_no_other(tmp_path: Path) -> None:
    """Counts so large that nothing is cut: what is left of the noise is that of least squares, and not 10 % less."""
    leaves = 3000
    data = pa.table({"state": np.repeat(np.arange(leaves) // 100, 40), "tract": np.repeat(np.arange(leaves), 40)})
    places = pa.table({"state": np.arange(leaves) // 100, "tract": np.arange(leaves)})
    declared = dp.tables.Invariants(["state", "tract"], places, ["state"])
    with opened(tmp_path / "s", data, invariants=declared) as table:
        for invariants in ([], ["state"]):
            query, bits = table.hierarchy("state", "tract", keys=places, invariants=invariants), seeded(9)
            plan = query._planned(1, None)
            assert query.layout is not None
            foretold = float(query.layout.variances(plan.levels[0], plan.grid)[-1].mean()) + 1 / 12  # and rounding
            answers = [query.release(epsilon=1, bits=bits) for _ in range(3)]
            found = [value for answer in answers for key, value in counted(answer).items() if key[1] != "all"]
            assert 0.9 < float(np.mean(np.square(np.array(found) - 40))) / foretold < 1.1


def test_levels_that_rows_do_not_have_are_taken_from_the_public_table(tmp_path: Path) -> None:
    with opened(tmp_path / "t", rows(COUNTS).select(["tract"])) as table:
        assert counted(asked(table).release(epsilon=10**5)) == EXACT
        assert counted(asked(table, invariants=["state"]).release(epsilon=10**5)) == EXACT


def test_declared_domains_are_a_tree(people: Table) -> None:
    known = people.declare(state=["X", "Y", "Z"], county=[0, 1, 2, 3])
    found = counted(known.hierarchy("state", "county").release(epsilon=10**5))
    assert found == {key[:2]: number for key, number in EXACT.items() if key[2] == "all"}


def test_rows_elsewhere_are_left_out_and_leaves_without_rows_are_shown(tmp_path: Path) -> None:
    data = pa.table({"tract": ["here", "elsewhere", None]})
    leaves = pa.table({"state": ["s", "s"], "tract": ["here", "there"]})
    with opened(tmp_path / "e", data, invariants=dp.tables.Invariants(["state", "tract"], leaves, ["all"])) as table:
        answer = table.hierarchy("state", "tract", keys=leaves, invariants=["all"]).release(epsilon=10**5)
        assert counted(answer) == {("s", "here"): 1, ("s", "there"): 0, ("s", "all"): 1, ("all", "all"): 1}


def test_one_level_is_a_hierarchy(tmp_path: Path) -> None:
    with opened(tmp_path / "o", invariants=dp.tables.Invariants(["state"], ["X", "Y", "Z"], ["all"])) as people:
        found = counted(people.hierarchy("state", invariants=["all"]).release(epsilon=1))
    assert found["all",] == sum(COUNTS) == sum(found[state,] for state in "XYZ")


def test_shares_are_as_wanted(people: Table) -> None:
    plan = asked(people, share={"tract": 8, "state": 2}).plan(epsilon=1, delta=None)
    noises = plan.levels[0]
    assert all(noise is not None for noise in noises)
    scales = [float(noise.mechanism.scale) for noise in noises]  # type: ignore[union-attr]
    assert [scales[0] / scale for scale in scales] == pytest.approx([1, 2, 1, 8], rel=1e-4)


TWICE = pa.concat_tables([GEOGRAPHY, GEOGRAPHY.slice(0, 1)])
TWO_PARENTS = pa.concat_tables([GEOGRAPHY, pa.table({"state": ["Z"], "county": [0], "tract": ["X00"]})])
REFUSED: dict[str, tuple[dict[str, Any], type[Exception], str]] = {
    "leaves twice": ({"keys": TWICE}, InvalidParameterError, "A leaf is there twice"),
    "no leaves": ({"keys": GEOGRAPHY.slice(0, 0)}, InvalidParameterError, "no key"),
    "no table": ({"keys": "declared"}, NotDeclaredError, "leaves that are known"),
    "a level missing": ({"keys": GEOGRAPHY.select(["state", "tract"])}, NotDeclaredError, "no column 'county'"),
    "exact leaves": ({"invariants": ["tract"]}, InvalidParameterError, "nothing would be protected"),
    "an unknown level": ({"invariants": ["ward"]}, InvalidParameterError, "there is no such level"),
    "a level twice": ({"invariants": ["state", "state"]}, InvalidParameterError, "named twice"),
    "a text": ({"invariants": "state"}, InvalidParameterError, "names of levels"),
    "a number": ({"invariants": [3]}, InvalidParameterError, "names of levels"),
    "a share of nothing": ({"share": {"ward": 2}}, InvalidParameterError, "There is no level 'ward'"),
    "a share of zero": ({"share": {"state": 0}}, InvalidParameterError, "share of state"),
}


@pytest.mark.parametrize(("how", "kind", "words"), REFUSED.values(), ids=REFUSED)
def test_what_is_no_tree_is_refused_free_of_charge(
    people: Table, how: dict[str, Any], kind: type[Exception], words: str
) -> None:
    with pytest.raises(kind, match=words):
        people.hierarchy("state", "county", "tract", **{"keys": GEOGRAPHY, **how})
    assert len(people.ledger.history()) == 1


def test_a_level_of_the_public_table_that_cannot_be_a_key_is_refused(tmp_path: Path) -> None:
    with opened(tmp_path / "l", rows(COUNTS).select(["tract"])) as table:
        odd = GEOGRAPHY.set_column(0, "state", pa.array([[1]] * len(PLACES)))
        with pytest.raises(InvalidParameterError, match="of type list"):
            table.hierarchy("state", "county", "tract", keys=odd)
        named = GEOGRAPHY.set_column(0, "state", GEOGRAPHY["state"].dictionary_encode())
        shuffled = named.take(pa.array(np.random.default_rng(1).permutation(len(PLACES))))
        found = table.hierarchy("state", "county", "tract", keys=shuffled).release(epsilon=10**5)
        assert counted(found) == EXACT


def test_a_leaf_with_two_parents_is_refused_where_rows_do_not_tell(tmp_path: Path) -> None:
    with opened(tmp_path / "p", rows(COUNTS).select(["tract"])) as table:
        with pytest.raises(InvalidParameterError, match="has two parents"):
            table.hierarchy("state", "county", "tract", keys=TWO_PARENTS)
        with pytest.raises(UnknownColumnError):
            table.hierarchy("state", "tract")
    with opened(tmp_path / "q") as table:  # rows tell it by the whole path
        assert ("Z", "0", "X00") in counted(
            table.hierarchy("state", "county", "tract", keys=TWO_PARENTS).release(epsilon=1)
        )


@pytest.mark.parametrize(
    "made",
    [
        lambda table: table.where("county > 0"),
        lambda table: table.derive(odd="county % 2"),
        lambda table: table.join(pa.table({"county": [0, 1, 2, 3], "size": [1, 2, 3, 4]}), on="county"),
    ],
    ids=["filtered", "derived", "joined"],
)
def test_no_total_of_a_chosen_few_is_held_exactly(people: Table, made: Any) -> None:
    with pytest.raises(InvalidParameterError, match="of the table as it was opened"):
        asked(made(people), invariants=["state"])
    asked(made(people)).preview(epsilon=1)


@pytest.mark.parametrize(
    ("levels", "how"),
    [
        (("state", "county", "tract"), {"keys": GEOGRAPHY.slice(0, 1)}),  # one leaf would be the rows of a chosen few
        (("state", "county", "tract"), {"keys": "leaves"}),
        (("county", "state", "tract"), {}),
        (("state", "tract"), {}),
    ],
    ids=str,
)
def test_who_asks_chooses_neither_levels_nor_leaves_of_exact_totals(
    people: Table, levels: tuple[str, ...], how: dict[str, Any]
) -> None:
    with pytest.raises(NotDeclaredError, match="the word of the data's owner"):
        people.hierarchy(*levels, invariants=["state"], **how)
    known = people.declare(state=["X"], county=[0], tract=["X00"])
    exact = counted(known.hierarchy("state", "county", "tract", invariants=["state"]).release(epsilon=1))
    assert exact["X", "all", "all"] == EXACT["X", "all", "all"]


LEVELS = ("state", "county", "tract")


def test_leaves_of_exact_totals_are_those_that_were_declared_whatever_becomes_of_what_was_passed(
    tmp_path: Path,
) -> None:
    numbers = np.arange(4)
    places = pa.table({"state": numbers // 2, "tract": numbers})  # Arrow looks into the memory of the arrays
    names = [("X", 0, "X00"), ("X", 0, "X01")]
    data = pa.table({"state": [0, 0, 0, 1], "tract": [0, 0, 1, 2]})
    with opened(tmp_path / "p", data, invariants=dp.tables.Invariants(["state", "tract"], places, ["state"])) as table:
        numbers[1] = 7  # its rows would be in no leaf, and the total one less
        assert counted(table.hierarchy("state", "tract", invariants=["state"]).release(epsilon=1))["0", "all"] == 3
        with pytest.raises(NotDeclaredError, match="the word of the data's owner"):
            table.hierarchy("state", "tract", keys=places, invariants=["state"])
    with opened(tmp_path / "l", invariants=dp.tables.Invariants(LEVELS, names, ["all"])) as table:
        names[1:] = []
        total = counted(table.hierarchy(*LEVELS, invariants=["all"]).release(epsilon=1))["all", "all", "all"]
        assert total == EXACT["X", "0", "X00"] + EXACT["X", "0", "X01"]


def test_leaves_of_exact_totals_are_compared_with_the_fact_in_the_ledger(people: Table) -> None:
    held = people.invariants
    assert held is not None
    assert str(held) == people.ledger.invariants
    before = len(people.ledger.history())
    for name, value in (("keys", GEOGRAPHY.slice(0, 1)), ("exact", ("all", "state")), ("levels", LEVELS[:2])):
        was = getattr(held, name)
        object.__setattr__(held, name, value)
        with pytest.raises(NotDeclaredError, match="the word of the data's owner"):
            people.hierarchy(*held.levels, invariants=["state"])
        object.__setattr__(held, name, was)
    assert len(people.ledger.history()) == before
    assert asked(people, invariants=["state"]).release(epsilon=1)  # repeated, as equal leaves


def test_leaves_of_exact_totals_are_no_domains_that_whoever_asks_could_declare() -> None:
    for keys in ("declared", 3, None):
        with pytest.raises(InvalidParameterError, match="leaves of exact totals"):
            dp.tables.Invariants(LEVELS, keys, ["state"])


def test_exact_totals_that_the_owner_did_not_declare_are_refused(tmp_path: Path, people: Table) -> None:
    with opened(tmp_path / "n", invariants=None) as table, pytest.raises(NotDeclaredError, match="owner"):
        asked(table, invariants=["all"])
    with pytest.raises(InvalidParameterError, match="of type dict"):
        opened(tmp_path / "m", invariants={"state": 1})
    for levels, exact in (("state", ["all"]), (["state"], []), (["state"], "all"), ([3], ["all"])):
        with pytest.raises(InvalidParameterError, match="names of levels"):
            dp.tables.Invariants(levels, GEOGRAPHY, exact)  # type: ignore[arg-type]
    assert len(people.ledger.history()) == 1


def test_exact_totals_are_facts_of_the_ledger_that_entries_alone_change(tmp_path: Path) -> None:
    place, levels = tmp_path / "f", ("state", "county", "tract")
    states = dp.tables.Invariants(levels, GEOGRAPHY, ["state"])
    shuffled = dp.tables.Invariants(levels, GEOGRAPHY.take(list(range(GEOGRAPHY.num_rows))[::-1]), ["state"])
    others = [
        dp.tables.Invariants(levels, GEOGRAPHY, ["all"]),
        dp.tables.Invariants(levels[1:], GEOGRAPHY, ["county"]),
        dp.tables.Invariants(levels, GEOGRAPHY.slice(1), ["state"]),
    ]
    opened(place, invariants=None).close()
    with pytest.raises(LedgerMismatchError, match="exact totals are none"):
        opened(place, invariants=states)
    with opened(place, invariants=None) as table:
        table.ledger.declare(invariants=states, why="by law")
        assert "exact, and not protected: state of state > county > tract" in str(table.ledger.datasets()[0])
        with pytest.raises(LedgerMismatchError, match="was changed"):
            table.agg(n=dp.count()).release(epsilon=1)
    with opened(place, invariants=shuffled) as table:
        assert counted(table.hierarchy(*levels, invariants=["state"]).release(epsilon=1))
        for other in others:
            with pytest.raises(LedgerMismatchError, match="exact totals are"):
                opened(place, invariants=other)
            with pytest.raises(LedgerMismatchError, match="exact totals are"):  # nor under another name
                dp.open(rows(COUNTS), unit=dp.rows(), ledger=place, name="people", invariants=other)
        table.ledger.declare(invariants="", why="no longer by law")
        with pytest.raises(LedgerMismatchError, match="was changed"):
            table.hierarchy(*levels, invariants=["state"]).release(epsilon=1)
    with opened(place, invariants=None) as table, pytest.raises(NotDeclaredError, match="owner"):
        asked(table, invariants=["state"])


def test_invariants_are_refused_where_people_have_several_rows(tmp_path: Path) -> None:
    data = rows(COUNTS).append_column("person", pa.array(range(sum(COUNTS))))
    for name, unit in {"u": dp.user("person"), "p": dp.rows(per_person=3)}.items():
        with opened(tmp_path / name, data, unit=unit) as table:
            bounded = table.bound(rows=1) if name == "u" else table
            with pytest.raises(InvalidParameterError, match="each row is protected as a row"):
                asked(bounded, invariants=["state"])
            adds_up(counted(asked(bounded).release(epsilon=1)))


def test_replaced_rows_are_protected_the_same_with_invariants(tmp_path: Path) -> None:
    with opened(tmp_path / "r", unit=dp.rows(replace=True)) as table:
        held, free = (asked(table, invariants=names, share={}) for names in (["state"], []))
        assert held.plan(epsilon=1).levels[0][-1] is not None
        sensitivities = [query.plan(epsilon=1).levels[0][-1].sensitivity for query in (held, free)]  # type: ignore[union-attr]
        assert sensitivities[0] == sensitivities[1]
        assert counted(held.release(epsilon=1))["all", "all", "all"] == sum(COUNTS)


def test_huge_noise_is_no_error(people: Table) -> None:
    adds_up(counted(asked(people).release(epsilon=1e-3)))


def test_a_hierarchy_is_a_question_like_others(people: Table) -> None:
    query = asked(people)
    assert query.question == "number of rows as count, by state > county > tract and in all"
    assert query.preview(epsilon=1).event == query.release(epsilon=1).receipt.event
    assert replace(query, weights={}).question == query.question

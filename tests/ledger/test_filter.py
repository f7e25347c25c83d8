import itertools
import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from defocus.errors import BudgetExceededError, InvalidParameterError, LedgerDamagedError, LedgerUnavailableError
from defocus.ledger import Ledger, verify
from defocus.ledger.filter import Guard, Tally
from defocus.ledger.parts import Parts, key_of
from defocus.ledger.terms import Terms
from defocus.privacy.budgets import Budget
from defocus.privacy.events import (
    NOTHING,
    Approximate,
    Event,
    Gaussian,
    Laplace,
    Pure,
    RandomizedResponse,
    Shuffled,
)
from defocus.privacy.units import rows, user


def terms(budget: Budget) -> Terms:
    return Terms.new(dataset="d", unit=rows(), budget=budget, filter_version=Guard.definition(budget))


GUARD = Guard.of(terms(Budget(2, 1e-6)))
events = st.sampled_from([NOTHING, Pure(Fraction(1, 10)), Laplace(3), Gaussian(5), 3 * Gaussian(20) + Pure(0.01)])


@given(st.lists(events, max_size=5))
def test_sums_only_grow_and_depend_on_costs_only(steps: list[Event]) -> None:
    guard = GUARD
    spent = guard.start
    for step in steps:
        more = guard.add(spent, guard.cost(step))
        assert all(after >= before for before, after in zip(spent, more, strict=True))
        spent = more


def test_a_ledger_of_another_rule_is_refused() -> None:
    with pytest.raises(LedgerUnavailableError, match="union/0"):
        Guard.of(replace(terms(Budget(1)), filter="union/0"))


@pytest.mark.parametrize("budget", [Budget(1, 1e-6), Budget(rho=0.1), Budget(mu=0.5)])
def test_a_refusal_is_larger_than_what_is_left_in_every_vocabulary(budget: Budget) -> None:
    guard = Guard.of(terms(budget))
    refused = guard.refusal(guard.start, Gaussian(Fraction(1, 10)))
    assert refused.requested > refused.remaining > 0
    assert refused.difference == pytest.approx(refused.requested - refused.remaining)
    assert refused.requested_epsilon > refused.remaining_epsilon > 0


def test_a_refusal_says_at_which_delta_the_release_has_its_epsilon() -> None:
    guard = Guard.of(terms(Budget(0.05, 1e-6)))
    assert "requested   epsilon 0.0999" in str(guard.refusal(guard.start, Laplace(10)))
    assert " at delta 1e-06\n" in str(guard.refusal(guard.start, Laplace(10)))
    pure = Guard.of(terms(Budget(0.05)))
    assert "requested   epsilon 0.1\n" in str(pure.refusal(pure.start, Pure(Fraction(1, 10))))


def test_the_remedy_for_a_spent_budget_does_not_offer_what_would_be_refused() -> None:
    guard = Guard.of(terms(Budget(1)))
    spent = guard.start
    for step in (Pure(0.4), Pure(0.4), Pure(0.2)):
        spent = guard.add(spent, guard.cost(step))
    refusal = guard.refusal(spent, Pure(1e-3))
    assert refusal.remaining == 0
    assert "read again what was already released" in refusal.fix


def test_a_ledger_made_under_the_union_keeps_it() -> None:
    old = Guard.of(replace(terms(Budget(1, 1e-6, direct=Fraction(1, 8))), filter="union/1"))
    assert not old.admits(old.start, Approximate(1, 1e-6))
    new = Guard.of(terms(Budget(1, 1e-6)))
    assert new.filter.definition == "first/2:1/2"
    assert new.admits(new.start, Approximate(1, 1e-6))
    for budget in (Budget(1), Budget(rho=1), Budget(mu=1), Budget(1, Fraction(1, 10**400))):
        assert Guard.of(terms(budget)).filter.definition == "union/1"


def test_many_sums_and_one_price_are_decided_like_one_release() -> None:
    guard = Guard.of(terms(Budget(1, 1e-6)))
    large = Approximate(0.1, 5e-7)
    for spent in (guard.start, guard.cost(Pure(0.1)), guard.cost(large), guard.cost(Gaussian(50))):
        assert guard.covers(spent, guard.cost(large)) == guard.admits(spent, large)


def test_the_first_release_decides_nothing_where_the_data_has_parts() -> None:
    divided = Parts("day", "date", "rows")
    assert Guard.definition(Budget(1, 1e-6), divided=True) == "union/2:1/2"
    assert Guard.definition(Budget(1, 1e-6), "basic", divided=True) == "basic/1"
    with pytest.raises(InvalidParameterError, match="where the data has parts"):
        Guard.definition(Budget(1, 1e-6), "first", divided=True)
    with pytest.raises(LedgerUnavailableError, match="first/2:1/2"):
        Guard.of(replace(terms(Budget(1, 1e-6)), parts=divided))


def test_a_filter_that_nobody_knows_is_refused_when_a_ledger_is_made() -> None:
    with pytest.raises(InvalidParameterError, match=r"no filter for .* named 'hope'"):
        Guard.definition(Budget(1, 1e-6), "hope")


def test_a_shuffled_release_is_made_to_fit_by_more_users_and_not_by_noise() -> None:
    crowd = replace(terms(Budget(0.1, 1e-6)), unit=rows(replace=True))
    guard = Guard.of(crowd)
    shuffled = Shuffled(RandomizedResponse(3), 1000)
    for event in (shuffled, 2 * shuffled + Pure(0.01)):
        refusal = str(guard.refusal(guard.start, event))
        assert "more users, or let each report have a smaller local epsilon, until it fits in what is left" in refusal
        assert "add noise" not in refusal
    assert "add noise" in str(guard.refusal(guard.start, Pure(3)))


def test_a_pair_is_told_with_its_own_epsilon_where_it_takes_all_of_delta() -> None:
    guard = Guard.of(terms(Budget(3, 1e-5)))
    pair = Approximate(3, 1e-5)
    refusal = str(guard.refusal(guard.add(guard.start, guard.cost(pair)), pair))
    assert "requested   epsilon 3 at delta 1e-05" in refusal
    assert "requested   no epsilon at the delta" in str(guard.refusal(guard.start, Approximate(3, 1e-4)))


DAYS = Parts("day", "date", "rows")


Charge = tuple[Event, frozenset[str]]


Opener = Callable[..., Ledger]


def guarding(budget: Budget) -> Guard:
    rule = Guard.definition(budget, divided=True)
    return Guard.of(Terms.new(dataset="visits", unit=rows(), budget=budget, filter_version=rule, parts=DAYS))


def admitted(guard: Guard, charges: list[Charge]) -> Iterator[Charge]:
    """What a ledger lets through of charges that are tried one after the other."""
    tally, sums = Tally.start(guard), dict[str, Any]()
    for event, parts in charges:
        own = {part: sums.get(part) for part in sorted(parts)}
        cost = guard.cost(event)
        if all(guard.covers(sum_, cost) for sum_ in tally.sums(guard, own).values()):
            tally, grown = tally.charged(guard, own, cost)
            sums.update(grown)
            yield event, parts


def losses(data: tuple[str | None, ...], charges: list[Charge]) -> list[Fraction]:
    """What each row of the data loses, by definition: the epsilons of all releases whose rows it is among."""
    lost = []
    for part in data:
        own = [event for event, parts in charges if not parts or part in parts]
        lost.append(sum((Fraction(event.epsilon) for event in own if isinstance(event, Pure)), Fraction(0)))
    return lost


@pytest.mark.slow
def test_nobody_in_any_small_data_set_loses_more_than_the_budget_and_nothing_that_fits_is_refused() -> None:
    guard = guarding(Budget(1))
    halves, thirds = Pure(Fraction(1, 2)), Pure(Fraction(2, 5))
    targets = [frozenset[str](), frozenset({"a"}), frozenset({"b"}), frozenset({"a", "b"})]
    steps = [(event, parts) for event in (halves, thirds) for parts in targets]
    worlds = [
        world for size in (1, 2) for world in itertools.combinations_with_replacement(["a", "b", "c", None], size)
    ]
    tried = 0
    for sequence in itertools.product(steps, repeat=4):
        kept: list[Charge] = []
        let_through = list(admitted(guard, list(sequence)))
        for charge in sequence:
            everybody = ["a", "b", "c", None] if not charge[1] else sorted(charge[1])
            fits = all(lost <= 1 for lost in losses(tuple(everybody), [*kept, charge]))
            if fits:
                kept.append(charge)
        assert let_through == kept  # with one measure the largest sum is that of a part, so it decides exactly
        for world in worlds:
            assert max(losses(world, let_through)) <= 1
        tried += 1
    assert tried == 8**4


def test_the_same_charges_would_break_the_budget_if_the_common_sum_were_left_out() -> None:
    """The check above can fail: without what everybody was charged, a part's release would be let through."""
    guard = guarding(Budget(1))
    charges: list[Charge] = [(Pure(Fraction(1, 2)), frozenset()), (Pure(Fraction(2, 3)), frozenset({"a"}))]
    assert list(admitted(guard, charges)) == charges[:1]
    assert max(losses(("a",), charges)) > 1


EVENTS: list[Event] = [Pure(Fraction(1, 5)), Pure(Fraction(1, 20)), Gaussian(20), Gaussian(60), Laplace(7)]


CHARGES = st.lists(st.tuples(st.sampled_from(EVENTS), st.frozensets(st.sampled_from("abc"))), max_size=30)


@settings(max_examples=25)
@given(CHARGES)
def test_the_run_of_every_person_is_one_that_the_filter_admits_alone(charges: list[Charge]) -> None:
    guard = guarding(Budget(1, 1e-6))
    let_through = list(admitted(guard, charges))
    for part in ("a", "b", "c", None):
        spent = guard.start
        for event, parts in let_through:
            if not parts or part in parts:
                assert guard.filter.fits(guard.filter.cost(event) + type(guard.filter.start)(spent))
                spent = guard.add(spent, guard.cost(event))


@settings(max_examples=25)
@given(CHARGES)
def test_the_order_of_parts_in_a_charge_changes_nothing(charges: list[Charge]) -> None:
    guard = guarding(Budget(1, 1e-6))
    tally, sums = Tally.start(guard), dict[str, Any]()
    other, theirs = Tally.start(guard), dict[str, Any]()
    for event, parts in charges:
        own = {part: sums.get(part) for part in sorted(parts)}
        tally, grown = tally.charged(guard, own, guard.cost(event))
        sums |= grown
        own = {part: theirs.get(part) for part in sorted(parts, reverse=True)}
        other, grown = other.charged(guard, own, guard.cost(event))
        theirs |= grown
    assert tally == other
    assert tally.parts == len(sums)
    assert all(tally.heaviest[i] == max((s[i] for s in sums.values()), default=0.0) for i in range(len(guard.start)))


@pytest.fixture
def book(opened: Opener) -> Ledger:
    return opened(unit=rows(), parts=DAYS)


def test_each_day_has_the_whole_budget_until_everybody_is_charged(book: Ledger) -> None:
    for day in range(10):
        receipt = book.charge(Pure(Fraction(3, 4)), purpose="a day", parts=[f"2026-11-{day + 10}"])
        assert receipt.parts == (f"2026-11-{day + 10}",)
    with pytest.raises(BudgetExceededError, match="from the part 2026-11-12") as refused:
        book.charge(Pure(Fraction(1, 2)), purpose="again", parts=["2026-11-12"])
    assert refused.value.remaining == pytest.approx(0.25)
    with pytest.raises(BudgetExceededError, match="not cover this release; nothing"):
        book.charge(Pure(Fraction(1, 2)), purpose="all days")
    book.charge(Pure(Fraction(1, 4)), purpose="all days")
    assert not book.admits(Pure(Fraction(1, 100)), parts=["2026-11-12"])
    assert book.admits(Pure(Fraction(3, 4)), parts=["2026-12-01"])
    assert not book.admits(Pure(Fraction(3, 4)), parts=["2026-12-01", "2026-11-12"])
    assert book.verify().ok
    assert len(book) == 12


def test_a_release_from_several_parts_must_fit_in_each_of_them(book: Ledger) -> None:
    book.charge(Pure(Fraction(3, 4)), purpose="a day", parts=["2026-11-15"])
    for parts in (
        ["2026-11-14", "2026-11-15"],
        ["2026-11-15", "2026-11-16"],
        ["2026-11-14", "2026-11-15", "2026-11-16"],
    ):
        assert not book.admits(Pure(Fraction(1, 2)), parts=parts)
        with pytest.raises(BudgetExceededError, match="from the part 2026-11-15"):
            book.charge(Pure(Fraction(1, 2)), purpose="several days", parts=parts)
    book.charge(Pure(Fraction(1, 2)), purpose="two days", parts=["2026-11-14", "2026-11-16"])
    book.charge(Pure(Fraction(1, 4)), purpose="three days", parts=["2026-11-14", "2026-11-15", "2026-11-16"])
    assert book.spent("2026-11-14") == pytest.approx((0, 0.75))
    assert book.spent("2026-11-15") == pytest.approx((0, 1))
    assert book.verify().ok


def test_what_was_spent_is_told_in_words(book: Ledger) -> None:
    assert "no part was charged yet" in book._repr_html_()
    book.charge(Pure(Fraction(1, 4)), purpose="a day", parts=["2026-11-14"])
    book.charge(Pure(Fraction(1, 2)), purpose="two days", parts=["2026-11-15", "2026-11-16"])
    book.charge(Pure(Fraction(1, 8)), purpose="everybody")
    tally = book.tally()
    assert tally is not None
    assert tally.words(Guard.of(book.terms)) == (
        "3 parts were charged, the heaviest 50 % of epsilon, beside 12.5 % of epsilon that everybody was charged"
    )
    assert book.spent() == pytest.approx((0, 0.625))
    assert book.spent("2026-11-14") == pytest.approx((0, 0.375))
    assert book.spent("2026-11-14", "2026-11-15") == book.spent()
    assert book.spent("2027-01-01") == pytest.approx((0, 0.125))
    assert book.remaining("2026-11-14").epsilon == pytest.approx(0.625)
    assert book.words() == (
        "3 parts were charged, the heaviest 50 % of epsilon, beside 12.5 % of epsilon that everybody was charged;"
        " left for everybody: one release of epsilon 0.375"
    )
    page = book._repr_html_()
    assert "parts by day (date); each row is in one part; 3 parts were charged" in page
    assert "2026-11-15, 2026-11-16: " in page
    charge = book.history()[2]
    assert set(charge["parts"]) == {"2026-11-15", "2026-11-16"}
    assert charge["tally"]["parts"] == 3


def test_without_parts_the_share_of_the_budget_is_told(opened: Opener) -> None:
    ledger = opened()
    ledger.charge(Pure(Fraction(1, 4)), purpose="count")
    assert ledger.words() == "25 % of epsilon was spent; left for everybody: one release of epsilon 0.75"


def test_everything_as_one_event_counts_a_release_as_often_as_the_part_that_had_it_most_often(book: Ledger) -> None:
    for day in ("2026-11-14", "2026-11-15", "2026-11-15", "2026-11-16"):
        book.charge(Pure(Fraction(1, 8)), purpose="a day", parts=[day])
    book.charge(Pure(Fraction(1, 4)), purpose="everybody")
    assert book.fixed_sequence().epsilon == pytest.approx(0.5)


def test_a_recorded_release_leaves_the_sums_as_they_are(book: Ledger) -> None:
    receipt = book.charge(Pure(Fraction(1, 8)), purpose="a day", parts=["2026-11-14"], request="r")
    before = book.tally()
    book.record(receipt, 7, keep=True)
    assert book.tally() == before
    recorded = book.recall("r")
    assert recorded is not None
    assert recorded.receipt.parts == ("2026-11-14",)
    assert recorded.receipt.to_dict()["parts"] == ["2026-11-14"]


def test_two_who_share_a_ledger_see_each_other_s_parts(opened: Opener) -> None:
    one, two = opened(unit=rows(), parts=DAYS), opened(unit=rows(), parts=DAYS)
    one.charge(Pure(Fraction(3, 4)), purpose="a day", parts=["2026-11-14"])
    with pytest.raises(BudgetExceededError):
        two.charge(Pure(Fraction(1, 2)), purpose="a day", parts=["2026-11-14"])
    two.charge(Pure(Fraction(1, 2)), purpose="a day", parts=["2026-11-15"])
    assert one.tally() == two.tally()


def test_people_of_one_hospital_each_are_charged_apart(opened: Opener) -> None:
    ledger = opened(unit=user("patient"), parts=Parts("hospital", "text", "people"))
    for label in ("north", "south", "Süd 患者", "a ", "a"):
        ledger.charge(Pure(1), purpose="all of it", parts=[label])
    assert ledger.verify().ok


TAMPERING = {
    "a listing taken away": "DELETE FROM ledger_parts WHERE part = :part",
    "a listing under another part": "UPDATE ledger_parts SET part = :other WHERE part = :part",
    "a listing of another charge": "UPDATE ledger_parts SET sequence = 2 WHERE part = :part",
    "a listing too many": "INSERT INTO ledger_parts (part, sequence) VALUES (:other, 1)",
    "a listing of nothing": "INSERT INTO ledger_parts (part, sequence) VALUES (:other, 77)",
}


@pytest.mark.parametrize("statement", TAMPERING.values(), ids=TAMPERING.keys())
def test_verify_compares_the_list_of_parts_with_the_chain(
    book: Ledger, where: str, tampering: Callable[..., None], statement: str
) -> None:
    book.charge(Pure(Fraction(1, 8)), purpose="a day", parts=["2026-11-14"])
    book.charge(Pure(Fraction(1, 8)), purpose="everybody")
    assert verify(where).ok
    values = {"part": key_of("2026-11-14"), "other": key_of("2026-11-15")}
    tampering(statement, **{name: value for name, value in values.items() if f":{name}" in statement})
    assert not verify(where).ok
    with pytest.raises(LedgerDamagedError, match="not found under each of its parts"):
        Ledger.open(where)


def test_a_charge_found_under_a_part_it_does_not_name_decides_nothing(
    book: Ledger, tampering: Callable[..., None]
) -> None:
    book.charge(Pure(Fraction(1, 8)), purpose="a day", parts=["2026-11-14"])
    tampering("UPDATE ledger_parts SET part = :other", other=key_of("2026-11-15"))
    with pytest.raises(LedgerDamagedError, match="a part that it does not name"):
        book.charge(Pure(Fraction(1, 8)), purpose="a day", parts=["2026-11-15"])


@pytest.mark.parametrize("change", ["sum", "tally", "label"])
def test_verify_finds_a_rewritten_sum_of_a_part(
    book: Ledger, where: str, tampering: Callable[..., None], change: str
) -> None:
    from defocus.ledger.entries import canonical, digest  # noqa: PLC0415  # as a forger would

    book.charge(Pure(Fraction(1, 8)), purpose="a day", parts=["2026-11-14"])
    fields = json.loads(list(book.entries())[-1].body)
    if change == "sum":
        fields["parts"]["2026-11-14"][1] = 0.0625
    elif change == "tally":
        fields["tally"]["heaviest"][1] = 0.0625
    else:
        fields["parts"] = {"2026-11-15": fields["parts"]["2026-11-14"]}
    body = canonical(fields)
    tampering(
        "UPDATE ledger_entries SET body = :body, hash = :hash WHERE sequence = 1",
        "UPDATE ledger_head SET hash = :hash",
        body=body,
        hash=digest(body),
    )
    assert not verify(where).ok


@pytest.mark.parametrize("statement", ["DELETE FROM ledger_parts", "UPDATE ledger_parts SET sequence = 9"])
def test_triggers_keep_accidents_away_from_the_list_of_parts(book: Ledger, where: str, statement: str) -> None:
    book.charge(Pure(Fraction(1, 8)), purpose="a day", parts=["2026-11-14"])
    with pytest.raises(LedgerDamagedError, match="append-only"), book._chain.store.connection(write=True) as connection:
        connection.exec_driver_sql(statement)
    with pytest.raises(LedgerDamagedError, match="append-only"), book._chain.store.connection(write=True) as connection:
        connection.exec_driver_sql("INSERT INTO ledger_parts (part, sequence) VALUES ('x', 9)")
    assert verify(where).ok


def test_missing_triggers_of_the_list_are_told(book: Ledger, where: str) -> None:
    on = " ON ledger_parts" if "://" in where else ""
    with book._chain.store.connection(write=True) as connection:
        connection.exec_driver_sql(f"DROP TRIGGER ledger_parts_delete{on}")
    assert "ledger_parts_delete" in str(verify(where))


def test_a_list_of_parts_that_is_gone_is_told_and_nothing_is_charged(
    book: Ledger, where: str, tampering: Callable[..., None]
) -> None:
    book.charge(Pure(Fraction(1, 8)), purpose="a day", parts=["2026-11-14"])
    book.close()
    del tampering
    with Ledger.open(where) as ledger, ledger._chain.store.connection(write=True) as connection:
        connection.exec_driver_sql("DROP TABLE ledger_parts")
    with pytest.raises(LedgerDamagedError), Ledger.open(where) as ledger:
        ledger.charge(Pure(Fraction(1, 8)), purpose="a day", parts=["2026-11-14"])
    assert not verify(where).ok

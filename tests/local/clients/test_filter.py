"""What a device lets through: at most so many different values in a period, whatever comes and in whatever order."""

import itertools
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import defocus as dp
from defocus.errors import BudgetExceededError, InvalidParameterError, UnreadableDescriptionError
from defocus.local import ContributionFilter

DAYS = ("2026-11-14", "2026-11-15", "2026-11-16")


@given(st.lists(st.tuples(st.integers(0, 5), st.sampled_from(DAYS), st.booleans())), st.integers(1, 3))
def test_no_day_sees_more_values_than_are_allowed_nor_one_twice(seen: list[Any], at_most: int) -> None:
    device, sent = ContributionFilter(at_most), list[tuple[str, int]]()
    for page, day, restarted in seen:
        if restarted:
            device = ContributionFilter.from_json(device.to_json())
        if device.sends(page, day):
            sent.append((day, page))
    assert len(set(sent)) == len(sent)
    assert all(len(list(group)) <= at_most for _, group in itertools.groupby(sorted(sent), key=lambda one: one[0]))


@given(st.lists(st.integers(0, 5)), st.integers(1, 3))
def test_with_decoys_every_device_sends_equally_many_messages(pages: list[int], at_most: int) -> None:
    device = ContributionFilter(at_most)
    assert sum(device.sends(page, DAYS[0]) for page in pages) + device.decoys(DAYS[0]) == at_most


def test_a_day_that_has_passed_does_not_come_back() -> None:
    device = ContributionFilter(2)
    assert device.sends("a", DAYS[1])
    assert not device.sends("b", DAYS[0])  # the clock was set back
    assert device.decoys(DAYS[0]) == 0
    assert device.sends("b", DAYS[1])
    assert not device.sends("c", DAYS[1])


@pytest.mark.parametrize("at_most", [0, -1, 1.5, True, "2", None])
def test_a_filter_lets_at_least_one_value_through(at_most: Any) -> None:
    with pytest.raises(InvalidParameterError):
        ContributionFilter(at_most)


@pytest.mark.parametrize("period", ["", None, 7])
def test_a_period_needs_a_label(period: Any) -> None:
    with pytest.raises(InvalidParameterError, match="label"):
        ContributionFilter(1).sends("a", period)


BROKEN = (
    "",
    "{}",
    "[]",
    '{"at_most": 0, "period": "", "sent": []}',
    '{"at_most": 1, "period": 3, "sent": []}',
    '{"at_most": 1, "period": "", "sent": [1]}',
)


@pytest.mark.parametrize("text", BROKEN)
def test_what_is_not_a_filter_is_refused(text: str) -> None:
    with pytest.raises(UnreadableDescriptionError, match="filter"):
        ContributionFilter.from_json(text)


def test_what_devices_let_through_is_a_table_with_a_budget_for_each_day(tmp_path: Path) -> None:
    rows: list[tuple[int | None, str]] = []
    for person in range(300):
        device = ContributionFilter(3)
        pages = [(person + i) % 7 for i in range(5)]
        rows += [(page, DAYS[0]) for page in pages if device.sends(page, DAYS[0])]
        rows += [(None, DAYS[0])] * device.decoys(DAYS[0])
    table = pa.table({"page": [page for page, _ in rows], "day": [day for _, day in rows]})
    unit = dp.rows(per_person=3, period="day")
    with dp.open(table, unit=unit, budget=dp.Budget(1), ledger=tmp_path / "l", name="views") as views:
        assert "all rows of one person in one day, at most 3" in str(views)
        question = views.part(DAYS[0]).group_by("page", keys=range(7)).agg(n=dp.count())
        assert question.preview(epsilon=1).columns[0].error == pytest.approx(3 * 2**0.5, rel=1e-3)
        assert len(question.release(epsilon=0.9)) == 7
        with pytest.raises(BudgetExceededError):
            question.release(epsilon=0.9)
        assert views.part(DAYS[1]).remaining().epsilon == pytest.approx(1)


@pytest.mark.parametrize("how", [{"period": "day"}, {"per_person": 2, "period": ""},
                                 {"per_person": 2, "period": "day", "replace": True}])  # fmt: skip
def test_rows_in_a_period_need_a_number_for_each_person(how: Any) -> None:
    with pytest.raises(InvalidParameterError):
        dp.rows(**how)

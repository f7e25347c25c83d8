import math
from typing import Any

import numpy as np
import pytest

from defocus.audit.runs import Raised, batched, run
from defocus.errors import InvalidParameterError


def test_each_run_calls_the_mechanism_once_and_takes_turns() -> None:
    seen: list[int] = []
    made = run(seen.append, (1, 2), 3, deadline=math.inf)
    assert made is not None
    assert seen == [1, 2, 1, 2, 1, 2]
    assert made[0] == [None] * 3
    assert (made[2] >= 0).all()


def test_an_exception_is_an_output_with_its_type_and_text() -> None:
    def fails(data: int) -> float:
        return 1 / data

    made = run(fails, (0, 1), 2, deadline=math.inf)
    assert made is not None
    assert made[0] == [Raised("ZeroDivisionError", "division by zero")] * 2
    assert made[1] == [1.0, 1.0]


def test_an_exception_that_cannot_be_printed_is_still_an_output() -> None:
    class Shy(Exception):  # noqa: N818  # named for what it does
        def __str__(self) -> str:
            raise ValueError

    def fails(_data: Any) -> None:
        raise Shy

    made = run(fails, (0, 1), 1, deadline=math.inf)
    assert made is not None
    assert made[0] == [Raised("Shy", "(unprintable)")]


def test_a_person_can_still_interrupt() -> None:
    def stops(_data: Any) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(stops, (0, 1), 1, deadline=math.inf)


def test_a_batch_makes_all_outputs_at_once() -> None:
    made = run(batched(lambda data, n: np.full(n, data)), (1, 2), 4, deadline=math.inf)
    assert made is not None
    assert made[0].tolist() == [1] * 4
    assert made[2] is None


def test_a_batch_that_raises_is_repeated_one_by_one() -> None:
    calls = iter(range(1000))

    def sometimes(data: int, n: int) -> list[int]:
        if n > 1 or next(calls) % 2:
            raise ValueError(data)
        return [data]

    made = run(batched(sometimes), (7, 8), 4, deadline=math.inf)
    assert made is not None
    assert made[0] == [7, Raised("ValueError", "7"), 7, Raised("ValueError", "7")]


@pytest.mark.parametrize("wrong", [np.float64(1), np.array(1.0), [1], "ab", None, {1: 2, 3: 4}, np.zeros(3)])
def test_a_batch_of_the_wrong_length_is_refused(wrong: Any) -> None:
    with pytest.raises(InvalidParameterError, match=r"(?s)asked for 2 outputs.*To fix: return an array or a list"):
        run(batched(lambda _data, _n: wrong), (0, 1), 2, deadline=math.inf)


def test_running_stops_at_the_deadline() -> None:
    assert run(lambda data: data, (0, 1), 10_000, deadline=-math.inf) is None

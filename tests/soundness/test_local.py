"""The local room: whatever a person's value is, a device sends a report of the same kind and length, or nobody does."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.soundness.odd_rows import VALUES
from tests.soundness.watching import Difference, attempt, compared, no_differences

from defocus import local
from defocus.local.designs.registry import NAMES, NUMERIC_NAMES

LABELS = ["a", "b", "c"]


def asked() -> Mapping[str, tuple[Any, Any]]:
    """Every design that answers for every value, and an ordinary value of it."""
    found: dict[str, tuple[Any, Any]] = {}
    for name in NAMES:
        found[f"oracle({name!r}, texts)"] = (local.oracle(name, LABELS, 1, outside="other"), "a")
        found[f"oracle({name!r}, numbers)"] = (local.oracle(name, 4, 1, outside="other"), 2)
    for name in NUMERIC_NAMES:
        found[f"mean({name!r})"] = (local.mean(name, 0, 1, 1), 0.5)
    return found


EVERY = asked()


def _form(message: Any) -> Any:
    """All of a report that may not depend on its value."""
    if isinstance(message, local.Reports):
        return [type(message).__name__, str(message.payload.dtype), message.payload.shape]
    if isinstance(message, np.ndarray):
        return [str(message.dtype), message.shape]
    return [type(message).__name__, len(message) if isinstance(message, bytes) else None]


def reported(question: Any, usual: Any) -> Callable[[Path, Sequence[Any]], Any]:
    """One person's report, in every way that a device can make it; an odd value stands in place of the usual one."""

    def drive(home: Path, odd: Sequence[Any]) -> Any:
        del home
        value = odd[0] if odd else usual
        client = question.client()
        memory = attempt(lambda: local.Memory(question).to_json() and "made", refused="has no memory")
        found = [
            attempt(lambda: _form(client.report(value))),
            attempt(lambda: _form(client.report(value, nonce=True))),
            attempt(lambda: _form(client.report_json(value))),
            attempt(lambda: _form(question.encode([usual, value, usual]))),
            memory,
        ]
        if memory[0] == "result":
            found += [attempt(lambda: _form(local.Memory(question).report(value)))]
            found += [attempt(lambda: _form(local.Memory(question).payload(value)))]
        return found

    return drive


def tried(name: str) -> list[Difference]:
    question, usual = EVERY[name]
    odds = {odd: make() for odd, make in VALUES.items()}
    return compared(f"local.{name}", reported(question, usual), odds, apart=True)


@pytest.mark.parametrize("name", [pytest.param(n, marks=[pytest.mark.slow] if "numbers" in n else []) for n in EVERY])
def test_no_value_is_told_by_a_report(name: str) -> None:
    no_differences(tried(name))


def test_no_value_is_told_by_surveys() -> None:
    survey = local.attributes({"k": LABELS, "n": 4}, 1, outside="other")

    def drive(home: Path, odd: Sequence[Any]) -> Any:
        del home
        k, n = (odd[0], odd[0]) if odd else ("a", 1)
        return attempt(
            lambda: {str(key): _form(each) for key, each in survey.encode({"k": ["a", k], "n": [1, n]}).reports.items()}
        )

    no_differences(compared("local.attributes", drive, {odd: make() for odd, make in VALUES.items()}, apart=True))


def test_no_value_is_told_by_heavy_hitters() -> None:
    protocol = local.HeavyHitters("abc", 2, 1, step=1)

    def drive(home: Path, odd: Sequence[Any]) -> Any:
        del home
        value = odd[0] if odd else "ab"

        def device() -> Any:
            made = protocol.device(value)
            return type(made).__name__

        group = protocol.oracle(0, [""])
        return [
            attempt(device),
            attempt(lambda: _form(protocol.client(0, group, ["ab", value]))),
            attempt(
                lambda: (
                    type(local.heavy_hitters(["ab", "ab", value], alphabet="abc", length=2, epsilon=1, step=1)).__name__
                )
            ),
        ]

    no_differences(compared("local.HeavyHitters", drive, {odd: make() for odd, make in VALUES.items()}, apart=True))


@pytest.mark.parametrize("method", ["changes", "each"])
def test_no_value_is_told_by_the_messages_of_one_that_changes(method: Any) -> None:
    question = local.changing(LABELS, epochs=3, changes=1, epsilon=1, method=method)

    def drive(home: Path, odd: Sequence[Any]) -> Any:
        del home
        device = local.ChangingMemory(question)
        value = odd[0] if odd else "b"
        return [attempt(lambda: [_form(device.report(each)) for each in ("a", value, "a")])]

    no_differences(compared("local.ChangingMemory", drive, {odd: make() for odd, make in VALUES.items()}, apart=True))


MESSAGES: Mapping[str, tuple[Any, Any]] = {
    "MultiMessageSum": (local.shuffling.MultiMessageSum(local.Interval(0, 1), 60, 3, 0.01), 0.5),
    "MultiMessageHistogram": (
        local.shuffling.MultiMessageHistogram(local.Categories.of(LABELS, outside="other"), 60, 3, 0.01),
        "a",
    ),
}


@pytest.mark.parametrize("name", MESSAGES)
def test_no_value_is_told_by_shuffled_messages(name: str) -> None:
    protocol, usual = MESSAGES[name]

    def drive(home: Path, odd: Sequence[Any]) -> Any:
        del home
        value = odd[0] if odd else usual
        return [
            attempt(lambda: sorted({len(each) for each in protocol.client().report(value)})),
            attempt(lambda: type(protocol.encode([usual] * 59 + [value])).__name__),
        ]

    no_differences(
        compared(f"local.shuffling.{name}", drive, {odd: make() for odd, make in VALUES.items()}, apart=True)
    )

"""Fewer cases of tests that have many, where somebody waits: the first, the last, and some at equal distances."""

from typing import TypeVar

import pytest

__all__ = ["cases_of_tests", "left_out_of"]

T = TypeVar("T")


def cases_of_tests(items: list[pytest.Item]) -> list[list[pytest.Item]]:
    """The tests, each with all its cases."""
    tests: dict[str, list[pytest.Item]] = {}
    for item in items:
        tests.setdefault(item.nodeid.partition("[")[0], []).append(item)
    return list(tests.values())


def left_out_of(cases: list[T], most: int) -> list[T]:
    """All but ``most`` of the cases; the first and the last stay, and others at equal distances."""
    if len(cases) <= most:
        return []
    kept = {number * (len(cases) - 1) // (most - 1) for number in range(most)}
    return [case for number, case in enumerate(cases) if number not in kept]

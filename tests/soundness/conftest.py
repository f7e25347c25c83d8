"""One machine for each file of tests, and the number of what was tried at the end."""

from collections.abc import Iterator

import pytest
from tests.soundness.watching import TRIED, machine


@pytest.fixture(autouse=True, scope="module")
def held() -> Iterator[None]:
    """Everything that is random is held still."""
    with machine():
        yield


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say how much was tried, where it was tried in this process."""
    if TRIED:
        terminalreporter.write_line(
            f"soundness: {len(TRIED)} entry points, {sum(TRIED.values())} pairs of entry point and odd row"
        )

"""Running the command inside the test process."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, final

import pytest

from defocus.cli import main


@final
@dataclass(frozen=True, slots=True)
class Ran:
    """What a command left behind."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The output as JSON, with the constants that strict JSON does not have refused."""
        return json.loads(self.out, parse_constant=pytest.fail)


@pytest.fixture
def defocus(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Callable[..., Ran]:
    """Run ``defocus`` with these words on a terminal of 80 columns without colour."""
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("TERM", "dumb")

    def run(*words: object) -> Ran:
        code = main([str(word) for word in words])
        captured = capsys.readouterr()
        return Ran(code, captured.out, captured.err)

    return run

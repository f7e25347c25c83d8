"""Running the command inside the test process."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
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


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a table and its dataset file, which is where commands are typed."""
    rng = np.random.default_rng(5)
    visits = {
        "patient": rng.integers(0, 300, 2000),
        "ward": rng.choice(["A", "B"], 2000),
        "days": rng.gamma(2, 3, 2000),
    }
    pq.write_table(pa.table(visits), tmp_path / "visits.parquet")
    (tmp_path / "defocus.toml").write_text(
        'name = "visits"\ndata = "visits.parquet"\n[unit]\ncolumn = "patient"\n[budget]\nepsilon = 2\ndelta = 1e-6\n'
        '[columns.days]\nlow = 0\nhigh = 30\n[columns.ward]\nvalues = ["A", "B"]\n',
        encoding="utf-8",
    )
    monkeypatch.chdir(tmp_path)
    return tmp_path

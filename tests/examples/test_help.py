"""Examples that take a file tell so, and do not take --help for its name."""

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
TAKE_A_FILE = [path for path in sorted(EXAMPLES.glob("*.py")) if "argparse" in path.read_text("utf-8")]


def test_no_example_reads_its_arguments_by_place() -> None:
    assert len(TAKE_A_FILE) == 6
    assert not [path.name for path in EXAMPLES.glob("*.py") if "sys.argv" in path.read_text("utf-8")]


@pytest.mark.slow
@pytest.mark.parametrize("path", TAKE_A_FILE, ids=lambda path: path.stem)
def test_help_is_help(path: Path, tmp_path: Path) -> None:
    ran = subprocess.run(  # noqa: S603 - our own example
        [sys.executable, str(path), "--help"], capture_output=True, text=True, cwd=tmp_path, check=False
    )
    assert ran.returncode == 0
    assert "usage:" in ran.stdout
    assert not list(tmp_path.iterdir())

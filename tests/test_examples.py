"""What the examples of the reference begin with leaves nothing behind."""

import subprocess
import sys
from pathlib import Path


def test_a_folder_is_there_until_python_ends() -> None:
    code = "from defocus import examples; home = examples.folder(); (home / 'a').touch(); print(home, home.is_dir())"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout  # noqa: S603 - our own interpreter
    home, there = said.split()
    assert there == "True"
    assert not Path(home).exists()

"""Every notebook of the documentation runs, from its first cell to its last, and shows what it showed to its author."""

import json
import re
import tempfile
from pathlib import Path
from typing import Any

import pytest
from tests.docs.loading import ROOT, loaded

NOTEBOOKS = loaded(ROOT / "scripts" / "notebooks.py")
PATHS = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))
NAMES = [path.stem for path in PATHS]


def read(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.read_text("utf-8"))
    return found


@pytest.mark.parametrize("path", PATHS, ids=NAMES)
def test_every_cell_runs(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    NOTEBOOKS.execute(read(path))


@pytest.mark.parametrize("path", PATHS, ids=NAMES)
def test_outputs_are_stored_and_say_nothing_about_the_machine(path: Path) -> None:
    cells = [cell for cell in read(path)["cells"] if cell["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in cells] == list(range(1, len(cells) + 1))
    assert sum(bool(cell["outputs"]) for cell in cells) >= 5
    text = re.sub(r'"image/png": "[^"]+"', "", path.read_text("utf-8"))
    assert not re.search(r"/tmp|/home|/root|root,| at 0x", text)  # noqa: S108 -- none is used


def test_there_are_four_notebooks_in_the_navigation() -> None:
    named = re.findall(r"notebooks/([a-z-]+)\.md", (ROOT / "mkdocs.yml").read_text("utf-8"))
    assert sorted(named) == NAMES
    assert len(NAMES) == 4


def test_a_cell_shows_what_it_prints_and_its_last_value_and_a_failing_one_raises() -> None:
    cell = {"cell_type": "code", "source": ["print(1)\n", "x = 2\n", "x + 1"], "outputs": []}
    notebook = {"cells": [{"cell_type": "markdown", "source": ["# Title"]}, cell]}
    NOTEBOOKS.execute(notebook, store=True)
    page = NOTEBOOKS.page(notebook, "a.ipynb")
    assert page.startswith("# Title\n\n[Download this notebook](a.ipynb)\n\n```python\nprint(1)\n")
    assert page.endswith("```text\n1\n```\n\n```text\n3\n```\n")
    with pytest.raises(ZeroDivisionError):
        NOTEBOOKS.execute({"cells": [cell | {"source": ["1 / 0"]}]})

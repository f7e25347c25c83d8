"""The site builds, shows every public name, and loads nothing from elsewhere."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.docs.loading import ROOT
from tests.docs.test_reference import PAGES
from tests.waiting import HANGS


@pytest.mark.slow
def test_the_site_builds_strictly_and_loads_nothing_from_elsewhere(tmp_path: Path) -> None:
    built = subprocess.run(  # noqa: S603 # our own site
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path / "site")],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=HANGS,
        check=False,
    )
    assert built.returncode == 0, built.stderr
    pages = list((tmp_path / "site").rglob("*.html"))
    assert len(pages) > 10
    for room, names in PAGES.items():
        shown = (tmp_path / "site" / "reference" / f"{room.removeprefix('defocus.')}.html").read_text("utf-8")
        assert not {name for name in names if f'id="{room}.{name}"' not in shown}, room
    for page in pages:
        loaded = re.findall(
            r"<(?:script|link|img)[^>]*(?:src|href)=\"?https?://[^\s\">]+", page.read_text(encoding="utf-8")
        )
        assert not loaded, f"{page.name} loads {loaded}"

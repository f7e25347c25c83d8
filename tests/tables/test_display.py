"""Tables and questions on a page: public facts only, and no name acts."""

from collections.abc import Iterator
from contextlib import contextmanager
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.answers.making import HOSTILE

import defocus as dp

SECRET = "only in the data"  # noqa: S105
EVIL = "<b onclick='x'>&evil</b>"


class Page(HTMLParser):
    """Tags, and the scopes of heads."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.scopes: list[str | None] = []
        self.words = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert not [name for name, _ in attrs if name.startswith("on")]
        self.tags.add(tag)
        if tag == "th":
            self.scopes.append(dict(attrs).get("scope"))

    def handle_data(self, data: str) -> None:
        self.words += f"{data} "


@pytest.fixture
def table(tmp_path: Path) -> Iterator[Any]:
    data = pa.table(
        {"person": range(50), "ward": [SECRET] * 50, EVIL: [SECRET] * 50, "days": [12345.0] * 50, "age": [40] * 50}
    )
    made = dp.open(data, unit=dp.user("person"), budget=dp.Budget(3, 1e-6), ledger=tmp_path / "a", name=EVIL)
    with made as opened:
        yield opened.declare(**{EVIL: HOSTILE, "days": (0, 30), "ward": [f"w{i:03d}" for i in range(100)]})


def test_a_table_shows_its_columns_with_what_is_declared_and_the_budget(table: Any) -> None:
    page = Page(table.bound(rows=5).where("days > 1")._repr_html_())
    for words in ("names whom it is about", "from 1 to 30", "w000, w001", "and 88 more", "at most 5 rows", EVIL):
        assert words in page.words
    assert "one release of epsilon 3" in page.words
    assert "days > 1" in page.words
    assert page.tags == {"div", "table", "caption", "thead", "tbody", "tr", "th", "td", "br"} - {"br"}
    assert set(page.scopes) == {"col", "row"}


def test_groups_and_questions_show_what_is_asked_and_that_it_is_free_so_far(table: Any) -> None:
    groups = table.group_by(EVIL)
    asked = groups.agg(n=dp.count())
    found = table.group_by("age", keys=None).agg(n=dp.count())
    select = table.sql_query(f'SELECT ward, COUNT(*) AS "{EVIL}" FROM "{EVIL}" GROUP BY ward')  # noqa: S608
    pages = [Page(each._repr_html_()) for each in (groups, asked, found, select)]
    for page in pages:
        assert "nothing was charged" in page.words
        assert "one release of epsilon 3" in page.words
        assert page.tags <= {"div", "table", "tr", "th", "td", "p", "br"}
    assert "and 5 more" in pages[0].words
    assert "\x1b" not in pages[0].words
    assert "number of rows as n" in pages[1].words
    assert "found privately, which needs a delta" in pages[2].words
    assert f'SELECT ward, COUNT(*) AS "{EVIL}"' in pages[3].words


def test_no_private_value_is_on_any_page(table: Any) -> None:
    asked = table.group_by("ward").agg(n=dp.count(), m=dp.mean("days"))
    for each in (table, table.group_by("ward"), asked, asked.preview(epsilon=1), table.ledger):
        text = each._repr_html_()
        assert SECRET not in text
        assert "12345" not in text


def test_wide_tables_are_cut_and_that_is_said(tmp_path: Path) -> None:
    data = pa.table({"person": [1], **{f"c{i}": [0] for i in range(300)}})
    with dp.open(data, unit=dp.user("person"), budget=dp.Budget(1), ledger=tmp_path / "a", name="wide") as table:
        assert "101 more columns are not shown" in table._repr_html_()


def test_a_release_shows_one_bar_and_tells_it_how_far_the_engine_is(
    table: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[float] = []
    bars: list[object] = []

    @contextmanager
    def bar(progress: object, doing: str = "computing") -> Iterator[Any]:
        bars.append((progress, doing))
        yield told.append

    def run(engine: Any, select: Any, *, progress: Any = None) -> Any:
        if progress is not None:
            progress(50.0)
        return ran(engine, select, progress=progress)

    ran = type(table.rows.engine).run
    monkeypatch.setattr(type(table.rows.engine), "run", run)
    for place in ("tables.query", "release.paid_computation"):
        monkeypatch.setattr(f"defocus.{place}.shown", bar)
    table.bound(rows=1).agg(n=dp.count()).release(epsilon=1)
    assert bars == [(None, "computing")]
    assert 50.0 in told

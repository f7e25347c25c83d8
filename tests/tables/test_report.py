import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from tests.answers.making import HOSTILE, column, opened
from tests.answers.test_plots import contrast
from tests.tables.answering import answered

from defocus.errors import InvalidParameterError
from defocus.privacy.events import DiscreteLaplace
from defocus.tables.report import page, report


class Tags(HTMLParser):
    """Every opening tag of a page, and whether each is closed in order."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[str] = []
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append(tag)
        assert not any(name.startswith("on") for name, _ in attrs)
        if tag not in {"meta", "img", "br", "source"}:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_one_file_holds_tables_pictures_words_and_the_budget(tmp_path: Path) -> None:
    answer = answered(tmp_path)
    with opened(tmp_path) as ledger:
        for i in range(3):
            ledger.charge(DiscreteLaplace(20, 1), purpose=f"more {i}", who="Ada")
        where = report([answer, answer.non_negative()], tmp_path / "report.html", title="Ward <visits>", ledger=ledger)
    text = where.read_text("utf-8")
    for words in ("Ward &lt;visits&gt;", "cardiology", "by at most 1.649", "Where the budget went", "more 2", "biased"):
        assert words in text
    assert text.count(">5e-7</td>") == 4, "a small delta that is left is not written as zero"
    assert text.count("data:image/svg+xml;base64,") == 5, "two widths of each answer, and the budget"
    tags = Tags()
    tags.feed(text)
    assert not tags.open
    assert not {"script", "link", "iframe"} & set(tags.seen)


def test_no_number_is_broken_into_two_lines(tmp_path: Path) -> None:
    text = page(answered(tmp_path), title="visits")
    cells = re.findall(r'<td style="([^"]*)">([^<]*)</td>', text[: text.index("<details")])
    numbers = [style for style, shown in cells if re.search(r"\d", shown)]
    assert numbers
    assert all("white-space:nowrap" in style for style in numbers)


def test_hostile_texts_stay_text_and_nothing_is_loaded(tmp_path: Path) -> None:
    answer = answered(tmp_path, {"<b>": HOSTILE}, [column(values=range(len(HOSTILE)))])
    text = page(answer, title="<script>alert(1)</script>")
    tags = Tags()
    tags.feed(text)
    assert not {"script", "b"} & set(tags.seen)
    assert re.findall(r"(?:src|srcset|href)=['\"]?(.{5})", text) == ["data:", "data:"]


@pytest.mark.parametrize("answers", [[], [5], "x"])
def test_a_report_of_nothing_is_refused(answers: object, tmp_path: Path) -> None:
    with pytest.raises(InvalidParameterError, match="made of answers"):
        report(answers, tmp_path / "r.html", title="t")  # type: ignore[arg-type]


def test_a_folder_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidParameterError, match="could not be written"):
        report(answered(tmp_path), tmp_path / "no" / "r.html", title="t")


def colours(style: str) -> dict[str, str]:
    found = {name: f"#{value}" for name, value in re.findall(r"--(\w+):#([0-9a-f]+)", style)}
    return {
        name: value if len(value) == 7 else "#" + "".join(2 * digit for digit in value[1:])
        for name, value in found.items()
    }


def test_letters_are_seen_on_light_and_dark_pages_and_in_print(tmp_path: Path) -> None:
    text = page(answered(tmp_path), title="visits")
    papers = [colours(block) for block in re.findall(r":root\{([^}]*)\}", text)]
    assert len(papers) == 3
    assert "@media(prefers-color-scheme:dark)" in text
    assert "@media print" in text
    for paper in papers:
        assert contrast(paper["ink"], paper["paper"]) >= 7
        assert contrast(paper["accent"], paper["paper"]) >= 4.5


def test_tables_have_captions_and_heads_and_scroll(tmp_path: Path) -> None:
    text = page(answered(tmp_path), title="visits")
    heads = re.findall(r"<th( [^>]*|)>", text)
    assert heads
    assert all('scope="' in head for head in heads)
    assert '<div style="overflow-x:auto"><table><caption' in text
    assert text.count('scope="row"') > 3
    (image,) = re.findall(r'<img alt="([^"]*)"', text)
    assert "surgery: visits 1 041 (1 013 to 1 069)" in image

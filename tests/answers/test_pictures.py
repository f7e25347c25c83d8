import base64
import io
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import numpy as np
import pytest
from matplotlib.image import imread
from PIL import Image
from tests.answers.making import HOSTILE, column, released

from defocus.answers.pictures import DARK, LIGHT
from defocus.answers.plots import blank

SVG = "{http://www.w3.org/2000/svg}"


def parsed(text: str) -> Any:
    return ET.fromstring(text)  # noqa: S314  # our own


def test_an_svg_tells_its_numbers_and_loads_nothing(tmp_path: Path) -> None:
    figure = released(tmp_path, {"ward": ["surgery", "cardiology", "oncology"]}, column()).plot()
    figure.savefig(tmp_path / "a.svg")
    text = (tmp_path / "a.svg").read_text("utf-8")
    root = parsed(text)
    assert root.attrib["role"] == "img"
    named = {part.attrib["id"]: part.text for part in root if part.tag in {f"{SVG}title", f"{SVG}desc"}}
    assert root.attrib["aria-labelledby"].split() == list(named)
    assert named["defocus-title"] == "visits"
    for number in ("surgery: visits 1 041 (1 013 to 1 069)", "oncology: visits 220 (192 to 248)"):
        assert number in str(named["defocus-desc"])
    hosts = set(re.findall(r"https?://[^\"' ]+", text))
    assert hosts == {"http://www.w3.org/1999/xlink", "http://www.w3.org/2000/svg"}  # names, which nothing loads
    assert not re.search(r"<script|@import|url\(http|href=\"(?!#)", text)
    again = released(tmp_path, {"ward": ["surgery", "cardiology", "oncology"]}, column()).plot()
    assert text == again.svg()


def test_an_svg_follows_the_page_it_is_on(tmp_path: Path) -> None:
    figure = released(tmp_path, {"ward": ["a", "b", "c"]}, column()).plot()
    text = figure.svg()
    style = re.search(r"<style>(.*?)</style>", text)
    assert style is not None
    assert style[1].startswith("@media (prefers-color-scheme: dark)")
    used = set(re.findall(r"(?:fill|stroke)[:=] ?\"?(#[0-9a-f]{6})", text[style.end() :]))
    ours = {colour for name, colour in LIGHT.items() if name != "pale"}
    assert used - {"#1f77b4"} == {*ours, "#2a7f76"}  # no other colour but that of caps, which have no inside
    for name in LIGHT:
        assert DARK[name] in style[1]
    dark = released(tmp_path, {"ward": ["a", "b", "c"]}, column()).plot(dark=True).svg()
    assert "prefers-color-scheme" not in dark
    assert DARK["paper"] in dark
    assert LIGHT["ink"] not in dark


@pytest.mark.parametrize("dark", [False, True])
def test_a_png_has_the_paper_asked_for_and_its_numbers_in_its_metadata(tmp_path: Path, dark: bool) -> None:
    figure = released(tmp_path, {"ward": ["a", "b", "c"]}, column()).plot(dark=dark)
    figure.savefig(tmp_path / "a.png")
    figure.savefig(tmp_path / "a.pdf")
    assert imread(tmp_path / "a.png").shape[1] == 640
    corner = (255 * imread(tmp_path / "a.png")[0, 0, :3]).round().astype(int)
    assert "#{:02x}{:02x}{:02x}".format(*corner) == (DARK if dark else LIGHT)["paper"]
    with Image.open(tmp_path / "a.png") as image:
        assert "a: visits 1 041 (1 013 to 1 069)" in image.info["Description"]
    sink = io.BytesIO()
    figure.savefig(sink)
    assert sink.getvalue()[:4] == b"\x89PNG"


class Images(HTMLParser):
    """The attributes of all images of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[dict[str, str | None]] = []
        self.tags: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        if tag in {"img", "source"}:
            self.found.append(dict(attrs))


def test_hostile_names_are_text_in_svg_and_pages(tmp_path: Path) -> None:
    keys = {"<b>k</b>\x1b": HOSTILE}
    figure = released(tmp_path, keys, column('v" onload="x', range(len(HOSTILE)))).plot()
    root = parsed(figure.svg())
    assert {element.tag for element in root.iter()}.isdisjoint({f"{SVG}script", f"{SVG}b", "script", "b"})
    page = Images()
    page.feed(figure._repr_html_())
    assert page.tags == {"img"}
    (image,) = page.found
    assert set(image) == {"alt", "src"}
    assert '<script>alert(1)</script>: v" onload="x 0 (' in str(image["alt"])
    assert "\x1b" not in str(image["alt"])
    kind, data = str(image["src"]).split(",")
    assert kind == "data:image/svg+xml;base64"
    assert base64.b64decode(data).decode() == figure.svg()
    narrow = Images()
    narrow.feed(figure.tag(narrow=figure))
    assert [sorted(each) for each in narrow.found] == [["media", "srcset"], ["alt", "src"]]


def test_a_figure_that_nobody_described_tells_its_axes_and_lines() -> None:
    figure = blank(4, 3)
    axes = figure.add_subplot()
    axes.plot([0, 1, 2], [np.nan, 3, 5], label="risk $r$")
    axes.set(xlabel="n", ylabel="error")
    assert figure.told() == "error against n. risk $r$: from 3 at 1 to 5 at 2"
    assert "risk $r$" in figure.svg()


def test_many_entries_are_told_in_part_and_that_is_said(tmp_path: Path) -> None:
    figure = released(tmp_path, {"age": list(range(300))}, column(values=range(300))).plot()
    assert "200 of them not shown" in figure.told()
    assert "299: visits 299" in figure.told()

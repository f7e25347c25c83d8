"""Draw the floors of the house, and the way of one release through it: ``python scripts/architecture.py``.

Floors and rooms are read from the import contract in ``pyproject.toml``, so the picture cannot show another house.
"""

import re
import tomllib
from pathlib import Path
from xml.sax.saxutils import escape

__all__ = ["PICTURE", "drawn", "floors"]

ROOT = Path(__file__).parents[1]
PICTURE = ROOT / "docs" / "images" / "architecture.svg"
JOBS = {
    "cli": "how people reach it",
    "server": "people, roles, requests, decisions",
    "audit": "attacks what is below",
    "tables": "a room for each kind of data",
    "workloads": "queries · where rows are · results",
    "release": "charge, then sample, then show",
    "mechanisms": "value to noisy value · event to receipt",
    "privacy": "units, events, accountants, budgets",
    "noise": "exact integers from random bits",
    "errors": "every refusal, with its remedy",
}
WAY = ("question", "plan, preview: free", "charge the ledger", "exact integers", "+ discrete noise", "answer")
WIDTH, ROW, LEFT, RIGHT = 1000, 62, 20, 770


def floors() -> list[list[str]]:
    """The rooms of each floor that exist, the highest floor first."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"]["contracts"]
    layers = next(each["layers"] for each in contracts if each["type"] == "layers")
    every = [re.findall(r"[a-z_]+", layer) for layer in layers]
    there = [[room for room in layer if (ROOT / "src" / "defocus" / room).is_dir()] for layer in every]
    return [rooms for rooms in there if rooms]


def drawn() -> str:
    """The picture, as SVG that loads nothing and reads well on light and dark pages."""
    parts = [_text(LEFT, 24, "each floor imports only floors below it", "note")]
    house = floors()
    for place, rooms in enumerate(house):
        top = 40 + place * ROW
        job = next((JOBS[room] for room in rooms if room in JOBS), "")
        parts.append(_text(LEFT, top + 27, str(len(house) - 1 - place), "floor"))
        width = (440 - 8 * (len(rooms) - 1)) / len(rooms)
        for number, room in enumerate(rooms):
            x = LEFT + 24 + number * (width + 8)
            parts += [_box(x, top, width, 44, "room"), _text(x + width / 2, top + 27, room, "name")]
        parts.append(_text(LEFT + 478, top + 27, job, "note"))
    bottom = 40 + len(house) * ROW
    step = (bottom - 92) / (len(WAY) - 1)
    for place, words in enumerate(WAY):
        y = 40 + place * step
        kind = "charge" if words.startswith("charge") else "step"
        parts += [_box(RIGHT + 30, y, 180, 32, kind), _text(RIGHT + 120, y + 21, words, "name")]
        if place:
            parts.append(
                f'<path class="way" d="M{RIGHT + 120} {y - step + 32:.1f}V{y - 3:.1f}" marker-end="url(#tip)"/>'
            )
    parts.append(_text(RIGHT + 120, 24, "one release", "name"))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {bottom}" role="img" font-family="sans-serif">\n'
        "<title>The floors of Defocus, and the way of one release</title>\n"
        "<style>text{font-size:14px;fill:#26323a}.name{text-anchor:middle}.note,.floor{fill:#6b7a84;font-size:13px}"
        "rect{rx:6px;stroke:#00897b}.room{fill:#e0f2f1}.step{fill:#eceff1;stroke:#90a4ae}.charge{fill:#ffe0b2;stroke:#ef6c00}"
        ".page{fill:#fff;stroke:none}.way{stroke:#6b7a84;fill:none}</style>\n"
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="6" refY="4" markerWidth="8" markerHeight="8" orient="auto">'
        '<path d="M0 0L8 4L0 8z" fill="#6b7a84"/></marker></defs>\n'
        f'<rect class="page" width="{WIDTH}" height="{bottom}"/>\n' + "\n".join(parts) + "\n</svg>\n"
    )


def _box(x: float, y: float, width: float, height: float, kind: str) -> str:
    return f'<rect class="{kind}" x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height}"/>'


def _text(x: float, y: float, words: str, kind: str) -> str:
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}">{escape(words)}</text>'


if __name__ == "__main__":
    PICTURE.write_text(drawn(), "utf-8")

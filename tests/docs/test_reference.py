"""The reference names everything that is public, and what it shows has an example that runs."""

import html
import importlib
import inspect
import re
from typing import Any

import pytest
from tests.docs.loading import ROOT, loaded

SITE = loaded(ROOT / "scripts" / "site.py")
PAGES: dict[str, list[str]] = dict(SITE.pages())
MISSING: dict[str, set[str]] = {}
"""Public names without an example, by room. Give one to a name when you touch it, and strike it out here."""


def shown(found: Any) -> bool:
    """Whether the docstring of a function or class, or of a method of the class, has an example."""
    texts = [inspect.getdoc(found)]
    if inspect.isclass(found):
        texts += [inspect.getdoc(each) for name, each in vars(found).items() if not name.startswith("_")]
    return any(">>> " in (text or "") for text in texts)


def without_example(room: str) -> set[str]:
    return {
        name
        for name, found in offered(room).items()
        if (inspect.isclass(found) or inspect.isfunction(found))
        and not (inspect.isclass(found) and issubclass(found, Exception))  # those are raised, not called
        and home(room, found)
        and not shown(found)
    }


def home(room: str, found: Any) -> bool:
    """Whether this is the room to ask for it: what the front door or a second room offers again is asked for once."""
    rooms = [each for each in PAGES if each != "defocus" and offered(each).get(found.__name__) is found]
    return not rooms or rooms[0] == room


def offered(room: str) -> dict[str, Any]:
    made = importlib.import_module(room)
    return {name: getattr(made, name) for name in PAGES[room]}


@pytest.mark.parametrize("room", PAGES)
def test_every_public_name_has_an_example_that_runs(room: str) -> None:
    assert without_example(room) == MISSING.get(room, set())


def test_every_public_package_has_a_page_in_the_navigation() -> None:
    named = set(re.findall(r"reference/([a-z.]+)\.md", (ROOT / "mkdocs.yml").read_text("utf-8")))
    assert named == {room.removeprefix("defocus.") for room in PAGES}


def test_every_public_name_is_asked_for_on_the_page_of_its_room() -> None:
    for room, names in PAGES.items():
        made = importlib.import_module(room)
        public = {name for name in made.__all__ if not inspect.ismodule(getattr(made, name))}
        assert {f"::: {room}.{name}" for name in public} <= set(SITE.reference(room, names).splitlines())


def test_docstrings_become_markdown() -> None:
    text = r"""Noise.

    Guarantee:
        At most :math:`e^\varepsilon`, see :class:`~defocus.privacy.Budget`.
    Assumes:
        Nothing.

    .. math:: x^2

    >>> 1 + 1
    2
    """
    lines = SITE.markdown(inspect.cleandoc(text)).splitlines()
    assert lines[2].startswith("**Guarantee.** At most <span><math ")
    assert lines[2].endswith("see `Budget`.")
    assert lines[4] == "**Assumes.** Nothing."
    assert lines[6].startswith("<math ")
    assert lines[-4:] == ["```pycon", ">>> 1 + 1", "2", "```"]


def test_the_picture_of_the_architecture_is_the_one_that_the_script_draws() -> None:
    drawing = loaded(ROOT / "scripts" / "architecture.py")
    assert drawing.PICTURE.read_text("utf-8") == drawing.drawn(), "run python scripts/architecture.py"
    rooms = {path.name for path in (ROOT / "src" / "defocus").iterdir() if (path / "__init__.py").exists()}
    assert {room for floor in drawing.floors() for room in floor} == rooms


def test_files_that_the_architecture_names_exist() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text("utf-8")
    there = [str(path.relative_to(ROOT)) for top in ("src", "tests") for path in (ROOT / top).rglob("*.py")]
    named = set(re.findall(r"`([a-z_/]+\.py)`", text))
    assert len(named) > 50
    assert not {name for name in named if not any(path.endswith(f"/{name}") or path == name for path in there)}


def test_pictures_of_answers_are_those_that_the_script_draws() -> None:
    drawing = loaded(ROOT / "scripts" / "pictures.py")
    for name, picture in drawing.drawn().items():
        kept = (drawing.FOLDER / name).read_text("utf-8")
        told = re.search(r'<desc id="[^"]*">(.*?)</desc>', kept)
        assert told is not None
        assert html.unescape(told[1]) == picture.told(), "run python scripts/pictures.py"

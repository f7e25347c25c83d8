"""Pages of the site that are made when it is built: the reference of every public name, and the notebooks.

``mkdocs.yml`` names this file twice: ``on_files`` adds the pages, and griffe gives each docstring to ``Docstrings``.
"""

import importlib
import inspect
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import griffe
from latex2mathml.converter import convert
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

sys.path.insert(0, str(Path(__file__).parent))  # mkdocs loads this file by its path
import notebooks  # beside this one

__all__ = ["Docstrings", "markdown", "on_files", "on_page_markdown", "pages", "reference"]

_ROLE = re.compile(r":(?P<role>[a-z]+):`(?P<text>[^`]+)`")
_FORMULA = re.compile(r"^(?P<indent> *)\.\. math::(?P<body>.*(?:\n(?: *$|(?P=indent) +.+))*)", re.MULTILINE)
_EXAMPLE = re.compile(r"^(?P<indent> *)>>> .*(?:\n *\S.*)*", re.MULTILINE)
_SECTION = re.compile(
    r"^(?P<name>Guarantee|Assumes|Error|References?|Note):[ \n]+(?P<body>.*(?:\n(?: *$| +.+))*)", re.MULTILINE
)


def pages() -> Iterator[tuple[str, list[str]]]:
    """Each public module with its public names, those that are modules left out: they have pages of their own."""
    waiting = ["defocus", "defocus.engines", "defocus.answers"]
    while waiting:
        module = waiting.pop(0)
        room = importlib.import_module(module)
        found = {name: getattr(room, name) for name in sorted(room.__all__, key=str.lower)}
        waiting += [each.__name__ for each in found.values() if inspect.ismodule(each)]
        yield module, [name for name, each in found.items() if not inspect.ismodule(each)]


def reference(module: str, names: list[str]) -> str:
    """The page of one module, in Markdown for mkdocstrings."""
    about = inspect.cleandoc(importlib.import_module(module).__doc__ or "")
    return "\n\n".join([f"# {module}", markdown(about), *(f"::: {module}.{name}" for name in names)]) + "\n"


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages of the reference, as ``reference/tables.md``, and of notebooks."""
    for module, names in pages():
        place = f"reference/{module.removeprefix('defocus.')}.md"
        files.append(File.generated(config, place, content=reference(module, names)))
    for path in sorted(notebooks.FOLDER.glob("*.ipynb")):
        content = notebooks.page(json.loads(path.read_text("utf-8")), path.name)
        files.append(File.generated(config, f"notebooks/{path.stem}.md", content=content))
    return files


def on_page_markdown(text: str, **_: Any) -> str:
    """Let links to notebooks lead to their pages; elsewhere than on the site they lead to the notebooks."""
    return re.sub(r"\((notebooks/[a-z-]+)\.ipynb\)", r"(\1.md)", text)


def markdown(text: str) -> str:
    r"""A docstring in Markdown: formulas become MathML, roles become code, examples are fenced, sections are named.

    >>> markdown(":class:`~defocus.privacy.Budget` and :func:`open`")
    '`Budget` and `open`'
    >>> markdown(r"at most :math:`\varepsilon`")[:20]
    'at most <span><math '
    >>> print(markdown("One.\n\nError:\n    None.\n\n>>> 1 + 1\n2"))
    One.
    <BLANKLINE>
    **Error.** None.
    <BLANKLINE>
    ```pycon
    >>> 1 + 1
    2
    ```
    """
    text = _SECTION.sub(lambda found: f"\n**{found['name']}.** {_flat(found['body'])}\n", text)
    text = _FORMULA.sub(lambda found: f"{found['indent']}{_formula(found['body'], 'block')}\n", text)
    text = _EXAMPLE.sub(lambda found: f"{found['indent']}```pycon\n{found[0]}\n{found['indent']}```", text)
    return re.sub(r"\n{3,}", "\n\n", _ROLE.sub(_span, text))


def _span(found: re.Match[str]) -> str:
    text = found["text"]
    if found["role"] == "math":
        return f"<span>{_formula(text, 'inline')}</span>"  # a line that begins with <math> would be a paragraph
    return f"`{text.rpartition('.')[2] if text.startswith('~') else text}`"


def _flat(body: str) -> str:
    return "\n".join(line.strip() for line in body.strip().splitlines())


def _formula(text: str, display: Any) -> str:
    return convert(" ".join(text.split()), display=display)


class Docstrings(griffe.Extension):
    """Gives mkdocstrings every docstring in Markdown."""

    def on_instance(self, *, obj: griffe.Object, **_: Any) -> None:
        """Called for each module, class, function and attribute that is read."""
        if obj.docstring is not None:
            obj.docstring.value = markdown(inspect.cleandoc(obj.docstring.value))

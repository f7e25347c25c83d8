"""Every code block of the documentation runs, in the order of its page, in an empty folder.

A ``text`` block right after a ``python`` block is what it prints. In ``console`` blocks, lines that start
with ``$ defocus`` are run; ``# exit 1`` at their end says that they must fail, and text below is their output.
A block titled with the name of a dataset file, as in ``toml title="defocus.toml"``, is written to that file.
Fences with other words after the language, such as ``text title="for example"``, are not checked.
"""

import contextlib
import doctest
import io
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

import pytest

from defocus.cli import main

ROOT = Path(__file__).parents[2]
PAGES = [*sorted(ROOT.glob("README*.md")), ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
FENCE = re.compile(r"^(?P<indent> *)```(?P<info>[^\n`]*)\n(?P<body>.*?)^(?P=indent)```[ ]*$", re.MULTILINE | re.DOTALL)
TITLED = re.compile(r'toml title="(?P<name>[a-z-]+\.toml)"')
LENIENT = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


@final
@dataclass(frozen=True, slots=True)
class Block:
    """A block of code: its language, its text, the line it starts on, and the output shown right after it.

    The language of a block that is to be written to a file is the name of the file.
    """

    language: str
    text: str
    line: int
    output: str | None


def blocks(text: str) -> Iterator[Block]:
    found = list(FENCE.finditer(text))
    for index, match in enumerate(found):
        language = match["info"].strip()
        if titled := TITLED.fullmatch(language):
            yield Block(titled["name"], match["body"], text.count("\n", 0, match.start()) + 2, None)
        if language in {"python", "console"}:
            after = found[index + 1] if index + 1 < len(found) else None
            follows = after is not None and not text[match.end() : after.start()].strip()
            output = after["body"] if after is not None and follows and after["info"].strip() == "text" else None
            indent = len(match["indent"])
            body = "".join(line[indent:] or "\n" for line in match["body"].splitlines(keepends=True))
            yield Block(language, body, text.count("\n", 0, match.start()) + 2, output)


def run_python(block: Block, namespace: dict[str, Any], where: str) -> None:
    printed = io.StringIO()
    code = compile("\n" * (block.line - 1) + block.text, where, "exec")  # tracebacks show the lines of the page
    with contextlib.redirect_stdout(printed):
        exec(code, namespace)  # noqa: S102 # our own documentation
    if block.output is not None:
        must_be_the_same(printed.getvalue(), block.output, f"{where}:{block.line}")


def run_console(block: Block, where: str) -> None:
    for command, shown in commands(block.text):
        words = shlex.split(command, comments=True)
        if words[0] != "defocus":
            continue
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
            code = main(words[1:])
        wanted = int(found[1]) if (found := re.search(r"# exit (\d+)$", command)) else 0
        assert code == wanted, f"{where}:{block.line}: {command} exits with {code}:\n{printed.getvalue()}"
        if shown.strip():
            must_be_the_same(printed.getvalue(), shown, f"{where}:{block.line}: {command}")


def commands(text: str) -> Iterator[tuple[str, str]]:
    for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        command, _, shown = part.partition("\n")
        while command.endswith("\\"):
            more, _, shown = shown.partition("\n")
            command = f"{command[:-1]} {more.strip()}"
        yield command.strip(), shown


def must_be_the_same(printed: str, shown: str, where: str) -> None:
    if not doctest.OutputChecker().check_output(shown, printed, LENIENT):
        pytest.fail(f"{where} shows\n{shown}\nbut prints\n{printed}", pytrace=False)


@pytest.mark.parametrize("page", PAGES, ids=[str(page.relative_to(ROOT)) for page in PAGES])
def test_every_block_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("NO_COLOR", "1")
    namespace: dict[str, Any] = {"__name__": "__main__"}
    where = str(page.relative_to(ROOT))
    for block in blocks(page.read_text(encoding="utf-8")):
        if block.language == "python":
            run_python(block, namespace, where)
        elif block.language == "console":
            run_console(block, where)
        else:
            Path(block.language).write_text(block.text, encoding="utf-8")


def test_pages_about_one_ledger_can_be_tried_in_one_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    for page in ("README.md", "README.zh.md", "docs/index.md", "docs/getting-started.md", "docs/ledger.md"):
        namespace: dict[str, Any] = {"__name__": "__main__"}
        for block in blocks((ROOT / page).read_text(encoding="utf-8")):
            if block.language == "python":
                run_python(block, namespace, page)
            elif block.language != "console":
                Path(block.language).write_text(block.text, encoding="utf-8")


def test_both_readmes_compare_as_the_comparison_does() -> None:
    """Rows that a table shares with the full comparison say the same there."""
    full = rows(ROOT / "docs" / "comparison.md")
    short = rows(ROOT / "README.md")
    shared = short.keys() & full.keys()
    assert len(shared) >= 5
    for name in shared:
        assert short[name] == full[name], name


def rows(page: Path) -> dict[str, str]:
    lines = [line for line in page.read_text(encoding="utf-8").splitlines() if line.startswith("| ")]
    return {line.split("|")[1].strip(): line for line in lines}


def test_the_pages_have_code_to_run() -> None:
    number = {page.name: len(list(blocks(page.read_text(encoding="utf-8")))) for page in PAGES}
    assert number["README.md"] == number["README.zh.md"] > 0
    assert sum(number.values()) >= 30


def test_a_block_that_fails_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    wrong, failing, refused = blocks(
        "```python\nprint(1)\n```\n\n```text\n2\n```\n```python\n1 / 0\n```\n"
        "```console\n$ defocus account 'oops(1)'\n```\n"
    )
    with pytest.raises(pytest.fail.Exception, match="but prints"):
        run_python(wrong, {}, "page")
    with pytest.raises(ZeroDivisionError):
        run_python(failing, {}, "page")
    with pytest.raises(AssertionError, match="exits with 2"):
        run_console(refused, "page")


def test_a_dataset_file_on_a_page_is_written_for_the_blocks_below() -> None:
    shown, other = '```toml title="defocus.toml"\nname = "a"\n```\n', '```toml\nname = "b"\n```\n'
    assert list(blocks(other + shown)) == [Block("defocus.toml", 'name = "a"\n', 5, None)]


def test_every_page_of_the_site_is_in_its_navigation() -> None:
    navigation = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    for page in (ROOT / "docs").rglob("*.md"):
        assert str(page.relative_to(ROOT / "docs")) in navigation

import sys
import threading
from types import SimpleNamespace
from typing import Any

import pytest
from tests.waiting import HANGS

from defocus.answers import progress


class Terminal:
    """Stands for standard error on a terminal."""

    encoding = "utf-8"

    def __init__(self) -> None:
        self.text = ""
        self.written = threading.Event()

    def isatty(self) -> bool:
        return True

    def write(self, text: str) -> int:
        self.text += text
        if "computing" in text:
            self.written.set()
        return len(text)

    def flush(self) -> None:
        pass


def watched(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """Somebody watches from here on: called by tests themselves, since captures change the stream before."""
    made = Terminal()
    monkeypatch.setattr(sys, "stderr", made)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "80")
    return made


def test_a_callers_own_function_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = watched(monkeypatch)
    told: list[float] = []
    with progress.shown(told.append) as tell:
        assert tell is not None
        tell(40.0)
    assert told == [40.0]
    assert not terminal.text


def test_nobody_is_told_where_nobody_watches() -> None:
    with progress.shown(None) as tell:
        assert tell is None


def test_a_bar_appears_on_a_terminal_once_it_takes_long(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = watched(monkeypatch)
    monkeypatch.setattr(progress, "AFTER", 0.0)
    with progress.shown(None) as tell:
        assert tell is not None
        assert terminal.written.wait(HANGS)
        tell(40.0)
    assert "\x1b[2K" in terminal.text  # gone afterwards
    assert not [thread for thread in threading.enumerate() if isinstance(thread, threading.Timer)]


def test_what_is_quick_shows_nothing_even_if_it_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = watched(monkeypatch)

    def work() -> None:
        with progress.shown(None) as tell:
            assert tell is not None
            tell(10.0)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        work()
    assert not terminal.text


def test_a_notebook_has_a_bar_below_the_cell(monkeypatch: pytest.MonkeyPatch) -> None:
    pages: list[str] = []
    shown = threading.Event()

    class ZMQInteractiveShell:
        pass

    def display(page: str, *, display_id: bool) -> Any:
        assert display_id
        pages.append(page)
        shown.set()
        return SimpleNamespace(update=pages.append)

    module = SimpleNamespace(get_ipython=ZMQInteractiveShell, display=SimpleNamespace(HTML=str, display=display))
    monkeypatch.setitem(sys.modules, "IPython", module)
    monkeypatch.setattr(progress, "AFTER", 0.0)
    with progress.shown(None, "<asking>") as tell:
        assert tell is not None
        assert shown.wait(HANGS)
        tell(41.7)
    assert pages == [
        '<label>&lt;asking&gt; <progress max="100"></progress></label>',
        '<label>&lt;asking&gt; <progress max="100" value="42"></progress></label>',
        "",
    ]

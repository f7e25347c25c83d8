"""How far a long computation is: a bar on a terminal or in a notebook, unless the caller has a function of its own."""

import contextlib
import sys
import threading
from collections.abc import Callable, Iterator
from html import escape
from importlib import import_module
from typing import Any, TypeAlias

__all__ = ["AFTER", "Tell", "shown"]

AFTER = 2.0
"""Seconds after which a bar appears: what takes less shows none."""
Tell: TypeAlias = Callable[[float], None]
"""What is called now and then with a percentage."""


@contextlib.contextmanager
def shown(progress: Tell | None, doing: str = "computing") -> Iterator[Tell | None]:
    """What to tell percentages to: the caller's ``progress``, else a bar where somebody watches, else nobody.

    A bar says ``doing`` and how far it is, and is gone afterwards. How fast an engine is depends on the data: a bar is
    for whoever runs the release, and no part of it.

    >>> with shown(None) as tell:  # nobody watches a test
    ...     print(tell)
    None
    """
    if progress is not None:
        yield progress
    elif _in_notebook():
        yield from _watched(_NotebookBar(doing))
    elif sys.stderr is not None and sys.stderr.isatty():
        yield from _watched(_TerminalBar(doing))
    else:
        yield None


def _watched(bar: "_TerminalBar | _NotebookBar") -> Iterator[Tell]:
    timer = threading.Timer(AFTER, bar.start)
    timer.daemon = True
    timer.start()
    try:
        yield bar.tell
    finally:
        timer.cancel()
        timer.join()
        bar.stop()


class _TerminalBar:
    """A bar on standard error, where it disturbs no output."""

    def __init__(self, doing: str) -> None:
        rich = import_module("rich.progress")  # slow to load
        columns = (rich.BarColumn(), rich.TaskProgressColumn(), rich.TimeElapsedColumn())
        screen = import_module("rich.console").Console(stderr=True, markup=False, highlight=False, emoji=False)
        how = {"transient": True, "redirect_stdout": False, "redirect_stderr": False}
        self._bar: Any = rich.Progress(rich.TextColumn("{task.description}"), *columns, console=screen, **how)
        self._task = self._bar.add_task(doing, total=None)

    def start(self) -> None:
        self._bar.start()

    def tell(self, percent: float) -> None:
        self._bar.update(self._task, completed=percent, total=100.0 if percent > 0 else None)

    def stop(self) -> None:
        if self._bar.live.is_started:
            self._bar.stop()


class _NotebookBar:
    """A bar below the cell."""

    def __init__(self, doing: str) -> None:
        self._doing, self._percent = doing, ""
        self._handle: Any = None

    def _page(self) -> Any:
        value = f' value="{self._percent}"' if self._percent else ""
        bar = f'<label>{escape(self._doing)} <progress max="100"{value}></progress></label>'
        return sys.modules["IPython"].display.HTML(bar)

    def start(self) -> None:
        self._handle = sys.modules["IPython"].display.display(self._page(), display_id=True)

    def tell(self, percent: float) -> None:
        self._percent = f"{percent:.0f}" if percent > 0 else ""
        if self._handle is not None:
            self._handle.update(self._page())

    def stop(self) -> None:
        if self._handle is not None:
            self._handle.update(sys.modules["IPython"].display.HTML(""))


def _in_notebook() -> bool:
    found = sys.modules.get("IPython")
    shell = None if found is None else found.get_ipython()
    return type(shell).__name__ == "ZMQInteractiveShell"

"""Doors of packages: what a package offers is listed once, in its stub, and opened when it is first asked for.

A client that randomises one answer on a phone needs numpy and the standard library; it shall not load what accountants
and servers need. So ``__init__.py`` of a package that many come through holds one line, and ``__init__.pyi`` beside it
says what there is and where it is from, to type checkers and to this file alike.
"""

import ast
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

__all__ = ["lazy"]

_Lazy = tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]


def lazy(package: str) -> _Lazy:
    """``__getattr__``, ``__dir__`` and ``__all__`` of a package, read off the stub beside its ``__init__.py``.

    >>> ask, names, offered = lazy("defocus.privacy")
    >>> ask("Budget")(1), "Budget" in offered
    (Budget(epsilon=1), True)
    """
    homes = _homes(Path(str(sys.modules[package].__file__)).with_suffix(".pyi"))
    offered = sorted(homes)

    def ask(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        home = homes[name]
        found = import_module(f"{package}.{name}") if home == package else getattr(import_module(home), name)
        setattr(sys.modules[package], name, found)
        return found

    return ask, lambda: list(offered), offered


def _homes(stub: Path) -> dict[str, str]:
    """Each name of a stub with the module that it is imported from."""
    tree = ast.parse(stub.read_text("utf-8"))
    return {
        alias.name: str(node.module) for node in tree.body if isinstance(node, ast.ImportFrom) for alias in node.names
    }

"""Packages that import what they offer when it is first used."""

import ast
import importlib
import pkgutil
from pathlib import Path
from types import ModuleType

import pytest

import defocus

SOURCE = Path(defocus.__file__).parent
STUBS = [stub for stub in sorted(SOURCE.rglob("__init__.pyi")) if "lazy(" in stub.with_suffix(".py").read_text("utf-8")]


def package(stub: Path) -> ModuleType:
    return importlib.import_module(".".join(("defocus", *stub.parent.relative_to(SOURCE).parts)))


def imports(stub: Path) -> dict[str, str]:
    tree = ast.parse(stub.read_text("utf-8"))
    found = {}
    for node in tree.body:
        if isinstance(node, ast.ImportFrom):
            for alias in node.names:
                assert alias.asname == alias.name
                found[alias.name] = str(node.module)
    return found


def test_there_are_lazy_packages() -> None:
    assert {stub.parent.name for stub in STUBS} >= {"defocus", "privacy", "local"}


@pytest.mark.parametrize("stub", STUBS, ids=lambda stub: stub.parent.name)
def test_type_checkers_see_what_is_there(stub: Path) -> None:
    """The stub names what the package offers, each under its own name, from where it is."""
    room = package(stub)
    seen = imports(stub)
    assert sorted(seen) == list(room.__all__) == dir(room)
    assert all(getattr(room, name) is getattr(importlib.import_module(home), name) for name, home in seen.items())


@pytest.mark.parametrize("stub", STUBS, ids=lambda stub: stub.parent.name)
def test_no_module_hides_what_is_offered_under_its_name(stub: Path) -> None:
    """Importing a module sets an attribute of its package, so a function of the same name could not be reached."""
    room = package(stub)
    modules = {found.name for found in pkgutil.iter_modules(room.__path__)}
    assert not {name for name, home in imports(stub).items() if name in modules and home != room.__name__}


def test_what_is_not_there_is_refused_like_any_attribute() -> None:
    with pytest.raises(AttributeError, match=r"'defocus\.privacy' has no attribute 'bugdet'"):
        defocus.privacy.bugdet  # type: ignore[attr-defined]  # noqa: B018 - the look is the test

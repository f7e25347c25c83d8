"""Scripts of this repository, which are in no package, as modules."""

import importlib.util
from pathlib import Path
from types import ModuleType

__all__ = ["ROOT", "loaded"]

ROOT = Path(__file__).parents[2]


def loaded(path: Path) -> ModuleType:
    """A module of this repository that is in no package."""
    found = importlib.util.spec_from_file_location(f"{path.stem}_of_the_site", path)
    assert found is not None
    assert found.loader is not None
    made = importlib.util.module_from_spec(found)
    found.loader.exec_module(made)
    return made

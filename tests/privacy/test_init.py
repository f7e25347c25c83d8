"""What the floor shows."""

import importlib
import pkgutil
import subprocess
import sys

import pytest

from defocus import privacy

MODULES = sorted(
    name for _, name, _ in pkgutil.walk_packages(privacy.__path__, "defocus.privacy.") if not name.endswith("__main__")
)


@pytest.mark.parametrize("name", MODULES)
def test_every_module_names_what_it_offers(name: str) -> None:
    module = importlib.import_module(name)
    for public in module.__all__:
        assert hasattr(module, public)


def test_importing_the_floor_leaves_slow_parts_of_scipy_alone() -> None:
    code = "import sys, defocus.privacy; print([m for m in ('scipy.optimize', 'scipy.stats') if m in sys.modules])"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)  # noqa: S603 - our own interpreter
    assert found.stdout.strip() == "[]"

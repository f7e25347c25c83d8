"""What each module offers is what it names, and the front door opens quickly."""

import ast
import importlib
import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest

import defocus

SOURCE = Path(defocus.__file__).parent
MODULES = ["defocus", *sorted(found.name for found in pkgutil.walk_packages(defocus.__path__, "defocus."))]
MODULES.remove("defocus.__main__")  # runs when it is imported
COMMANDS = {
    *(
        f"defocus.cli.{name}"
        for name in (
            "app",
            "audit_commands",
            "data_commands",
            "federation_commands",
            "privacy_commands",
            "server_commands",
        )
    ),
    "defocus.server.api",
}
"""Their functions are commands of the terminal, or routes of the API, named by their decorators."""
HEAVY = (
    "scipy.optimize",
    "scipy.stats",
    "matplotlib",
    "sqlalchemy",
    "duckdb",
    "cryptography",
    "typer",
    "mpmath",
    "torch",
    "sklearn",
)


def source_of(name: str) -> ast.Module:
    path = SOURCE.joinpath(*name.split(".")[1:])
    return ast.parse((path / "__init__.py" if path.is_dir() else path.with_suffix(".py")).read_text("utf-8"))


def defined(tree: ast.Module) -> set[str]:
    """Public names that the body of a module makes: functions, classes, assignments; not what it imports."""
    names: set[str] = set()
    for node in tree.body:
        match node:
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                names.add(name)
            case ast.Assign(targets=targets):
                names |= {each.id for target in targets for each in ast.walk(target) if isinstance(each, ast.Name)}
            case ast.AnnAssign(target=ast.Name(id=name)):
                names.add(name)
    return {name for name in names if not name.startswith("_")}


def python(code: str) -> str:
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)  # noqa: S603 - our own interpreter
    return found.stdout.strip()


def test_every_name_offered_exists_and_is_offered_once() -> None:
    wrong: dict[str, list[str]] = {}
    for name in MODULES:
        module = importlib.import_module(name)
        offered = list(module.__all__)
        missing = [each for each in offered if getattr(module, each, None) is None]
        twice = [each for each in set(offered) if offered.count(each) > 1]
        wrong |= {name: missing + twice} if missing or twice else {}
    assert not wrong, str(wrong)


def test_no_public_name_is_left_out() -> None:
    missing = {
        name: sorted(names)
        for name in MODULES
        if name not in COMMANDS and (names := defined(source_of(name)) - set(importlib.import_module(name).__all__))
    }
    assert not missing, f"name them in __all__, or begin with an underscore: {missing}"


def test_the_check_for_names_left_out_sees_them() -> None:
    tree = ast.parse("import x\nA: int = 1\nB = C = 2\n_d = 3\ndef e(): f = 1\nclass G: h = 2\n")
    assert defined(tree) == {"A", "B", "C", "e", "G"}


@pytest.mark.slow
def test_everything_at_the_front_door_can_be_imported_with_a_star() -> None:
    code = "from defocus import *; import defocus; print(all(name in globals() for name in defocus.__all__))"
    assert python(code) == "True"


@pytest.mark.slow
def test_rooms_open_when_asked_for_and_are_the_rooms_themselves() -> None:
    code = "import defocus as dp; import defocus.release as room; print(dp.release is room, dp.Ledger.__module__)"
    assert python(code) == "True defocus.ledger.ledger"
    code = (
        "import defocus as dp; print(dp.mechanisms.Laplace.calibrated(epsilon=1).event, callable(dp.release.release))"
    )
    assert python(code) == "DiscreteLaplace(scale=Fraction(1, 1), sensitivity=1) True"


def test_what_is_not_there_is_refused_like_any_attribute() -> None:
    with pytest.raises(AttributeError, match="'defocus' has no attribute 'lodger'"):
        defocus.lodger  # type: ignore[attr-defined]  # noqa: B018 - the look is the test
    assert not hasattr(defocus, "__wrapped__")


def test_importing_stays_light() -> None:
    code = f"import sys, defocus, defocus.errors, defocus.privacy; print([m for m in {HEAVY!r} if m in sys.modules])"
    assert python(code) == "[]"

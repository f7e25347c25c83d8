"""Private learning: DP-SGD that leaves the user's objects alone, and estimators in scikit-learn's manner.

What needs PyTorch or scikit-learn is opened when it is first asked for, so that this room can be imported without them.
"""

from importlib import import_module
from typing import Any

from defocus.errors import MissingExtraError

__all__: list[str] = []

_HOMES: dict[str, str] = {}
"""Where each name lives; its module is imported when the name is first used."""

_PACKAGES = {"torch": "torch", "sklearn": "scikit-learn"}


def __getattr__(name: str) -> Any:
    """Open one part of the room. What type checkers see of it is in ``__init__.pyi``."""
    if name not in _HOMES:
        raise AttributeError(f"module 'defocus.learning' has no attribute {name!r}")
    try:
        module = import_module(f"defocus.learning.{_HOMES[name]}")
    except ModuleNotFoundError as error:
        root = (error.name or "").partition(".")[0]
        if root not in _PACKAGES:
            raise
        raise MissingExtraError(f"learning.{name}", package=_PACKAGES[root], extra="learn") from error
    return getattr(module, name)


def __dir__() -> list[str]:
    return sorted(__all__)

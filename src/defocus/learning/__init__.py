"""Private learning: DP-SGD that leaves the user's objects alone, and estimators in scikit-learn's manner.

What needs PyTorch or scikit-learn is opened when it is first asked for, so that this room can be imported without them.
"""

from typing import Any

from defocus.errors import MissingExtraError
from defocus.lazy_imports import lazy

_ask, __dir__, __all__ = lazy(__name__)

_PACKAGES = {"torch": "torch", "sklearn": "scikit-learn"}


def __getattr__(name: str) -> Any:
    """Open one part of the room; say what to install where it needs a package that is missing."""
    try:
        return _ask(name)
    except ModuleNotFoundError as error:
        package = _PACKAGES.get((error.name or "").partition(".")[0])
        if package is None:
            raise
        raise MissingExtraError(f"learning.{name}", package=package, extra="learn") from error

"""Refusals of the auditor."""

import difflib
from collections.abc import Iterable

from defocus.errors.base import DefocusError

__all__ = ["UnknownTargetError"]


class UnknownTargetError(DefocusError, LookupError):
    """No audit target has this name."""

    def __init__(self, name: object, known: Iterable[str]) -> None:
        names = sorted(known)
        near = difflib.get_close_matches(str(name), names, n=3, cutoff=0.4) or names[:3]
        super().__init__(
            f"There is no audit target called {str(name)[:60]!r}.",
            fix=f"choose one of the {len(names)} names of audit.targets(), for example {', '.join(near)}.",
        )

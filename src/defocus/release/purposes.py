"""What data may be used for: the owner names purposes once, and every release names one of them."""

import difflib
from collections.abc import Iterable

from defocus.errors import InvalidParameterError
from defocus.ledger.text import line

__all__ = ["allowed", "declared"]


def declared(purposes: object) -> tuple[str, ...] | None:
    """One purpose or several, each of which a ledger can hold; None where any will do.

    >>> declared("monthly report"), declared(["report", "audit", "report"])
    (('monthly report',), ('report', 'audit'))
    """
    if purposes is None:
        return None
    listed = [purposes] if isinstance(purposes, str) else purposes
    if not isinstance(listed, Iterable) or isinstance(listed, bytes) or not (found := list(listed)):
        raise InvalidParameterError(
            "purposes does not list what the data may be used for.",
            fix='pass purposes=["monthly report"], or leave it out where any purpose will do.',
        )
    return tuple(dict.fromkeys(line("a purpose", one) for one in found))


def allowed(purpose: str | None, purposes: tuple[str, ...] | None, question: str) -> str:
    """The purpose to write in the ledger, if the owner of the data allows it; the question itself unless told."""
    if purposes is None:
        return purpose if purpose is not None else question[:200]
    if purpose not in purposes:
        near = difflib.get_close_matches(purpose or "", purposes, n=1)
        hint = f"did you mean {near[0]!r}? The" if near else "the"
        raise InvalidParameterError(
            "This data may be used for named purposes only, and "
            + (f"{purpose!r:.60} is none of them." if purpose else "none was named."),
            fix=f"{hint} purposes are {'; '.join(purposes)}."[:1000],
        )
    return str(purpose)

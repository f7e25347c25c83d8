"""What was released, as a ledger keeps it: a digest always, the value itself on request (it is public by then)."""

import dataclasses
import hashlib
from collections.abc import Mapping
from fractions import Fraction
from numbers import Integral, Real
from typing import Any

import numpy as np

from defocus.errors import InvalidParameterError
from defocus.ledger.entries import canonical
from defocus.privacy.wire import write_number

__all__ = ["fingerprint", "plain"]

_LARGEST = 1 << 20


def plain(value: Any) -> Any:
    """``value`` with JSON types only, for keeping in the ledger; refused if that would change it or be too large.

    >>> plain((3, Fraction(1, 2), np.array([1, 2])))
    [3, '1/2', [1, 2]]
    """
    kept = _plain(value, 0)
    try:
        size = len(canonical(kept))
    except ValueError:
        raise _unkept("it holds a number that is not finite or is too long") from None
    if size > _LARGEST:
        raise _unkept(f"it takes {size} characters, and at most {_LARGEST} are kept")
    return kept


def fingerprint(value: Any) -> str:
    """SHA-256 of a released value: equal values have equal digests, whatever container they came in.

    >>> fingerprint([1, 2]) == fingerprint(np.array([1, 2]))
    True
    """
    try:
        text = canonical(_plain(value, 0))
    except (InvalidParameterError, ValueError):
        text = _described(value)
    return hashlib.sha256(b"defocus released value 1\n" + text.encode("utf-8", "surrogatepass")).hexdigest()


def _described(value: Any) -> str:
    """What is left to take a digest of when a value has no JSON form; it must not fail, the value is paid for."""
    name = type(value).__name__
    try:
        return f"{name} {value:x}" if isinstance(value, int) else f"{name} {value!r}"
    except Exception:  # noqa: BLE001  # a repr may raise anything
        return name


def _plain(value: Any, depth: int) -> Any:
    if depth > 20:
        raise _unkept("it is nested too deeply")
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, np.ndarray | np.generic):
        return _plain(value.tolist(), depth + 1)
    if isinstance(value, Real):
        return _number(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        value = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    if isinstance(value, Mapping) and all(isinstance(key, str) for key in value):
        return {key: _plain(item, depth + 1) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item, depth + 1) for item in value]
    raise _unkept(f"it is a {type(value).__name__}")


def _number(value: Real) -> int | float | str:
    if isinstance(value, Integral):
        return int(value)
    written: str | float = write_number(value) if isinstance(value, Fraction) else float(value)
    return written


def _unkept(why: str) -> InvalidParameterError:
    return InvalidParameterError(
        f"The released value cannot be kept in the ledger: {why}.",
        fix="record it without keep=True (its digest is recorded), and keep the value itself elsewhere.",
    )

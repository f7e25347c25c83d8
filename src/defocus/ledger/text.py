"""What people write into a ledger: who, purpose, names. Stored as given, or refused; never altered."""

import getpass
import os
import unicodedata

from defocus.errors import InvalidParameterError

__all__ = ["LONGEST", "line", "whoever"]

LONGEST = 2_000
_FORBIDDEN = {
    "Cc": "a control character",
    "Cs": "half of a surrogate pair",
    "Zl": "a line separator",
    "Zp": "a paragraph separator",
}
_TURNS = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


def line(name: str, value: object, *, longest: int = LONGEST) -> str:
    r"""Return ``value`` if it is one line of text that every terminal, page and database shows as it is.

    >>> line("purpose", "count of diabetics, für Anna 患者")
    'count of diabetics, für Anna 患者'
    >>> line("purpose", "hello\x1b[2J")
    Traceback (most recent call last):
    ...
    defocus.errors.base.InvalidParameterError: purpose holds a control character (U+001B) at position 5.
    To fix: write purpose as one plain line of text.
    """
    if not isinstance(value, str):
        raise InvalidParameterError(
            f"{name} must be text, but it is {type(value).__name__}.", fix=f"pass {name} as a str, one line."
        )
    if not value.strip():
        raise InvalidParameterError(f"{name} is empty.", fix=f"say in a few words what {name} is.")
    if len(value) > longest:
        raise InvalidParameterError(
            f"{name} has {len(value)} characters, and at most {longest} are kept.", fix=f"shorten {name}."
        )
    for position, character in enumerate(value):
        why = "a character that turns the reading direction" if character in _TURNS else None
        why = _FORBIDDEN.get(unicodedata.category(character), why)
        if why:
            raise InvalidParameterError(
                f"{name} holds {why} (U+{ord(character):04X}) at position {position}.",
                fix=f"write {name} as one plain line of text.",
            )
    return value


def whoever(who: object) -> str:
    """Return ``who``, or the name of the account this process runs under."""
    if who is not None:
        return line("who", who)
    try:
        name = getpass.getuser()
    except (KeyError, OSError):
        name = f"uid {os.getuid()}"
    return line("who", name)

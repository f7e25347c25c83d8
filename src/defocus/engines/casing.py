"""Upper and lower case of one character at a time, as the engine that is always there has it."""

from functools import cache

import duckdb

__all__ = ["cased"]

_SURROGATES = range(0xD800, 0xE000)


@cache
def cased(function: str) -> tuple[str, str]:
    """All characters that LOWER or UPPER changes, and what each becomes.

    Other engines know rules for whole words, by which a text may grow and its last letter matters: Σ is σ, but ς at
    the end of a word. One character for one character is what all engines can do.

    >>> before, after = cased("LOWER")
    >>> after[before.index("É")], len(before) == len(after)
    ('é', True)
    """
    assert function in {"LOWER", "UPPER"}  # noqa: S101  # what the core asks for
    query = f"SELECT chr(i), {function}(chr(i)) FROM (SELECT unnest($1) AS i) WHERE {function}(chr(i)) <> chr(i)"  # noqa: S608  # one of two words
    points = [i for i in range(1, 0x110000) if i not in _SURROGATES and _changes(chr(i), function)]
    with duckdb.connect(config={"threads": 1}) as connection:
        pairs = connection.execute(query, [points]).fetchall()
    single = [(before, after) for before, after in pairs if len(after) == 1]
    return "".join(before for before, _ in single), "".join(after for _, after in single)


def _changes(character: str, function: str) -> bool:
    """Whether Python, which knows at least as much of Unicode, would change it; asking about all takes long."""
    return (character.lower() if function == "LOWER" else character.upper()) != character

"""Pages in other languages than English: each text by itself, and sentences of the desk by their form.

English texts are the keys. What has no translation stays English: names, questions and the words of people always do.
"""

import json
import re
from functools import cache, lru_cache
from pathlib import Path

__all__ = ["LANGUAGES", "texts", "translated"]

LANGUAGES = {"en": "English", "zh": "中文"}
"""The languages of the pages, each by its own name."""


@cache
def texts(language: str) -> tuple[dict[str, str], tuple[tuple[re.Pattern[str], str], ...]]:
    """Texts with their translation, and forms of sentences with theirs."""
    place = Path(__file__).parent / f"{language}.json"
    if language not in LANGUAGES or not place.exists():
        return {}, ()
    found = json.loads(place.read_text("utf-8"))
    return found["texts"], tuple((re.compile(form), made) for form, made in found["patterns"])


def translated(text: str, language: str, **parts: object) -> str:
    """A text in a language; ``parts`` fill in what stands in it as ``%(name)s``.

    >>> translated("Hello, %(name)s", "zh", name="Ada")[-3:]
    'Ada'
    >>> translated("no such text", "zh")
    'no such text'
    """
    known, _ = texts(language)
    found = known.get(text)
    if found is None:
        found = _spoken(text, language)
    return found % parts if parts else found


@lru_cache(4096)
def _spoken(text: str, language: str) -> str:
    """A sentence by its form; else its clauses one by one, and what stands behind a name and a colon."""
    known, forms = texts(language)
    for form, made in forms:
        matched = form.fullmatch(text)
        if matched is not None:
            for place, part in enumerate(matched.groups(), 1):
                made = made.replace(f"\\{place}", _clause(part or "", language))  # noqa: PLW2901  # it is filled in
            return made
    if "; " in text:
        clauses = text.split("; ")
        spoken = [known.get(part) or _spoken(part, language) for part in clauses]
        return text if spoken == clauses else "；".join(spoken)  # words of people stay as they are
    name, colon, rest = text.partition(": ")
    return f"{name}：{_clause(rest, language)}" if colon and _clause(rest, language) != rest else text


def _clause(text: str, language: str) -> str:
    return texts(language)[0].get(text) or (_spoken(text, language) if " " in text else text)

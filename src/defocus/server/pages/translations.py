"""Pages in other languages than English: each text by itself, and sentences of the desk by their form.

English texts are the keys. What has no translation stays English: names, questions and the words of people always do.
"""

import json
import re
from functools import cache
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
    known, forms = texts(language)
    found = known.get(text)
    if found is None:
        found = next((form.sub(made, text) for form, made in forms if form.fullmatch(text)), text)
    return found % parts if parts else found

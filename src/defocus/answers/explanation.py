"""Answers and previews in plain words, for a privacy officer."""

from collections.abc import Sequence

import numpy as np

from defocus.answers.columns import AnswerColumn, Floats, brief
from defocus.answers.tables import text_facts
from defocus.privacy.html import html_facts

__all__ = ["exactness", "told"]


def told(said: dict[str, Sequence[str]], *, html: bool) -> str:
    """The topics there is something to say about, as text or for a page."""
    spoken = {name: sentences for name, sentences in said.items() if sentences}
    return html_facts(spoken) if html else text_facts(spoken)


def exactness(
    column: AnswerColumn, threshold: float | None = None, *, thing: str = "group", cut: Sequence[str] = ()
) -> str:
    """How far off a column is, how much of it is drowned in noise, and what is not known about that."""
    errors, half = _known(column.errors if column.absolute else column.spread), _known(column.half)
    said = []
    if errors.size:
        least, most = brief(errors.min()), brief(errors.max())
        size = least if least == most else f"{least} to {most}"
        said.append(f"off by {size} on average" if column.absolute else f"standard error of the noise {size}")
    if half.size:
        middle = "" if len(column.values) == 1 else f" for the median {thing}"
        said.append(f"95 % within {brief(np.median(half))}{middle}")
    if not said:
        return f"{column.name}: how far off it is in value is not known"
    only = f"; that is the noise alone, and the truth may lie outside: {'; '.join(cut)}" if cut else ""
    noisy = 0 if threshold is None else sum(flag is not True for flag in column.reliable(threshold))
    drowned = f"; in {noisy} of {len(column.values)} it is more than {100 * (threshold or 0):g} % of the value"
    return f"{column.name}: {', '.join(said)}{drowned if noisy else ''}{only}"


def _known(numbers: Floats) -> Floats:
    return numbers[np.isfinite(numbers)]

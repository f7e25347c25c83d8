"""What the plan of a Spark data frame says about its rows: whether reading it twice gives them twice."""

import re
from collections.abc import Iterator
from typing import Any

__all__ = ["unsteady"]

_CHOSEN = {
    "Sample": "a sample",
    **dict.fromkeys(("GlobalLimit", "LocalLimit", "Offset", "Tail"), "a limit"),
}
"""Parts of plans that keep some rows because of others, in an order that Spark does not promise."""
_ALIKE = "one of several rows that are alike in part"
_CHANCE = re.compile(
    r"\b(rand|randn|random|uuid|shuffle|uniform|randstr|monotonically_increasing_id|spark_partition_id|sample)\("
)
_PART = re.compile(r"^[\s:+|-]*([A-Z]\w+)", re.MULTILINE)
_INFERRED = "inferschema -> true"


def unsteady(frame: Any) -> str | None:
    """What makes the rows or types of a data frame depend on chance, on order or on rows, if its plan shows it.

    Through Spark Connect only the text of the plan is seen, in which functions that are not Spark's own are just names.
    """
    if getattr(frame, "_jdf", None) is None:
        return _told(str(frame._explain_string(extended=True)))  # noqa: SLF001  # the plan, without printing it
    plan = frame._jdf.queryExecution().analyzed()  # noqa: SLF001  # Python's Spark has no other way to it
    if not plan.deterministic():
        return "a function of chance or of where a row is"
    return next(_found(plan), None)


def _found(plan: Any) -> Iterator[str]:
    name = str(plan.getClass().getSimpleName())
    if name in _CHOSEN:
        yield _CHOSEN[name]
    if name == "Deduplicate" and plan.keys().size() < plan.output().size():
        yield _ALIKE
    if name == "LogicalRelation" and _INFERRED in str(getattr(plan.relation(), "options", str)()).lower():
        yield "a schema that is inferred from rows"
    for group in (plan.children(), plan.subqueries()):
        for i in range(group.size()):
            yield from _found(group.apply(i))


def _told(text: str) -> str | None:
    analysed = text.partition("== Analyzed Logical Plan ==")[2].partition("== Optimized Logical Plan ==")[0]
    if _CHANCE.search(analysed):
        return "a function of chance or of where a row is"
    return next((_CHOSEN[part] for part in _PART.findall(analysed) if part in _CHOSEN), None)

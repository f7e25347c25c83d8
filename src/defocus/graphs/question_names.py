"""Questions to a graph by name, as commands and servers ask them: ``asked(network, "stars", {"k": 3})``."""

import inspect
from collections.abc import Mapping
from typing import Any

from defocus.errors import InvalidParameterError
from defocus.graphs.network import GraphQuery, Network

__all__ = ["asked", "questions"]


def questions() -> dict[str, Any]:
    """What can be asked of a graph, by name.

    >>> [name for name in questions() if name.startswith("degree")]
    ['degree-histogram', 'degree-sequence', 'degrees']
    """
    methods = {}
    for name, method in inspect.getmembers(Network, inspect.isfunction):
        returns = inspect.signature(method).return_annotation
        if not name.startswith("_") and name != "ask" and returns in {GraphQuery, "GraphQuery"}:
            methods[name.replace("_", "-")] = method
    return methods


def asked(network: Network, question: str, given: Mapping[str, Any]) -> GraphQuery:
    """The question of this name with these settings; several values of one setting are set apart by commas."""
    methods, settings = questions(), dict(given)
    method = methods.get(question.replace("_", "-"))
    if method is None:
        raise InvalidParameterError(
            f"A graph cannot be asked {question!r:.60}.", fix=f"ask one of {', '.join(sorted(methods))}."
        )
    parameters = inspect.signature(method).parameters
    names, empty = [name for name in parameters if name != "self"], inspect.Parameter.empty
    for name in settings:
        if name not in names:
            raise InvalidParameterError(
                f"{question} has no setting {name!r:.60}.",
                fix=f"its settings are {', '.join(names)}." if names else "it has none.",
            )
    for name in names:
        needed = parameters[name].kind is inspect.Parameter.KEYWORD_ONLY and parameters[name].default is empty
        if needed and name not in settings:
            raise InvalidParameterError(
                f"{question} needs the setting {name}.", fix=f"pass {name}=….", command=f"pass --set {name}=…."
            )
    several = [name for name in names if parameters[name].kind is inspect.Parameter.VAR_POSITIONAL and name in settings]
    values = [part.strip() for name in several for part in str(settings.pop(name)).split(",")]
    query: GraphQuery = method(network, *values, **settings)
    return query

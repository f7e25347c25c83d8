"""Whatever holds reports, as counts of one design: what estimates are made of."""

from collections.abc import Iterable, Iterator
from typing import Any, TypeAlias

from defocus.errors import InvalidParameterError
from defocus.local.designs import Design
from defocus.local.reports import Reports
from defocus.local.servers import Server, State

__all__ = ["Countable", "counted"]

Countable: TypeAlias = Reports | State | Server | bytes | str | Iterable[bytes | str]
"""Reports, one message or many, or what a server counted."""


def counted(design: Design, given: Countable) -> State:
    """The counts of reports; messages that are none of this design are rejected and counted as such.

    What is no message at all, such as a value that nobody randomised, is refused.
    """
    server = Server(design)
    if isinstance(given, Server):
        server.merge(given.state())
    elif isinstance(given, State):
        server.merge(given)
    elif isinstance(given, Reports):
        server.add_reports(given)
    elif isinstance(given, bytes | bytearray | memoryview | str):
        server.add(given)
    else:
        server.add_many(_messages(given))
    return server.state()


def _messages(given: Any) -> Iterator[Any]:
    if not isinstance(given, Iterable):
        raise _refused(given)
    for message in given:
        if not isinstance(message, bytes | bytearray | memoryview | str):
            raise _refused(message)
        yield message


def _refused(given: object) -> InvalidParameterError:
    return InvalidParameterError(
        f"Reports are needed, but there is a value of type {type(given).__name__}.",
        fix="randomise values first: oracle.estimate(oracle.encode(values)).",
    )

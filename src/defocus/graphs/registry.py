"""How a statistic is registered: with a certificate, or not at all."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, final

from defocus.errors import InvalidParameterError
from defocus.graphs.certificates import Certificate
from defocus.graphs.statistic import Statistic

__all__ = ["Entry"]


@final
@dataclass(frozen=True, slots=True)
class Entry:
    """A kind of statistic and the certificate of its sensitivity. The list of all is ``statistics.ENTRIES``.

    >>> Entry("guesswork", object, None)
    Traceback (most recent call last):
    ...
    defocus.errors.base.InvalidParameterError: The statistic 'guesswork' has no certificate.
    To fix: pass Certificate(statistics=…, units=…), which says what is checked on all small graphs.
    """

    name: str
    make: Callable[..., Any]
    certificate: Certificate

    def __post_init__(self) -> None:
        certificate: object = self.certificate
        if not isinstance(certificate, Certificate):
            raise InvalidParameterError(
                f"The statistic {self.name!r:.60} has no certificate.",
                fix="pass Certificate(statistics=…, units=…), which says what is checked on all small graphs.",
            )
        for statistic in certificate.statistics:
            if not isinstance(statistic, Statistic):
                raise InvalidParameterError(
                    f"{type(statistic).__name__} is not a statistic of a graph.",
                    fix="give it name, exact(graph), length(public) and reach(public).",
                )

"""Designs by name, and from JSON."""

import json
from collections.abc import Callable
from typing import Any, Literal

from defocus.errors import (
    DefocusError,
    EpsilonTooLargeError,
    Number,
    UnreadableDescriptionError,
    choice,
    positive,
)
from defocus.local.designs.categorical import KRR, DBitFlip, Hadamard, SubsetSelection
from defocus.local.designs.design import Categorical, Design
from defocus.local.designs.geometry_response import GeometryResponse
from defocus.local.designs.hashing import CountMeanSketch, HadamardSketch, LocalHashing
from defocus.local.designs.numeric import Duchi, Hybrid, LocalLaplace, Numeric, Window
from defocus.local.designs.rappor import Rappor
from defocus.local.designs.unary import Unary
from defocus.local.domains import Categories, Interval, domain_from_wire
from defocus.privacy.wire import read_number

__all__ = ["NAMES", "NUMERIC_NAMES", "design", "from_json", "numeric", "to_json"]

_LONGEST = 1 << 26
"""A description may come from strangers; a million labels fit into 64 MiB."""
_ALSO = {
    **dict.fromkeys(("krr", "grr", "rr", "de", "randomizedresponse", "randomisedresponse"), "k-rr"),
    "generalizedrandomizedresponse": "k-rr",
    **dict.fromkeys(("lh", "localhashing", "optimallocalhashing", "optimizedlocalhashing"), "olh"),
    **dict.fromkeys(("ue", "unary", "optimalunaryencoding", "optimizedunaryencoding"), "oue"),
    **dict.fromkeys(("basicrappor", "symmetricunaryencoding"), "sue"),
    **dict.fromkeys(("ss", "subsetselection"), "subset"),
    **dict.fromkeys(("hr", "hadamardresponse"), "hadamard"),
    **dict.fromkeys(("dbit", "dbitflip"), "d-bit"),
    **dict.fromkeys(("1bit", "1bitmean", "onebit"), "duchi"),
    **dict.fromkeys(("pm",), "piecewise"),
    **dict.fromkeys(("hm",), "hybrid"),
    **dict.fromkeys(("sw", "squarewave"), "square-wave"),
}
"""What others call these oracles."""


def _sue(domain: Any, epsilon: Number) -> Categorical:
    return Unary(domain, epsilon, symmetric=True)


_DESIGNS: dict[str, Callable[..., Categorical]] = {
    "cms": CountMeanSketch,
    "d-bit": DBitFlip,
    "hadamard": Hadamard,
    "hcms": HadamardSketch,
    "k-rr": KRR,
    "olh": LocalHashing,
    "oue": Unary,
    "pgr": GeometryResponse,
    "rappor": Rappor,
    "subset": SubsetSelection,
    "sue": _sue,
}
NAMES = tuple(_DESIGNS)
"""What :func:`design` knows."""


def _square(domain: Any, epsilon: Number, **options: Any) -> Numeric:
    return Window(domain, epsilon, square=True, **options)


_NUMERIC: dict[str, Callable[..., Numeric]] = {
    "duchi": Duchi,
    "hybrid": Hybrid,
    "laplace": LocalLaplace,
    "piecewise": Window,
    "square-wave": _square,
}
NUMERIC_NAMES = tuple(_NUMERIC)
"""What :func:`numeric` knows."""


def design(
    name: str,
    domain: Any,
    epsilon: Number,
    *,
    outside: Literal["refuse", "other"] = "other",
    **options: Any,
) -> Categorical:
    """The design of a frequency oracle by its name, or by another name in use, such as GRR.

    >>> design("oue", 100, 1).layout.length
    13
    """
    return _DESIGNS[choice("oracle", name, NAMES, _ALSO)](Categories.of(domain, outside=outside), epsilon, **options)


def numeric(
    name: str,
    low: Number,
    high: Number,
    epsilon: Number,
    *,
    outside: Literal["clip", "refuse"] = "clip",
    **options: Any,
) -> Numeric:
    """The design of a numeric oracle by its name.

    >>> numeric("duchi", 0, 10, 1).layout.length
    1
    """
    kind = _NUMERIC[choice("numeric oracle", name, NUMERIC_NAMES, _ALSO)]
    return kind(Interval(low, high, outside), epsilon, **options)


def to_json(design: Design) -> str:
    """The description as text. It is public, and it is all that clients and servers need."""
    return json.dumps(design.to_wire(), sort_keys=True)


def from_json(text: str | bytes, *, at_most: Number | None = None) -> Design:
    """Read a description back. One whose integers this version would compute differently is refused.

    With ``at_most``, so is one whose reports cost more than this epsilon: a description may come from a collector whom
    nobody trusts, and what a report may cost is for the device to decide.
    """
    limit = None if at_most is None else positive("at_most", at_most)
    if len(text) > _LONGEST:
        raise UnreadableDescriptionError("it is longer than 64 MiB")
    try:
        data = json.loads(text)
        designs: dict[str, Callable[..., Design]] = {**_DESIGNS, **_NUMERIC}
        design = designs[data["oracle"]](
            domain_from_wire(data["domain"]), read_number(data["epsilon"]), **data["options"]
        )
    except (DefocusError, KeyError, TypeError, ValueError, ArithmeticError, RecursionError, AttributeError) as error:
        raise UnreadableDescriptionError(f"{type(error).__name__}, {str(error)[:120]}") from error
    if design.to_wire() != data:
        raise UnreadableDescriptionError("its format, version or integers are not those of this version")
    if limit is not None and design.epsilon > limit:
        raise EpsilonTooLargeError(float(design.epsilon), float(limit))
    return design

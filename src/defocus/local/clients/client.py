"""One client for every design: check the value, randomise it, write it down."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from defocus.errors import Number, UnmadeReportError
from defocus.local import designs, wire
from defocus.local.clients import categorical, numeric
from defocus.local.designs.numeric import Duchi, Hybrid, LocalLaplace, Window
from defocus.local.domains import Categories, never_silent
from defocus.local.layouts import Payload
from defocus.local.reports import Reports
from defocus.noise import Bits
from defocus.noise.bits import source

__all__ = ["Client"]

_CHUNK = 1 << 16
"""People at once: what they draw stays in the processor's cache."""
_RANDOMISERS: dict[type[designs.Design], Callable[[Any, Any, Bits], Payload]] = {
    designs.DBitFlip: categorical.randomise_d_bit,
    designs.CountMeanSketch: categorical.randomise_sketch,
    designs.GeometryResponse: categorical.randomise_geometry,
    designs.Hadamard: categorical.randomise_hadamard,
    designs.HadamardSketch: categorical.randomise_hadamard_sketch,
    designs.KRR: categorical.randomise_k_rr,
    designs.LocalHashing: categorical.randomise_hashing,
    designs.Rappor: categorical.randomise_rappor,
    designs.SubsetSelection: categorical.randomise_subset,
    designs.Unary: categorical.randomise_unary,
    Duchi: numeric.randomise_duchi,
    Hybrid: numeric.randomise_hybrid,
    LocalLaplace: numeric.randomise_laplace,
    Window: numeric.randomise_window,
}


@final
@dataclass(frozen=True, slots=True)
class Client:
    """Makes reports under one design. It knows the public description and nothing of any server.

    Guarantee:
        Each report is epsilon-LDP in its value, with the design's exact law. Reports about one person compose: two of
        them cost two epsilon. The nonce is random and independent of the value. This holds for every value, whatever
        it is: each has a report of the same length, and none is an error. (:meth:`encode` also serves simulations
        under the rule ``refuse``; :meth:`report` and :meth:`from_json` refuse that rule itself, for any value.)
    Assumes:
        ``bits`` is uniform and independent across calls.

    >>> from defocus import local
    >>> asked = local.oracle("k-rr", ["red", "green", "blue"], epsilon=2)
    >>> device = Client.from_json(asked.to_json())
    >>> len(device.report("red")) == len(device.report("blue"))
    True
    """

    design: designs.Design

    def __post_init__(self) -> None:
        object.__setattr__(self, "design", designs.design_of(self.design))

    @staticmethod
    def from_json(text: str | bytes, *, at_most: Number | None = None) -> "Client":
        """The client of a description that came from elsewhere.

        It is refused if a report costs more than ``at_most``, or if values outside of the domain would not be reported.
        """
        design = designs.from_json(text, at_most=at_most)
        never_silent(design.domain)
        return Client(design)

    def encode(self, values: Any, bits: Bits | None = None) -> Reports:
        """One report for each value, each of another person. Values are checked before anything is drawn."""
        randomise, draw = _RANDOMISERS[type(self.design)], source(bits)
        domain = self.design.domain
        read: NDArray[Any] = domain.codes(values) if isinstance(domain, Categories) else domain.positions(values)
        pieces = [randomise(self.design, read[i : i + _CHUNK], draw) for i in range(0, len(read), _CHUNK)]
        empty = self.design.layout.payload(b"")
        payload = pieces[0] if len(pieces) == 1 else np.concatenate([empty, *pieces])
        if self.design.layout.valid(payload) is not None:
            raise UnmadeReportError(self.design.name)
        return Reports(self.design, payload)

    def report(self, value: Any, *, nonce: bool = False, bits: Bits | None = None) -> bytes:
        """One person's report as a message; with ``nonce``, a server can reject copies of it."""
        draw = source(bits)
        payload = self._payload(value, draw)
        return wire.write(self.design, payload, nonce=wire.new_nonce(draw) if nonce else None, batch=False)

    def report_json(self, value: Any, *, nonce: bool = False, bits: Bits | None = None) -> str:
        """The same as JSON."""
        draw = source(bits)
        payload = self._payload(value, draw)
        return wire.write_json(self.design, payload, nonce=wire.new_nonce(draw) if nonce else None)

    def _payload(self, value: Any, bits: Bits) -> Payload:
        never_silent(self.design.domain)
        return self.encode([value], bits).payload

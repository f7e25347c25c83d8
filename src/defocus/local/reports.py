"""Reports of many people under one oracle: what clients make, and all that a server sees."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import final

import numpy as np

from defocus.errors import InvalidParameterError, MismatchedOracleError
from defocus.local import wire
from defocus.local.designs import Design
from defocus.local.layouts import Payload
from defocus.noise import Bits
from defocus.noise.bits import source

__all__ = ["Reports"]


@final
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Reports:
    """Payloads with the description they were made under.

    >>> from defocus import local
    >>> asked = local.oracle("k-rr", ["red", "green", "blue"], epsilon=2)
    >>> len(asked.encode(["red", "blue"]))
    2
    """

    design: Design
    payload: Payload

    def __post_init__(self) -> None:
        if not self.design.layout.fits(self.payload):
            raise InvalidParameterError(
                "The payload is not an array of this oracle's layout.", fix="let the oracle's client make the reports."
            )

    def __len__(self) -> int:
        return len(self.payload)

    def __iter__(self) -> Iterator[bytes]:
        """Every report as a message of its own."""
        for i in range(len(self.payload)):
            yield wire.write(self.design, self.payload[i : i + 1], batch=False)

    def __add__(self, other: object) -> "Reports":
        if not isinstance(other, Reports):
            return NotImplemented
        if other.design.digest != self.design.digest:
            raise MismatchedOracleError("Reports", other.design.digest.hex(), self.design.digest.hex())
        return Reports(self.design, np.concatenate([self.payload, other.payload]))

    def __repr__(self) -> str:
        return f"<{len(self)} reports of {self.design.name}, {self.design.layout.length} bytes each>"

    def to_bytes(self, *, nonce: bool | bytes = False, bits: Bits | None = None) -> bytes:
        """All of them as one message: a header, then the payloads. With ``nonce``, a server can reject copies of it.

        A nonce of one's own, of 16 bytes, must be used for nothing else.
        """
        if isinstance(nonce, bytes) and len(nonce) != wire.NONCE:
            raise InvalidParameterError(
                f"A nonce has {wire.NONCE} bytes, but this one has {len(nonce)}.", fix="pass nonce=True to draw one."
            )
        drawn = wire.new_nonce(source(bits)) if nonce is True else nonce or None
        return wire.write(self.design, self.payload, nonce=drawn)

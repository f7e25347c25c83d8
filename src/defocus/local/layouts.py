"""What one report holds, and how it lies in memory and on the wire: a number of a cell, or a row of bits."""

from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

__all__ = ["BitRows", "Cells", "Layout", "Payload", "Totals"]

Payload: TypeAlias = NDArray[Any]


@final
@dataclass(frozen=True, slots=True)
class Cells:
    """A report names one of ``cells`` cells: an unsigned little-endian integer of 1, 2, 4 or 8 bytes."""

    cells: int

    @property
    def dtype(self) -> np.dtype[Any]:
        """The shortest unsigned integer that holds every cell."""
        last = self.cells - 1
        return np.dtype("<u1" if last < 1 << 8 else "<u2" if last < 1 << 16 else "<u4" if last < 1 << 32 else "<u8")

    @property
    def length(self) -> int:
        """The length of one payload."""
        return self.dtype.itemsize

    def payload(self, data: bytes | memoryview) -> Payload:
        """The reports in so many payloads, one after the other."""
        return np.frombuffer(data, self.dtype)

    def fits(self, payload: Payload) -> bool:
        """Whether an array could hold reports of this layout."""
        return payload.ndim == 1 and payload.dtype == self.dtype

    def valid(self, payload: Payload) -> NDArray[np.bool_] | None:
        """Which reports are of this oracle; None when all are."""
        if not payload.size or int(payload.max()) < self.cells:
            return None
        inside: NDArray[np.bool_] = payload < self.cells
        return inside


@final
@dataclass(frozen=True, slots=True)
class BitRows:
    """A report is the number of one of ``rows`` rows (left out if there is only one), then ``width`` bits.

    Exactly ``ones`` of the bits are ones, where that is given.
    """

    width: int
    rows: int = 1
    ones: int | None = None

    @property
    def prefix(self) -> int:
        """Bytes of the row's number."""
        return -(-(self.rows - 1).bit_length() // 8)

    @property
    def length(self) -> int:
        """The length of one payload."""
        return self.prefix + -(-self.width // 8)

    def payload(self, data: bytes | memoryview) -> Payload:
        """The reports in so many payloads, one after the other: one row of bytes each."""
        return np.frombuffer(data, np.uint8).reshape(-1, self.length)

    def fits(self, payload: Payload) -> bool:
        """Whether an array could hold reports of this layout."""
        return payload.ndim == 2 and payload.dtype == np.uint8 and payload.shape[1] == self.length

    def row(self, payload: Payload) -> NDArray[np.int64]:
        """The row's number in each report."""
        number = np.zeros(len(payload), np.int64)
        for i in range(self.prefix):
            number |= payload[:, i].astype(np.int64) << (8 * i)
        return number

    def with_rows(self, rows: NDArray[np.int64], bits: NDArray[np.uint8]) -> Payload:
        """Put the rows' numbers before packed bits."""
        payload = np.empty((len(rows), self.length), np.uint8)
        for i in range(self.prefix):
            payload[:, i] = (rows >> (8 * i)) & 255
        payload[:, self.prefix :] = bits
        return payload

    def valid(self, payload: Payload) -> NDArray[np.bool_] | None:
        """Which reports are of this oracle: no bit beyond the width, no row beyond the last, the right weight."""
        good: NDArray[np.bool_] | None = None
        if self.ones is not None:
            counted = np.bitwise_count(payload[:, self.prefix :]).sum(axis=1, dtype=np.int64) == self.ones
            good = None if counted.all() else counted
        if self.width % 8:
            spare = payload[:, -1] >> np.uint8(self.width % 8)
            if spare.any():
                good = spare == 0 if good is None else good & (spare == 0)
        if self.rows > 1:
            inside = self.row(payload) < self.rows
            if not inside.all():
                good = inside if good is None else good & inside
        return good


@final
@dataclass(frozen=True, slots=True)
class Totals:
    """A report is a signed 64-bit integer of magnitude at most ``limit``, of which only sums are kept."""

    limit: int
    length: ClassVar[int] = 8

    def payload(self, data: bytes | memoryview) -> Payload:
        """The reports in so many payloads, one after the other."""
        return np.frombuffer(data, "<i8")

    def fits(self, payload: Payload) -> bool:
        """Whether an array could hold reports of this layout."""
        return payload.ndim == 1 and payload.dtype == np.dtype("<i8")

    def valid(self, payload: Payload) -> NDArray[np.bool_] | None:
        """Which reports are of this oracle."""
        inside: NDArray[np.bool_] = (payload <= self.limit) & (payload >= -self.limit)
        return None if inside.all() else inside


Layout: TypeAlias = Cells | BitRows | Totals

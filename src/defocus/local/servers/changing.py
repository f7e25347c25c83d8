"""The collector of values that change: counts for every epoch, from reports about changes."""

from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from defocus.errors import InvalidParameterError
from defocus.local.designs.changing import Changing
from defocus.local.domains import OTHER
from defocus.local.estimates import Estimate
from defocus.local.servers.supports import walsh

__all__ = ["ChangingServer"]

_MOST = 1 << 27
"""A gibibyte of sums."""


@final
class ChangingServer:
    """Adds up the reports of :class:`~defocus.local.clients.ChangingMemory`; what no device sends is rejected.

    Its memory depends on the description alone. Copies of messages are not recognised: limit messages by account.

    >>> from defocus import local
    >>> asked = local.changing(["home", "work"], epochs=2, changes=1, epsilon=2)
    >>> server = local.ChangingServer(asked)
    >>> server.add(local.ChangingMemory(asked).report("home")), server.add(b"garbage"), server.rejected
    (True, False, 1)
    """

    __slots__ = ("_sums", "_told", "asked", "rejected", "users")

    def __init__(self, asked: Changing) -> None:
        self.asked = asked
        self.rejected = 0
        self.users = 0
        """How many devices reported at the first epoch."""
        if 2 * asked.epochs * asked.rows > _MOST:
            raise InvalidParameterError(
                f"A server would keep {2 * asked.epochs * asked.rows} sums, more than {_MOST}.",
                fix="use fewer categories, or longer epochs.",
            )
        self._sums: dict[tuple[int, int], NDArray[np.int64]] = {}
        self._told: dict[tuple[int, int], int] = {}

    def add(self, message: Any) -> bool:
        """Count one message; whether it was one."""
        asked = self.asked
        if not isinstance(message, bytes) or len(message) != len(asked.digest) + 10 or message[:8] != asked.digest:
            return self._reject()
        epoch, row = int.from_bytes(message[8:12], "little"), int.from_bytes(message[12:16], "little")
        group, sign = message[16], message[17]
        if not 1 <= epoch <= asked.epochs or row >= asked.rows or group >= len(asked.groups) or sign > 1:
            return self._reject()
        self.users += epoch == 1
        if asked.groups[group].due(epoch):
            place = group, epoch
            self._sums.setdefault(place, np.zeros(asked.rows, np.int64))[row] += 2 * sign - 1
            self._told[place] = self._told.get(place, 0) + 1
        return True

    def estimate(self, epoch: int) -> Estimate:
        """Unbiased counts at an epoch, of all who reported at the first; their errors are those of the reports used."""
        asked, size = self.asked, self.asked.domain.size
        counts, spread = np.zeros(size), 0.0
        for place in asked.used(epoch):
            scale = asked.groups[place[0]].scale
            counts += scale * walsh(self._sums.get(place, np.zeros(asked.rows, np.int64)))[1 : size + 1]
            spread += scale**2 * self._told.get(place, 0)
        variances = np.maximum(spread - np.clip(counts, 0, self.users), 0)
        return Estimate(
            counts,
            variances,
            self.users,
            asked.domain.labels,
            rejected=self.rejected,
            collected=asked.promise,
            others=asked.domain.outside == OTHER,
        )

    def _reject(self) -> bool:
        self.rejected += 1
        return False

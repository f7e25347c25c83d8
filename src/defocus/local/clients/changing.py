"""The device of a person whose value changes. What it remembers is private: it never leaves the device."""

import json
from typing import Any, final

from defocus.errors import InvalidParameterError, UnreadableDescriptionError
from defocus.local.designs.changing import Changing, Flips
from defocus.noise import Bits, permutation, uniform
from defocus.noise.bits import source

__all__ = ["LENGTH", "ChangingMemory", "written"]

LENGTH = 18
"""Bytes of a message: the digest, then epoch, row, group and sign."""


def written(asked: Changing, epoch: int, row: int, group: int, sign: int) -> bytes:
    """One message."""
    where = epoch.to_bytes(4, "little") + row.to_bytes(4, "little")
    return asked.digest + where + bytes((group, sign > 0))


@final
class ChangingMemory:
    """One person's device in a collection of :class:`~defocus.local.Changing` values; report once at each epoch.

    Guarantee:
        All that it ever sends is epsilon-LDP together, whatever the values are; all its randomness is drawn once. It
        sends a message of one length at each epoch; where its group has nothing to report, the sign is a fair coin and
        means nothing.

    >>> from defocus import local
    >>> asked = local.changing(["home", "work"], epochs=4, changes=1, epsilon=2)
    >>> device = local.ChangingMemory(asked)
    >>> {len(device.report(value)) for value in ("home", "home", "work", None)}
    {18}
    """

    __slots__ = ("_kept", "asked")

    def __init__(self, asked: Changing, *, bits: Bits | None = None) -> None:
        draw = source(bits)
        place, group = uniform(1 << 16, None, draw), 0
        while place >= asked.groups[group].share:
            place -= asked.groups[group].share
            group += 1
        self.asked = asked
        self._kept: dict[str, Any] = {
            "epoch": 0,
            "group": group,
            "row": uniform(asked.rows, None, draw),
            "signs": _signs(asked.groups[group].flips, draw),
            "coins": [2 * int(coin) - 1 for coin in f"{draw.integer(asked.epochs):0{asked.epochs}b}"],
            "used": 0,
            "last": 0,
        }

    def report(self, value: Any) -> bytes:
        """The message of the next epoch. Nothing is drawn: a device that is set back sends the same for the same value.

        Store :meth:`to_json` before it is sent, or a device that stops in between reports the epoch twice.
        """
        kept = self._kept
        if kept["epoch"] >= self.asked.epochs:
            raise InvalidParameterError(
                "All epochs were reported.", fix="charge a new collection, and make a new memory."
            )
        kept["epoch"] += 1
        group = self.asked.groups[kept["group"]]
        now = self.asked.sign(int(self.asked.domain.codes([value])[0]), kept["row"])
        said = kept["coins"][kept["epoch"] - 1]
        if group.level is not None and kept["epoch"] == 1:
            kept["last"] = now
        told = (group.level is None or now != kept["last"]) and kept["used"] < group.flips.length
        if group.due(kept["epoch"]) and told:
            said = now * kept["signs"][kept["used"]]
            kept["used"], kept["last"] = kept["used"] + 1, now
        return written(self.asked, kept["epoch"], kept["row"], kept["group"], said)

    def to_json(self) -> str:
        """Everything remembered, to be stored on the device. Who reads it can undo the noise."""
        return json.dumps({"asked": self.asked.to_json(), "kept": self._kept})

    @staticmethod
    def from_json(text: str | bytes) -> "ChangingMemory":
        """Go on where a device stopped."""
        try:
            data = json.loads(text)
            memory = ChangingMemory(Changing.from_json(data["asked"]))
            kept, fresh = data["kept"], memory._kept
            alike = {key: type(value) for key, value in kept.items()} == {key: type(fresh[key]) for key in fresh}
            length = memory.asked.groups[kept["group"]].flips.length
            lengths = len(kept["signs"]), len(kept["coins"])
            if not alike or lengths != (length, memory.asked.epochs) or not {*kept["signs"], *kept["coins"]} <= {1, -1}:
                raise _unread("what is kept is of another kind")
            memory._kept = kept
        except (ValueError, KeyError, TypeError, AttributeError, IndexError) as error:
            raise _unread(type(error).__name__) from error
        return memory


def _unread(why: str) -> UnreadableDescriptionError:
    return UnreadableDescriptionError(why, what="The memory of a device", writer="ChangingMemory.to_json()")


def _signs(flips: Flips, bits: Bits) -> list[int]:
    """Which signs stay (1) and which are flipped (-1): how many by their weights, then which of them by a shuffle."""
    weights = flips.weights
    total = sum(weights)
    while (word := bits.integer(total.bit_length())) >= total:
        pass
    flipped = 0
    while word >= weights[flipped]:
        word -= weights[flipped]
        flipped += 1
    signs = [-1] * flipped + [1] * (flips.length - flipped)
    return [signs[i] for i in permutation(flips.length, bits).tolist()]

"""What a device sends of what it counts: at most so many different values in a period. Needs no server, and no name."""

import hashlib
import json
from typing import Any, final

from defocus.errors import InvalidParameterError, UnreadableDescriptionError
from defocus.errors import count as counted

__all__ = ["ContributionFilter"]

_DIGEST = 16


@final
class ContributionFilter:
    """At most ``at_most`` different values of one device in one period, so that a table of them needs no names.

    The device asks before it sends a value, such as a page that was viewed. What is collected is then a table of values
    without identifiers, of which one person has at most so many rows in a period: ``dp.rows(per_person=at_most,
    period="day")``. This bounds what one person adds; the noise is added to what is collected, by whoever is trusted
    to collect it.

    Guarantee:
        In each period at most ``at_most`` values are let through, each once, in the order in which they come, whatever
        they are. A period that has passed does not come back: nothing is let through for it. With :meth:`decoys` every
        device sends exactly ``at_most`` messages in a period, so that their number says nothing.
    Assumes:
        What is remembered is stored before a value is sent, and not lost: a device that forgets starts anew. One
        person uses one device, or is protected as several. Labels of periods sort as time does, as "2026-11-14" and
        "2026-W46" do. Whoever carries the messages sees when they come; that is not hidden here.
    Reference:
        Adeleye et al. (2023), Publishing Wikipedia usage data with strong privacy guarantees, for page views.

    >>> device = ContributionFilter(2)
    >>> [device.sends(page, "2026-11-14") for page in ("Ada", "Ada", "Bach", "Cat")]
    [True, False, True, False]
    >>> device.sends("Cat", "2026-11-15"), device.decoys("2026-11-15")
    (True, 1)
    """

    __slots__ = ("_period", "_sent", "at_most")

    def __init__(self, at_most: int) -> None:
        self.at_most = counted("at_most", at_most)
        self._period, self._sent = "", set[str]()

    def sends(self, value: Any, period: str) -> bool:
        """Whether to send this value, which then counts as sent: store :meth:`to_json` first."""
        if not self._reached(period) or len(self._sent) >= self.at_most:
            return False
        digest = hashlib.blake2b(repr(value).encode("utf-8", "backslashreplace"), digest_size=_DIGEST).hexdigest()
        new = digest not in self._sent
        self._sent.add(digest)
        return new

    def decoys(self, period: str) -> int:
        """How many messages without a value (NULL, which is in no group) are left to send at the end of a period."""
        return self.at_most - len(self._sent) if self._reached(period) else 0

    def _reached(self, period: Any) -> bool:
        """Begin a period that is later than the last; whether it is the one that is now."""
        if not isinstance(period, str) or not period:
            raise InvalidParameterError(
                f"A period needs a label that sorts as time does, but got {period!r:.60}.", fix='write "2026-11-14".'
            )
        if period > self._period:
            self._period, self._sent = period, set()
        return period == self._period

    def to_json(self) -> str:
        """Everything remembered, to be stored on the device. Who reads it can tell which values were sent."""
        return json.dumps({"at_most": self.at_most, "period": self._period, "sent": sorted(self._sent)})

    @staticmethod
    def from_json(text: str | bytes) -> "ContributionFilter":
        """Go on where a device stopped."""
        try:
            data = json.loads(text)
            made = ContributionFilter(data["at_most"])
            made._period, made._sent = str.__str__(data["period"]), set(map(str.__str__, data["sent"]))
        except (ValueError, KeyError, TypeError, InvalidParameterError) as error:
            raise UnreadableDescriptionError(
                type(error).__name__, what="The filter of a device", writer="ContributionFilter.to_json()"
            ) from error
        return made

"""What a device remembers, so that reports about one value do not add up. It is private: it never leaves the device."""

import json
from typing import Any, final

import numpy as np

from defocus.errors import InvalidParameterError, UnmadeReportError, UnreadableDescriptionError
from defocus.local import wire
from defocus.local.clients import categorical, numeric
from defocus.local.designs import DBitFlip, Describes, Design, Rappor, design_of, from_json, to_json
from defocus.local.designs.numeric import STEPS, Duchi
from defocus.local.domains import never_silent
from defocus.local.layouts import Payload
from defocus.noise import Bits, uniform
from defocus.noise.bits import source

__all__ = ["Memory"]


@final
class Memory:
    r"""One person's answers under a design for repeated collection: ``rappor``, ``duchi`` (1-bit mean) or ``d-bit``.

    Guarantee:
        However often a value is reported, all those reports together are :math:`\varepsilon`-LDP: they depend on it
        through what was drawn for it once.

        * *rappor*: the permanently noisy filter is remembered for each value; reports differ by fresh noise.
        * *duchi*: at the first report, a point :math:`\alpha` of the interval and one noisy bit for either end are
          drawn for good. A number is rounded up where it is beyond :math:`\alpha` and down where not, and the bit of
          that end is reported. As :math:`\alpha` is uniform, the mean over people is unbiased.
        * *d-bit*: the categories one is asked about, and for each of them the answer if it is one's own and the answer
          if it is not, are drawn for good.

    Assumes:
        The value stays the same (for one that changes, see :class:`~defocus.local.Changing`). One that changes is *not*
        protected by a multiple of epsilon: under *duchi* and
        *d-bit*, reports that differ show for certain that there was a change, when, and by which bits it shows; under
        *rappor* the same is learned from many reports. Only if the moments of change, and of return to an earlier
        value, are public anyway, c different values cost c times epsilon, and only under *rappor*, which draws a filter
        for each value.
    Reference:
        Erlingsson, Pihur, Korolova (2014), RAPPOR; Ding, Kulkarni, Yekhanin (2017), Collecting telemetry data
        privately, Section 4.

    >>> from defocus.local.designs import numeric as made
    >>> memory = Memory(made("duchi", 0, 24, 1))
    >>> len({memory.report(7.5) for day in range(100)})
    1
    """

    __slots__ = ("_kept", "design")

    def __init__(self, design: Design | Describes, *, bits: Bits | None = None) -> None:
        design = design_of(design)
        if not isinstance(design, Rappor | Duchi | DBitFlip):
            raise InvalidParameterError(
                f"{design.name} has no memory: each of its reports costs epsilon anew.",
                fix="use rappor, duchi or d-bit for repeated collection, or charge every report.",
            )
        never_silent(design.domain)
        self.design: Rappor | Duchi | DBitFlip = design
        self._kept = _drawn(design, source(bits))

    def report(self, value: Any, *, nonce: bool = False, bits: Bits | None = None) -> bytes:
        """A report of the value, as a message."""
        draw = source(bits)
        token = wire.new_nonce(draw) if nonce else None
        payload = self.payload(value, draw)
        if self.design.layout.valid(payload) is not None:
            raise UnmadeReportError(self.design.name)
        return wire.write(self.design, payload, nonce=token, batch=False)

    def payload(self, value: Any, bits: Bits | None = None) -> Payload:
        """The report itself."""
        draw, kept = source(bits), self._kept
        match self.design:
            case Rappor() as design:
                code = int(design.domain.codes([value])[0])
                cohort = np.array([kept["cohort"]])
                if str(code) not in kept["filters"]:
                    payload = categorical.permanent(design, cohort, np.array([code]), draw)
                    kept["filters"][str(code)] = payload[0].tolist()
                return categorical.disguised(design, cohort, np.array([kept["filters"][str(code)]], np.uint64), draw)
            case Duchi() as design:
                place = int(float(design.domain.positions([value])[0]) * STEPS)
                return np.array([kept["ends"][place > kept["alpha"]]], np.uint8)
            case DBitFlip() as design:
                code = int(design.domain.codes([value])[0])
                about = np.array([kept["about"]])
                yes = np.where(about == code, np.array([kept["own"]]), np.array([kept["other"]]))
                return categorical.packed(design, about, yes)

    def to_json(self) -> str:
        """Everything remembered, to be stored on the device. Who reads it can undo the noise."""
        return json.dumps({"design": to_json(self.design), "kept": self._kept})

    @staticmethod
    def from_json(text: str | bytes) -> "Memory":
        """Go on where a device stopped."""
        try:
            data = json.loads(text)
            memory = Memory(from_json(data["design"]))
            if {k: type(v) for k, v in data["kept"].items()} != {k: type(v) for k, v in memory._kept.items()}:
                raise _unread("what is kept is of another kind")
            memory._kept = data["kept"]
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise _unread(type(error).__name__) from error
        return memory


def _unread(why: str) -> UnreadableDescriptionError:
    return UnreadableDescriptionError(why, what="The memory of a device", writer="Memory.to_json()")


def _drawn(design: Rappor | Duchi | DBitFlip, bits: Bits) -> dict[str, Any]:
    """What is drawn once in a device's life."""
    match design:
        case Rappor():
            return {"cohort": uniform(design.cohorts, None, bits), "filters": {}}
        case Duchi():
            ends = numeric.randomise_duchi(design, np.array([0.0, 1.0]), bits)
            return {"alpha": uniform(STEPS, None, bits), "ends": ends.tolist()}
        case DBitFlip():
            about = categorical.asked(design, 1, bits)
            own, other = categorical.answers(design, about.shape, bits)
            return {"about": about[0].tolist(), "own": own[0].tolist(), "other": other[0].tolist()}

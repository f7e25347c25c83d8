"""The device's side of a search for frequent strings: it answers one question about its string, and no second."""

from typing import Any, final

from defocus.errors import AskedAgainError, InvalidParameterError, Number, UnsuitableQuestionError, whole
from defocus.local.clients.client import Client
from defocus.local.designs import Design, from_json
from defocus.local.domains import Categories, plain_text
from defocus.noise import Bits

__all__ = ["END", "PrefixClient", "checked_question", "padded"]

END = "\0"
"""Fills strings up to their full length; no character of the alphabet."""


def padded(value: Any, alphabet: str, length: int) -> str:
    """A string with its end marked; for whatever is no string of the alphabet, a text that no question names."""
    text = plain_text(value, length)
    return "" if text is None or not set(text) <= set(alphabet) else text + END * (length - len(text))


def checked_question(design: Design, *, alphabet: str, reach: int, epsilon: Number) -> Design:
    """The design of a question, if it costs no more than was agreed on and is about prefixes of this length."""
    if design.epsilon > epsilon:
        raise UnsuitableQuestionError(f"it costs epsilon = {float(design.epsilon):g}, more than {float(epsilon):g}")
    domain = design.domain
    if not isinstance(domain, Categories) or domain.labels is None or domain.outside != "other":
        raise UnsuitableQuestionError("it is not about labelled prefixes with a bucket for all others")
    letters = {*alphabet, END}
    if any(len(label) != reach or not letters.issuperset(label) for label in domain.labels):
        raise UnsuitableQuestionError(f"its labels are not {reach} characters of the alphabet")
    return design


@final
class PrefixClient:
    """One person's device. It answers the first question that suits the protocol, and refuses all others.

    Guarantee:
        All that leaves the device is one report, under a design of at most ``epsilon``; so a person pays epsilon,
        whatever the server asks. A string outside of the alphabet is answered by "other".
    Assumes:
        The object lives as long as the search: a device that may be restarted notes elsewhere that it was asked.
    """

    __slots__ = ("_alphabet", "_epsilon", "_length", "_step", "_text", "asked")

    def __init__(self, value: Any, *, alphabet: str, length: int, epsilon: Number, step: int = 1) -> None:
        self._alphabet, self._length, self._step, self._epsilon = alphabet, length, step, epsilon
        self._text = padded(value, alphabet, length)
        self.asked = False

    def report(self, group: int, question: str | bytes, *, nonce: bool = False, bits: Bits | None = None) -> bytes:
        """The answer to a ``question``, given by its description, for the people of this ``group``."""
        if self.asked:
            raise AskedAgainError
        if whole("group", group) * self._step >= self._length:
            raise InvalidParameterError(f"There is no group {group}.", fix="count groups from 0.")
        reach = min((group + 1) * self._step, self._length)
        design = checked_question(from_json(question), alphabet=self._alphabet, reach=reach, epsilon=self._epsilon)
        self.asked = True
        return Client(design).report(self._text[:reach], nonce=nonce, bits=bits)

"""Rounds for tests."""

from defocus.local import oracle
from defocus.local.shuffling import Analyser, Key, Round, Shuffler
from defocus.local.shuffling.rounds import Protocol


def parties(users: int = 20, epsilon: float = 2, name: str = "k-rr", size: int = 4) -> tuple[Round, Shuffler, Analyser]:
    """A round with both of its parties."""
    mixer, reader = Key.generate(), Key.generate()
    described = Round(oracle(name, size, epsilon).design, users, mixer.public, reader.public)
    return described, Shuffler(described, mixer), Analyser(described, reader)


def protocol_parties(asked: Protocol, users: int | None = None) -> tuple[Round, Shuffler, Analyser]:
    """A round of a protocol of several messages, or of crowds, with both of its parties."""
    mixer, reader = Key.generate(), Key.generate()
    described = Round(asked, users or asked.users, mixer.public, reader.public)
    return described, Shuffler(described, mixer), Analyser(described, reader)

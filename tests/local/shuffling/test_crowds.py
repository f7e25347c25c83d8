"""Crowds: what is handed on, and that its law keeps the promise for all small neighbours."""

import itertools
import math
from collections import Counter

import numpy as np
import pytest
from tests.local.shuffling.making import protocol_parties

from defocus.audit import batched, lower_bound
from defocus.errors import InvalidParameterError, UnsupportedEventError
from defocus.local.shuffling import Crowds, Key, seal
from defocus.local.shuffling.envelopes import seal_alike
from defocus.noise.testing import seeded
from defocus.privacy import account


def masses(asked: Crowds) -> dict[int, float]:
    """The law of the noise, from its description."""
    weights = {z: math.exp(-float(asked.epsilon) * abs(z) / 2) for z in range(-asked.reach, asked.reach + 1)}
    total = sum(weights.values())
    return {z: weight / total for z, weight in weights.items()}


def crowd_law(asked: Crowds, n: int) -> dict[int | None, float]:
    """The law of what is seen of a crowd of n: nothing, or a noisy number."""
    law: dict[int | None, float] = {None: 0.0}
    for z, mass in masses(asked).items():
        seen = n + z if n and n + z > asked.reach and n + z >= asked.threshold else None
        law[seen] = law.get(seen, 0.0) + mass
    return law


@pytest.mark.parametrize(("epsilon", "delta"), [(1, 0.05), (3, 0.01), (0.4, 0.2), (6, 1e-4)])
@pytest.mark.parametrize("threshold", [0, 4])
def test_all_neighbours_of_small_rounds_are_as_close_as_promised(epsilon: float, delta: float, threshold: int) -> None:
    """Three texts, up to five users: the hockey stick of the two crowds that differ, over all outcomes."""
    asked = Crowds(4, 5, epsilon, delta, threshold)
    sizes = {n: crowd_law(asked, n) for n in range(6)}
    worst = 0.0
    for n, m in itertools.product(range(1, 6), range(5)):  # one user leaves a crowd of n for one of m
        for p, q in (((n, m), (n - 1, m + 1)), ((n - 1, m + 1), (n, m))):
            outcomes = itertools.product({*sizes[p[0]], *sizes[q[0]]}, {*sizes[p[1]], *sizes[q[1]]})
            excess = math.fsum(
                max(
                    0.0,
                    sizes[p[0]].get(a, 0) * sizes[p[1]].get(b, 0)
                    - math.exp(epsilon) * sizes[q[0]].get(a, 0) * sizes[q[1]].get(b, 0),
                )
                for a, b in outcomes
            )
            worst = max(worst, excess)
    assert worst <= delta
    if not threshold:
        assert worst > delta / 10


@pytest.mark.parametrize(("epsilon", "delta"), [(1, 1e-6), (0.1, 1e-9), (4, 0.01)])
def test_the_reach_is_the_least(epsilon: float, delta: float) -> None:
    asked = Crowds(4, 5, epsilon, delta)
    assert masses(asked)[asked.reach] <= delta / 2
    fewer = [math.exp(-epsilon * abs(z) / 2) for z in range(-asked.reach + 1, asked.reach)]
    assert fewer[0] / sum(fewer) > delta / 2
    law = masses(asked)
    assert asked.error**2 == pytest.approx(sum(z * z * mass for z, mass in law.items()), rel=1e-9)


@pytest.mark.statistical
def test_numbers_have_the_stated_law_and_no_other() -> None:
    asked, bits = Crowds(4, 5, 1, 0.05), seeded(3)
    size = asked.reach  # a crowd that is handed on by chance
    seen = Counter(dict(asked.handed_on([b"a"] * size, bits)).get(b"a") for _ in range(4000))

    def distance(law: dict[int | None, float]) -> float:
        return sum((seen[each] - 4000 * mass) ** 2 / (4000 * mass) for each, mass in law.items() if mass > 2e-3)

    assert distance(crowd_law(asked, size)) < 60
    assert distance(crowd_law(asked, size + 1)) > 200


@pytest.mark.slow
@pytest.mark.statistical
def test_the_auditor_finds_no_more_than_was_promised_and_catches_noise_without_a_threshold() -> None:
    bits = seeded(5)

    def seen(asked: Crowds, mine: bytes, n: int) -> list[int]:
        """What is told of a text that one user alone sent or did not."""
        return [dict(asked.handed_on([b"b"] * 3 + [mine], bits)).get(b"a", 0) for _ in range(n)]

    asked = Crowds(4, 4, 1, 0.05)
    fair = lower_bound(batched(lambda mine, n: seen(asked, mine, n)), (b"a", b"c"), 4000, claimed=1, delta=0.05)
    assert fair.verdict != "violation"
    low = Crowds(4, 4, 1, 0.9)
    broken = lower_bound(batched(lambda mine, n: seen(low, mine, n)), (b"a", b"c"), 4000, claimed=1, delta=0.05)
    assert broken.verdict == "violation"


def test_the_event_is_for_a_text_replaced() -> None:
    event = Crowds(4, 100, 1, 1e-6).event
    assert account(event, "basic", "replace").epsilon(1e-6) <= 1 + 1e-9
    with pytest.raises(UnsupportedEventError, match="replace=True"):
        account(event)


@pytest.mark.parametrize("value", ["", "é" * 9, "x" * 17, "\0", "a\0b", None, 3, b"text", "\ud800", float("nan")])
def test_every_value_is_a_message_of_one_length(value: object) -> None:
    (message,) = Crowds(16, 10, 1, 1e-6).client().report(value)
    assert len(message) == 16
    (again,) = Crowds(16, 10, 1, 1e-6).client().report("straße")
    assert again.rstrip(b"\0").decode() == "straße"


def test_only_large_crowds_reach_the_analyser() -> None:
    asked = Crowds(16, 300, 1, 1e-6)
    described, mixer, reader = protocol_parties(asked)
    sent = ["common"] * 200 + ["known"] * 90 + [f"rare {i}" for i in range(10)]
    for text in sent:
        assert mixer.accept(described.report(text)) is None
    batch = mixer.release()
    assert batch is not None
    found = reader.open(batch)
    assert {message.rstrip(b"\0") for message in found.messages} == {b"common", b"known"}
    assert found.users == 300
    estimate = reader.count(batch).estimate()
    assert estimate.labels == ("common", "known")
    assert np.abs(estimate.counts - [200, 90]).max() <= asked.reach
    assert estimate.reports == 300


def test_a_crowd_is_seen_by_the_shuffler_alone_and_not_from_round_to_round() -> None:
    """Equal texts look alike to who opens an envelope, and to nobody on the way, nor in another round."""
    described, mixer, _ = protocol_parties(Crowds(16, 2, 1, 1e-6))
    other, _, _ = protocol_parties(Crowds(16, 2, 1, 1e-6))
    first, second = described.report("same"), described.report("same")
    assert first != second
    assert [mixer.accept(first), mixer.accept(second), mixer.accept(second)] == [None, None, "replayed"]
    assert len(set(mixer._held)) == 1
    guess = seal_alike(b"same".ljust(16, b"\0"), described.analyser, b"report" + described.digest)
    assert guess == mixer._held[0]  # as is said: the shuffler can test a guess
    assert b"same" not in guess
    assert guess != seal_alike(b"same".ljust(16, b"\0"), other.analyser, b"report" + other.digest)


def test_hostile_members_cannot_mark_copies_or_break_a_count() -> None:
    """Whoever seals another text, or garbage, is in a crowd of its own."""
    asked = Crowds(8, 100, 1, 1e-6)
    described, mixer, reader = protocol_parties(asked)
    for _ in range(80):
        mixer.accept(described.report("fine"))
    context, secret = b"envelope" + described.digest, Key.generate().public
    for i in range(60):
        inner = seal_alike(b"fine\0\0\0" + bytes([i]), secret if i % 2 else described.analyser, b"report")
        assert mixer.accept(seal(bytes(15) + bytes([i]) + inner, described.shuffler, context)) is None
    for i in range(60):
        inner = b"\xff" * described.sealed_length
        assert mixer.accept(seal(bytes(14) + bytes([1, i]) + inner, described.shuffler, context)) is None
    batch = mixer.release()
    assert batch is not None
    server = reader.count(batch)
    assert server.estimate().labels == ("fine",)
    assert server.rejected == 1


@pytest.mark.parametrize(
    "change", [{"length": 0}, {"length": 5000}, {"users": 0}, {"epsilon": 0}, {"delta": 0}, {"threshold": -1}]
)
def test_bad_parameters_are_refused(change: dict[str, float]) -> None:
    with pytest.raises(InvalidParameterError):
        Crowds(**({"length": 4, "users": 10, "epsilon": 1, "delta": 0.1} | change))  # type: ignore[arg-type]  # one of them is bad

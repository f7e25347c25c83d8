import hashlib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.local.shuffling.making import parties, protocol_parties

from defocus.errors import InvalidParameterError, SealError
from defocus.local import oracle
from defocus.local.domains import Interval
from defocus.local.shuffling import Analyser, Key, MultiMessageSum, Shuffler, seal
from defocus.noise.testing import seeded


def test_nothing_is_released_below_the_threshold_and_everything_at_it() -> None:
    described, mixer, reader = parties(users=20)
    envelopes = described.envelopes(oracle("k-rr", 4, 2).encode([1] * 20))
    for envelope in envelopes[:-1]:
        assert mixer.accept(envelope) is None
    assert not mixer.ready
    assert mixer.release() is None
    assert mixer.accept(envelopes[-1]) is None
    batch = mixer.release()
    assert batch is not None
    assert len(reader.open(batch).messages) == 20
    assert mixer.release() is None


def test_the_order_is_random_and_every_report_arrives_once() -> None:
    described, _, reader = parties(users=30, epsilon=30, size=64)
    asked = oracle("k-rr", 64, 30)
    reports = asked.encode(list(range(30)))
    orders = []
    for seed in (1, 2):
        key = Key.generate()
        again = type(described)(described.design, 30, key.public, reader.key.public)
        mixer = Shuffler(again, key)
        for envelope in again.envelopes(reports):
            mixer.accept(envelope)
        batch = mixer.release(seeded(seed))
        assert batch is not None
        orders.append(list(type(reader)(again, reader.key).open(batch).messages))
    assert orders[0] != orders[1]
    assert sorted(orders[0]) == sorted(orders[1]) == sorted(reports)


@pytest.mark.statistical
def test_every_place_is_equally_likely_for_the_first_to_arrive() -> None:
    described, _, reader = parties(users=5, epsilon=30, size=8)
    asked = oracle("k-rr", 8, 30)
    reports = asked.encode([7, 0, 0, 0, 0])
    first = next(iter(reports))
    places = np.zeros(5)
    source = seeded(3)
    key = Key.generate()
    again = type(described)(described.design, 5, key.public, reader.key.public)
    for _ in range(200):
        mixer = Shuffler(again, key)
        for envelope in again.envelopes(reports):
            mixer.accept(envelope)
        batch = mixer.release(source)
        assert batch is not None
        places[type(reader)(again, reader.key).open(batch).messages.index(first)] += 1
    assert ((places - 40) ** 2 / 40).sum() < 18.5  # chi-square with 4 degrees of freedom, one in a thousand


def test_a_copy_is_rejected_even_after_its_batch() -> None:
    described, mixer, _ = parties(users=1)
    (envelope,) = described.envelopes(oracle("k-rr", 4, 2).encode([1]))
    assert mixer.accept(envelope) is None
    assert mixer.release() is not None
    assert mixer.accept(envelope) == "replayed"


def test_a_copy_is_rejected_after_a_restart_too(tmp_path: Path) -> None:
    """A copy in a second batch would show the analyser which report is its sender's."""
    described, mixer, reader = parties(users=2)
    seen, secret = tmp_path / "seen", mixer._key.to_bytes()
    first, second, third = described.envelopes(oracle("k-rr", 4, 2).encode([1, 2, 3]))
    for missing in (None, tmp_path / "other"):
        with pytest.raises(InvalidParameterError, match="used before"):
            Shuffler(described, Key.from_bytes(secret), marks=missing)
    one = Shuffler(described, mixer._key, marks=seen)
    assert [one.accept(first), one.accept(second)] == [None, None]
    assert one.release() is not None
    seen.write_bytes(seen.read_bytes() + b"torn")  # as by a crash
    two = Shuffler(described, Key.from_bytes(secret), marks=seen)
    assert [two.accept(first), two.accept(third), two.accept(third)] == ["replayed", None, "replayed"]
    again = Shuffler(described, Key.from_bytes(secret), marks=seen)
    assert [again.accept(each) for each in (first, second, third)] == ["replayed"] * 3
    assert reader.key.public == described.analyser


def test_what_was_noted_tells_the_analyser_nothing(tmp_path: Path) -> None:
    """The file keeps the order of arrival; only with the shuffler's key can reports be found in it."""
    described, mixer, _ = parties(users=1)
    mixer = Shuffler(described, mixer._key, marks=tmp_path / "seen")
    envelope = described.envelopes(oracle("k-rr", 4, 2).encode([1]))[0]
    inner = mixer._key.open(envelope, b"envelope" + described.digest)
    mixer.accept(envelope)
    noted = (tmp_path / "seen").read_bytes()
    plain = [hashlib.sha256(inner).digest(), hashlib.blake2b(inner, digest_size=16).digest()]
    assert len(noted) == 16
    assert not any(noted == each[:16] for each in plain)


def test_what_cannot_be_noted_is_not_accepted(tmp_path: Path) -> None:
    described, mixer, _ = parties(users=1)
    mixer = Shuffler(described, mixer._key, marks=tmp_path / "seen")
    assert (tmp_path / "seen").read_bytes() == b""
    mixer._marks = tmp_path / "gone" / "seen"
    assert mixer.accept(described.envelopes(oracle("k-rr", 4, 2).encode([1]))[0]) == "full"
    assert mixer.release() is None


@pytest.mark.statistical
def test_what_waits_is_in_no_order() -> None:
    """Every place is equally likely for the first to arrive, also before a batch is made."""
    described, mixer, reader = parties(users=5)
    places = np.zeros(5)
    envelopes = [described.envelopes(oracle("k-rr", 4, 2).encode([1] * 5)) for _ in range(60)]
    for each in envelopes:
        mixer = Shuffler(described, mixer._key)
        for envelope in each:
            mixer.accept(envelope)
        first = mixer._key.open(each[0], b"envelope" + described.digest)
        places[mixer._held.index(first)] += 1
    assert places.max() < 40  # 12 are expected, 40 happen once in 10^14, and 60 of 60 in the order of arrival
    assert reader.round == described


def test_a_copy_in_a_new_envelope_is_a_copy() -> None:
    described, mixer, _ = parties(users=2)
    inner = seal(b"x" * (described.sealed_length - 48), described.analyser, b"report" + described.digest)
    again = [seal(inner, described.shuffler, b"envelope" + described.digest) for _ in range(2)]
    assert [mixer.accept(one) for one in again] == [None, "replayed"]


@given(st.binary(max_size=400))
def test_garbage_is_rejected_and_counted(garbage: bytes) -> None:
    _, mixer, _ = parties()
    assert mixer.accept(garbage) in {"truncated", "oversized", "unreadable"}
    assert sum(mixer.rejected.values()) == 1
    assert mixer.accept(b"\0" * mixer.round.envelope_length) == "unreadable"


def test_a_flood_ends_at_the_limit() -> None:
    described, mixer, _ = parties(users=3)
    mixer = Shuffler(described, mixer._key, most=4)
    envelopes = described.envelopes(oracle("k-rr", 4, 2).encode([1] * 6))
    assert [mixer.accept(e) for e in envelopes] == [None] * 4 + ["full"] * 2
    assert mixer.rejected == {"full": 2}


def test_the_shuffler_cannot_read_what_it_holds() -> None:
    described, mixer, _ = parties(users=1)
    asked = oracle("k-rr", 4, 2)
    mixer.accept(described.envelopes(asked.encode([1]))[0])
    (held,) = mixer._held
    assert asked.design.digest not in held


def test_another_key_is_refused() -> None:
    described, _, _ = parties()
    with pytest.raises(InvalidParameterError, match="shuffler key"):
        Shuffler(described, Key.generate())


def test_a_batch_is_counted_like_the_reports_it_holds() -> None:
    described, mixer, reader = parties(users=200, epsilon=3)
    asked = oracle("k-rr", 4, 3)
    reports = asked.encode([2] * 200, seeded(5))
    for envelope in described.envelopes(reports):
        mixer.accept(envelope)
    batch = mixer.release()
    assert batch is not None
    assert asked.estimate(reader.count(batch)).counts.tolist() == asked.estimate(reports).counts.tolist()


def test_reports_that_do_not_open_are_counted_as_rejected() -> None:
    described, mixer, reader = parties(users=2)
    good = described.envelopes(oracle("k-rr", 4, 2).encode([1]))[0]
    bad = seal(b"x" * described.sealed_length, described.shuffler, b"envelope" + described.digest)
    assert [mixer.accept(one) for one in (good, bad)] == [None, None]
    batch = mixer.release()
    assert batch is not None
    assert reader.open(batch).unreadable == 1
    assert sum(reader.count(batch).rejected.values()) == 1


@given(st.binary(max_size=300))
def test_a_batch_that_is_none_is_refused(garbage: bytes) -> None:
    described, _, reader = parties()
    with pytest.raises(SealError):
        reader.open(garbage)
    with pytest.raises(SealError):
        reader.open(seal(garbage, described.analyser, b"batch" + described.digest))


def test_a_batch_below_the_threshold_is_refused() -> None:
    described, _, reader = parties(users=2)
    few = bytes((1,)) + (0).to_bytes(8, "little")
    with pytest.raises(SealError):
        reader.open(seal(few, described.analyser, b"batch" + described.digest))


def test_another_key_of_the_analyser_is_refused() -> None:
    described, _, _ = parties()
    with pytest.raises(InvalidParameterError, match="analyser key"):
        Analyser(described, Key.generate())


SUM = MultiMessageSum(Interval(0, 1), users=20, epsilon=3, delta=0.01, levels=2)


def test_several_messages_of_each_user_are_released_when_enough_users_are_complete() -> None:
    described, mixer, reader = protocol_parties(SUM, users=25)
    for i in range(24):
        assert mixer.accept(described.report(i % 2)) is None
    assert not mixer.ready
    assert mixer.accept(described.report(1)[:-1]) == "truncated"
    assert mixer.release() is None
    assert mixer.accept(described.report(0)) is None
    batch = mixer.release()
    assert batch is not None
    found = reader.open(batch)
    assert (len(found.messages), found.users, found.unreadable) == (25 * SUM.messages_per_user, 25, 0)
    assert reader.count(batch).users == 25
    assert mixer.release() is None


@pytest.mark.statistical
def test_messages_of_one_user_are_not_side_by_side_in_a_batch() -> None:
    """Of m messages each of n users in random order, one is followed by one of the same user in (m - 1)/(nm - 1)."""
    described, mixer, reader = protocol_parties(SUM)
    bits, m = seeded(8), SUM.messages_per_user
    envelopes = [described.report(1) for _ in range(20)]
    whose = {
        message: i
        for i, envelope in enumerate(envelopes)
        for message in described.split(mixer._key.open(envelope, b"envelope" + described.digest))
    }
    together = np.zeros(40)
    for run in range(40):
        mixer = Shuffler(described, mixer._key)
        for envelope in envelopes:
            mixer.accept(envelope)
        batch = mixer.release(bits)
        assert batch is not None
        body = reader.key.open(batch, b"batch" + described.digest)[9:]
        length = described.sealed_length
        order = np.array([whose[body[i : i + length]] for i in range(0, len(body), length)])
        together[run] = (order[1:] == order[:-1]).mean()
    share = (m - 1) / (20 * m - 1)
    assert abs(together.mean() - share) < 5 * np.sqrt(share / (20 * m - 1) / 40)


def test_users_who_seal_garbage_move_a_sum_by_no_more_than_messages_they_choose() -> None:
    described, mixer, reader = protocol_parties(SUM, users=22)
    m = SUM.messages_per_user
    for _ in range(20):
        mixer.accept(described.report(1))
    bad = [bytes([1]) * (m * described.sealed_length), described.enclosed([b"\7"] * m)]
    assert mixer.accept(seal(bad[0], described.shuffler, b"envelope" + described.digest)) is None
    assert mixer.accept(bad[1]) is None
    assert mixer.accept(bad[1]) == "replayed"
    batch = mixer.release()
    assert batch is not None
    server = reader.count(batch)
    assert (server.users, server.rejected, server.messages) == (22, 2 * m, 20 * m)
    assert abs(server.sum() - 20) < 2 * m + 8 * SUM.error


def test_a_round_of_several_messages_goes_on_rejecting_copies_after_a_restart(tmp_path: Path) -> None:
    described, mixer, _ = protocol_parties(SUM)
    seen, secret = tmp_path / "seen", mixer._key.to_bytes()
    envelope = described.report(1)
    assert Shuffler(described, mixer._key, marks=seen).accept(envelope) is None
    assert seen.stat().st_size == 16
    again = Shuffler(described, Key.from_bytes(secret), marks=seen)
    assert again.accept(envelope) == "replayed"
    assert not again._held

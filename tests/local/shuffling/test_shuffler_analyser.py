import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.local.shuffling.making import parties

from defocus.errors import InvalidParameterError, SealError
from defocus.local import oracle
from defocus.local.shuffling import Analyser, Key, seal
from defocus.noise.testing import seeded


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


def test_another_key_is_refused() -> None:
    described, _, _ = parties()
    with pytest.raises(InvalidParameterError, match="analyser key"):
        Analyser(described, Key.generate())

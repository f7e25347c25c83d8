import pytest

from defocus.errors import InvalidParameterError
from defocus.noise.testing import replay, seeded


def test_a_seed_repeats_itself_and_no_other() -> None:
    assert seeded(3).words(100).tolist() == seeded(3).words(100).tolist()
    assert seeded(3).words(100).tolist() != seeded(4).words(100).tolist()


def test_the_stream_of_a_seed_never_changes_between_versions() -> None:
    assert seeded(0).words(2).tolist() == [9692906767105748264, 7529171948540145977]


def test_words_and_integers_read_the_same_stream() -> None:
    first, second, third = seeded(9).words(3).tolist()
    bits = seeded(9)
    assert bits.integer(64) == first
    assert bits.integer(8) == second >> 56
    assert bits.words(1).tolist() == [third]
    assert seeded(9).integer(100) == (first << 64 | second) >> 28


def test_replayed_words_come_first() -> None:
    bits = replay([1, 2, 3], seeded(5))
    assert bits.integer(64) == 1
    assert bits.words(4).tolist() == [2, 3, *seeded(5).words(2).tolist()]


@pytest.mark.parametrize("seed", [-1, 1.0, "1", None, True])
def test_a_seed_is_a_whole_number(seed: object) -> None:
    with pytest.raises(InvalidParameterError, match="seed must be a whole number"):
        seeded(seed)  # type: ignore[arg-type]  # wrong on purpose

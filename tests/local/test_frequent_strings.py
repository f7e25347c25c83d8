from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from defocus.errors import AskedAgainError, InvalidParameterError
from defocus.local import oracle as dp_oracle
from defocus.local.domains import Categories
from defocus.local.estimates import Estimate
from defocus.local.frequent_strings import HeavyHitters, heavy_hitters, usual_step
from defocus.noise.testing import seeded
from defocus.privacy import events


@pytest.mark.statistical
def test_frequent_strings_are_found_with_their_counts_and_rare_ones_are_not() -> None:
    rng = np.random.default_rng(3)
    rare = ["".join(rng.choice(list("abcdef"), 5)) for _ in range(8000)]
    people = ["abba"] * 16_000 + ["fade"] * 12_000 + ["cafe"] * 10_000 + ["f"] * 9000 + rare
    found = heavy_hitters(people, alphabet="abcdef", length=5, epsilon=3, bits=seeded(5))
    assert found.keys["value"][:4] == ["abba", "fade", "cafe", "f"]
    for each, true in zip(found, (16_000, 12_000, 10_000, 9000), strict=False):
        assert abs(each["count"] - true) < 4 * (each["count_error"] + 5 * np.sqrt(true))


def test_steps_of_several_characters_ask_fewer_groups_more() -> None:
    people = ["abba"] * 5000 + ["fade"] * 5000
    found = heavy_hitters(people, alphabet="abdef", length=5, epsilon=4, step=2, keep=4, bits=seeded(6))
    assert sorted(found.keys["value"][:2]) == ["abba", "fade"]
    assert HeavyHitters("abdef", 5, 4, step=2).groups == 3


def test_where_nothing_stands_out_nothing_is_found() -> None:
    assert not heavy_hitters([], alphabet="ab", length=3, epsilon=1)
    assert heavy_hitters(["ab"], alphabet="ab", length=3, epsilon=1, bits=seeded(1)) is not None


def test_everyone_pays_epsilon_once() -> None:
    assert HeavyHitters("ab", 9, 2).event == events.Pure(2)


def test_the_next_question_is_about_continuations_only() -> None:
    labels = HeavyHitters("ab", 3, 1, step=1).oracle(1, ["a", "\0"]).domain.labels
    assert labels == ("aa", "ab", "a\0", "\0\0")


@pytest.mark.parametrize("value", ["abc", "aaaa", 3, None, b"a", "a\0", ["a"], float("nan")])
def test_what_is_no_string_of_the_alphabet_is_other_and_never_silent(value: Any) -> None:
    protocol = HeavyHitters("ab", 3, 30, step=1)
    for group in range(3):
        oracle = protocol.oracle(group, ["a" * group])
        found = oracle.estimate(protocol.client(group, oracle, [value] * 200, seeded(1)))
        assert found.label(int(np.argmax(found.counts))) == "other"
    assert heavy_hitters([value], alphabet="ab", length=3, epsilon=1) is not None


def test_a_device_answers_one_question_of_its_protocol_and_no_other() -> None:
    protocol = HeavyHitters("ab", 3, Fraction(1, 10), step=1)
    good = protocol.oracle(2, ["aa", "ab"])
    device = protocol.device("aab")
    assert good.server().add(device.report(2, good.to_json()))
    with pytest.raises(AskedAgainError, match="once"):
        device.report(2, good.to_json())
    bad = [
        dp_oracle("k-rr", Categories.of(["aaa", "bbb"], outside="other"), 32),  # more than agreed on
        dp_oracle("k-rr", Categories.of(["aa", "bb"], outside="other"), 0.1),  # prefixes of another length
        dp_oracle("k-rr", Categories.of(["aaa", "xyz"], outside="other"), 0.1),  # another alphabet
        dp_oracle("k-rr", Categories.of(["aaa", "bbb"]), 0.1),  # nothing for all others
        dp_oracle("k-rr", 5, 0.1),
    ]
    for asked in bad:
        fresh = protocol.device("aab")
        with pytest.raises(InvalidParameterError):
            fresh.report(2, asked.to_json())
        with pytest.raises(InvalidParameterError):
            protocol.client(2, asked, ["aab"])
        assert fresh.report(2, good.to_json())
    with pytest.raises(InvalidParameterError, match="group"):
        protocol.device("aab").report(3, good.to_json())


@pytest.mark.statistical
def test_errors_include_who_was_in_the_last_group() -> None:
    """At a large epsilon reports have hardly any noise, and the choice of people is all that is left."""
    people, bits = ["ab"] * 4800 + ["cd"] * 1200, seeded(3)
    z = []
    for _ in range(80):
        found = heavy_hitters(people, alphabet="abcd", length=2, epsilon=8, bits=bits)
        (hit,) = (each for each in found if each["value"] == "ab")
        z.append((hit["count"] - 4800) / hit["count_error"])
    assert np.mean(np.square(z)) == pytest.approx(1, abs=4 * np.sqrt(2 / 80))


@pytest.mark.parametrize(
    "fields",
    [
        {"alphabet": ""},
        {"alphabet": "aa"},
        {"alphabet": "a\0"},
        {"alphabet": 3},
        {"length": 0},
        {"step": 0},
        {"keep": 0},
        {"keep": 10**6, "step": 3},
        {"epsilon": -1},
    ],
)
def test_parameters_without_meaning_are_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(InvalidParameterError):
        HeavyHitters(**{"alphabet": "ab", "length": 3, "epsilon": 1, **fields})


@pytest.mark.statistical
def test_what_noise_alone_makes_is_not_kept() -> None:
    """Everyone has another string: hardly any of the 16 that could be kept stand out."""
    rng = np.random.default_rng(9)
    people = ["".join(rng.choice(list("abcdefgh"), 6)) for _ in range(4000)]
    found = heavy_hitters(people, alphabet="abcdefgh", length=6, epsilon=1, step=2, bits=seeded(2))
    assert len(found) <= 4


@pytest.mark.parametrize("given", ["abcabc", b"abc", 5, None])
def test_one_string_is_no_list_of_strings(given: Any) -> None:
    with pytest.raises(InvalidParameterError, match="one for each person"):
        heavy_hitters(given, alphabet="abc", length=3, epsilon=1)


def test_the_string_other_is_a_string_and_not_the_bucket() -> None:
    found = Estimate(np.array([900.0, 5.0, 2000.0]), np.full(3, 100.0), 3000, ("other", "apple"), others=True)
    assert HeavyHitters("aehloprt", 5, 1, step=5, keep=1).kept(found) == ["other"]


def test_a_step_is_chosen_by_what_is_public_and_devices_have_the_same() -> None:
    protocol = HeavyHitters("abcdef", 9, 1)
    assert (protocol.step, protocol.groups) == (3, 3)
    assert HeavyHitters("abcdef", 9, 1, keep=2000).step == 1
    assert heavy_hitters([], alphabet="abcdef", length=9, epsilon=1).reports == 0
    question = protocol.oracle(1, ["abc", "fff"])
    assert protocol.device("abcdef").report(1, question.to_json())
    for letters, length, keep in ((26, 6, 16), (2, 16, 16), (200, 4, 16), (5000, 3, 16), (2, 40, 1)):
        step = usual_step(letters, length, keep)
        assert step == 1 or keep * (letters + 1) ** step <= 1 << 15
        assert step == 1 or -(-length // (step - 1)) > -(-length // step)


@pytest.mark.statistical
def test_the_step_that_is_chosen_finds_more_than_single_characters() -> None:
    draw = np.random.default_rng(3)
    strings = ["".join(draw.choice(list("abcdefgh"), 6)) for _ in range(40)]
    people = [text for place, text in enumerate(strings) for _ in range(3000 // (place + 1))]
    chosen, single = (
        sum(
            len(set(strings[:10]) & set(found.keys["value"]))
            for seed in range(4)
            for found in [heavy_hitters(people, alphabet="abcdefgh", length=6, epsilon=2, bits=seeded(seed), **step)]
        )
        for step in ({}, {"step": 1})
    )
    assert chosen > 1.3 * single


@pytest.mark.statistical
def test_groups_are_as_large_as_their_prefixes_are_long() -> None:
    protocol = HeavyHitters("ab", 5, 1, step=2)
    sizes = np.bincount(protocol.deal(110_000, seeded(4)), minlength=3)
    expected = np.array([20_000, 40_000, 50_000])
    assert np.all(np.abs(sizes - expected) < 5 * np.sqrt(expected))


def test_more_prefixes_are_gone_on_with_than_strings_are_found() -> None:
    protocol = HeavyHitters("ab", 4, 1, step=2, keep=2)
    counts = np.append(np.arange(100.0, 0, -10), 0)
    long, short = (tuple(f"{i:0{length}}" for i in range(10)) for length in (4, 2))
    strings, prefixes = (Estimate(counts, np.full(11, 625.0), 500, texts, others=True) for texts in (long, short))
    assert protocol.kept(strings) == ["0000", "0001"]
    assert protocol.kept(prefixes) == ["00", "01", "02", "03", "04", "05", "06"]  # eight at most, above the limit
    assert HeavyHitters("ab", 4, 1, step=2, keep=1).kept(prefixes) == ["00", "01", "02", "03"]

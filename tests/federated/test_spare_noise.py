"""Noise for drop-outs: what is too much of it is taken off, and never more, whatever a coordinator says."""

import itertools
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from tests.federated.test_secure_aggregation import SPOKEN, agreed, begun, known_keys

from defocus.errors import InvalidParameterError, ProtocolError
from defocus.federated import Coordinator, Identity, Party, SumPlan, masks
from defocus.federated.messages import HEAD, SIGNATURE, Kind, bitmap, heading, table
from defocus.federated.secret_sharing import SHARE
from defocus.federated.sum_plan import counted_shares, too_few
from defocus.mechanisms import Gaussian, Laplace
from defocus.mechanisms.noise_shares import NoiseShare, SpareNoise
from defocus.noise.testing import seeded

PLANS = [
    (number, gone, bad)
    for number, gone, bad in itertools.product(range(4, 7), range(1, 3), range(3))
    if not too_few(number, gone, bad)
]


def with_spare(number: int, gone: int, bad: int, law: str = "laplace", **how: Any) -> tuple[SumPlan, list[Identity]]:
    spare = SpareNoise(law, Fraction(1000), counted_shares(number, gone, bad), gone)
    return agreed(number, dropouts=gone, colluding=bad, spare=spare, **{"bits": 64, **how})


def summed(
    plan: SumPlan, identities: list[Identity], silent: dict[int, Kind], vectors: Any = None, seeds: Any = None
) -> Coordinator:
    """The whole protocol; some do not send a message, or any after it. Some have these seeds of spare noise."""
    coordinator = Coordinator(plan)
    given_to = np.zeros((len(identities), plan.length), np.int64) if vectors is None else vectors
    parties = [Party(plan, n, own, given_to[n - 1]) for n, own in enumerate(identities, 1)]
    for n, own in (seeds or {}).items():
        parties[n - 1]._spare = own
    said = dict.fromkeys(range(1, 1 + len(parties)), b"")
    while coordinator.due is not None:
        for n, text in said.items():
            if silent.get(n, Kind.REVEALED + 1) > coordinator.due:
                coordinator.accept(parties[n - 1].receive(text) if text else parties[n - 1].begin())
        said = coordinator.advance()
    return coordinator


@pytest.mark.parametrize("agreed_on", PLANS, ids=str)
def test_for_every_set_of_survivors_the_shares_that_nobody_knows_are_all_of_the_noise(agreed_on: Any) -> None:
    """In fractions of the noise, whoever of the survivors tells what they know."""
    number, gone, bad = agreed_on
    spare = SpareNoise("laplace", Fraction(9), counted_shares(number, gone, bad), gone)
    known = max(1, bad)
    for missing in range(gone + 1):
        share = Fraction(1, spare.base) + sum(Fraction(1, spare.shape(part)) for part in range(1, missing + 1))
        for left in itertools.combinations(range(number), number - missing):
            for tells in itertools.combinations(range(number), known):
                hidden = share * len(set(left) - set(tells))
                assert hidden >= 1
                assert (hidden == 1) is (set(tells) <= set(left))  # and no more than is needed
        told = NoiseShare(Laplace(scale=9), spare.honest, number, lambda own, _: own, gone, [missing].pop)
        assert told.variance == pytest.approx(float(share * (number - missing)) * told.mechanism.variance)
    assert Fraction(1, spare.base) + sum(Fraction(1, spare.shape(k + 1)) for k in range(gone)) == Fraction(
        1, spare.honest
    )


@pytest.mark.parametrize("agreed_on", PLANS, ids=str)
def test_from_the_sum_of_every_set_of_survivors_what_is_too_much_is_taken_off(
    agreed_on: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Parts are numbers that tell which they are: of each survivor those are left that stand for who is gone."""
    number, gone, bad = agreed_on
    monkeypatch.setattr(SpareNoise, "part", lambda self, part, seed, size: np.full(size, 1000**part, np.int64))  # noqa: ARG005
    plan, identities = with_spare(number, gone, bad, length=2)
    vectors = np.arange(2 * number).reshape(number, 2)
    for missing in range(gone + 1):
        for out in itertools.combinations(range(1, number + 1), missing):
            silent = dict.fromkeys(out, Kind.MASKED if sum(out) % 2 else Kind.SHARES)
            left = [n for n in range(1, number + 1) if n not in out]
            silent |= dict.fromkeys(left[: gone - missing], Kind.REVEALED)
            exact = vectors[[n - 1 for n in left]].sum(0)
            noise = len(left) * sum(1000**part for part in range(1, missing + 1))
            assert summed(plan, identities, silent, vectors).sum().tolist() == (exact + noise).tolist()


@pytest.mark.parametrize("law", ["laplace", "gaussian"])
@pytest.mark.parametrize("kind", [*SPOKEN[2:], None])
def test_who_drops_out_after_its_vector_leaves_no_noise_behind_and_takes_none_away(law: str, kind: Any) -> None:
    plan, identities = with_spare(5, 1, 0, law)
    coordinator = summed(plan, identities, {} if kind is None else {3: kind}, np.full((5, 3), 7))
    if kind is Kind.MASKED:
        assert coordinator.survivors == {1, 2, 4, 5}
        assert coordinator.sum().tolist() != [28] * 3
    else:
        assert coordinator.sum().tolist() == [35] * 3


@pytest.mark.statistical
@pytest.mark.parametrize("mechanism", [Laplace(scale=5), Gaussian(sigma=100)], ids=["laplace", "gaussian"])
@pytest.mark.parametrize("missing", [0, 1, 2])
def test_what_a_colluding_survivor_does_not_know_of_the_noise_has_the_declared_law_and_no_other(
    mechanism: Laplace | Gaussian, missing: int
) -> None:
    """It takes off all that it drew itself. A scale that is 5 % off does not fit, of the answer as of what is left."""
    number, gone = 7, 2
    honest = counted_shares(number, gone, 1)
    share = NoiseShare(mechanism, honest, number, lambda own, _: own, gone, lambda: missing)
    plan, identities = agreed(number, dropouts=gone, colluding=1, bits=64, length=100_000, spare=share.spare)
    bits = seeded(9)
    vectors = [share.sample(np.zeros(plan.length, np.int64), bits) for _ in range(number)]
    known, seeds = vectors[-1].copy(), [bytes([part]) * 32 for part in (1, 2)]
    for part in range(1, missing + 1):
        known += plan.spare_noise(part + 1, seeds[part - 1]).view(np.int64)
    silent = dict.fromkeys(range(1, missing + 1), Kind.MASKED)
    total = summed(plan, identities, silent, vectors, {number: seeds}).sum()
    v = float(mechanism.scale) if isinstance(mechanism, Laplace) else float(mechanism.sigma**2 + 16**2)
    for scale, fits in ((1.0, True), (0.95, False), (1.05, False)):
        assert (_p_value(total - known, mechanism, v * (scale if v < 9 else scale**2)) > 1e-6) is fits
    declared = mechanism.variance * (number - missing) / (number - missing - 1)
    assert share.variance == pytest.approx(declared, rel=1e-6 if v < 9 else 0.03)
    assert abs(total.var() / share.variance - 1) < 0.03


def _p_value(found: Any, mechanism: Laplace | Gaussian, v: float) -> float:
    """Of chi-square: whether integers have the law with this scale, or variance."""
    x = np.arange(-4000, 4001)
    weights = np.exp(-np.abs(x) / v if isinstance(mechanism, Laplace) else -(x**2) / (2 * v))
    law = np.cumsum(weights / weights.sum())
    bins = np.minimum((law * 20).astype(int), 19)
    expected = np.bincount(bins, np.diff(law, prepend=0), 20) * len(found)
    counted = np.bincount(bins[found + 4000], minlength=20)
    return float(stats.chisquare(counted[expected > 0], expected[expected > 0]).pvalue)


def test_a_coordinator_that_hides_who_is_gone_gets_no_sum() -> None:
    """Four of five sign that all stayed. Seeds are shown then, but of the sum over four, masks of the fifth remain."""
    plan, identities = with_spare(5, 1, 1, length=1)
    _, parties, said = begun(plan, identities, Kind.MASKED)
    masked = {n: parties[n - 1].receive(message) for n, message in said.items()}
    named = heading(Kind.SURVIVORS, plan.session) + bitmap(range(1, 6), 5)
    signed = table((n, parties[n - 1].receive(named)[-SIGNATURE:]) for n in (1, 2, 3, 4))
    shown = [each.receive(heading(Kind.CONFIRMATIONS, plan.session) + signed) for each in parties[:4]]
    assert all(len(each) == HEAD + SIGNATURE + 2 * 4 * (2 + SHARE) for each in shown)
    left = np.zeros(1, np.uint64)
    for n in (1, 2, 3, 4):
        left += np.frombuffer(masked[n][HEAD:-SIGNATURE], "<u8")
        masks.add_masks(left, [(known_keys(parties[n - 1], parties[4], plan)[0], True)])
    assert abs(int(plan.signed(left)[0])) > 1 << 40  # uniform: below it with a probability of 2**-23
    for n in (1, 2, 3, 4):  # with the keys of the fifth, which nobody shows, it would be the sum with too little noise
        masks.add_masks(left, [(known_keys(parties[n - 1], parties[4], plan)[1], n < 5)])
    assert abs(int(plan.signed(left)[0])) < 1 << 30


@pytest.mark.parametrize("told", [[1, 2, 3, 4], [1, 2, 3, 4, 5]])
def test_seeds_are_shown_for_one_set_of_survivors_only(told: list[int]) -> None:
    """Half are told that all stayed, and half that one is gone: neither is signed by enough. Then not again."""
    plan, identities = with_spare(6, 1, 0)
    _, parties, said = begun(plan, identities, Kind.CONFIRMED)
    sets = {n: told if n <= 3 else [1, 2, 3, 4, 5, 6] for n in range(1, 6)}
    named = {n: heading(Kind.SURVIVORS, plan.session) + bitmap({*over, 5}, 6) for n, over in sets.items()}
    signed = {n: parties[n - 1].receive(named[n])[-SIGNATURE:] for n in sets}
    for some in ([1, 2, 3], [4, 5], [1, 2, 3, 4, 5]):
        text = heading(Kind.CONFIRMATIONS, plan.session) + table((n, signed[n]) for n in some)
        kept = parties[0].kept()
        with pytest.raises(ProtocolError, match=r"it takes 4|signature"):
            parties[0].receive(text)
        with pytest.raises(ProtocolError, match="no more"):
            parties[0].receive(text)
        parties[0] = Party.resumed(plan, 1, identities[0], kept)
    assert said


def revealed(number: int = 5, gone: int = 1) -> tuple[SumPlan, list[Identity], Coordinator, dict[int, bytes]]:
    plan, identities = with_spare(number, gone, 0)
    coordinator, parties, said = begun(plan, identities, Kind.REVEALED)
    return plan, identities, coordinator, {n: parties[n - 1].receive(text) for n, text in said.items()}


def test_a_wrong_share_of_a_seed_is_left_out_and_a_lacking_or_additional_one_refused() -> None:
    _, identities, coordinator, shown = revealed()
    body = bytearray(shown[1][HEAD:-SIGNATURE])
    for wrong in (body[: -(2 + SHARE)], body + body[-(2 + SHARE) :], body[: len(body) // 2], b""):
        with pytest.raises(ProtocolError, match=r"did not reveal|length"):
            coordinator.accept(identities[0].signed(shown[1][:HEAD], bytes(wrong)))
    body[-1] ^= 1
    coordinator.accept(identities[0].signed(shown[1][:HEAD], bytes(body)))
    for n in (2, 3, 4, 5):
        coordinator.accept(shown[n])
        with pytest.raises(ProtocolError, match="before"):
            coordinator.accept(shown[n])
    coordinator.advance()
    assert coordinator.sum().tolist() == [15] * 3


@given(st.integers(0, 5000), st.integers(0, 7), st.sampled_from(SPOKEN))
@settings(deadline=None, max_examples=60)
def test_one_flipped_bit_is_refused_also_with_spare_noise(place: int, bit: int, kind: Kind) -> None:
    plan, identities = AGREED
    coordinator, parties, said = begun(plan, identities, kind)
    message = bytearray(parties[0].begin() if kind is Kind.KEYS else parties[0].receive(said[1]))
    message[place % len(message)] ^= 1 << bit
    before = coordinator.missing
    with pytest.raises(ProtocolError):
        coordinator.accept(bytes(message))
    assert coordinator.missing == before


@given(st.integers(0, 4000), st.integers(0, 7), st.sampled_from([Kind.DIRECTORY, Kind.INBOX, Kind.CONFIRMATIONS]))
@settings(deadline=None, max_examples=60)
def test_a_party_refuses_one_flipped_bit_of_what_it_relies_on(place: int, bit: int, kind: Kind) -> None:
    plan, identities = AGREED
    _, parties, said = begun(plan, identities, Kind(kind + 1))
    message = bytearray(said[1])
    message[place % len(message)] ^= 1 << bit
    with pytest.raises(ProtocolError):
        parties[0].receive(bytes(message))


AGREED = with_spare(5, 1, 0)


def test_a_sum_is_another_one_with_other_spare_noise() -> None:
    plan, _ = AGREED
    assert plan.spare is not None
    others = [SpareNoise("gaussian", Fraction(1000), 3, 1), SpareNoise("laplace", Fraction(1001), 3, 1)]
    others += [SpareNoise("laplace", Fraction(1000), 2, 1)]
    made = {SumPlan(plan.parties, 3, 64, 1, 0, plan.name, spare).session for spare in (None, plan.spare, *others)}
    assert len(made) == 5
    for wrong in (SpareNoise("laplace", Fraction(1000), 4, 1), SpareNoise("laplace", Fraction(1000), 3, 2)):
        with pytest.raises(InvalidParameterError, match="does not fit"):
            SumPlan(plan.parties, 3, 64, 1, 0, plan.name, wrong)


def test_noise_for_drop_outs_is_the_same_wherever_it_is_drawn_and_new_for_each_part() -> None:
    for law in ("laplace", "gaussian"):
        spare = SpareNoise(law, Fraction(10**6), 3, 2)
        drawn = [spare.part(part, bytes([seed]) * 32, 500) for part in (1, 2) for seed in (1, 2)]
        assert len({each.tobytes() for each in drawn}) == 4
        assert spare.part(1, bytes([1]) * 32, 500).tobytes() == drawn[0].tobytes()
        assert SpareNoise.read(spare.to_bytes(), 3, 2) == spare
    fine = SpareNoise("laplace", Fraction(10, 3), 3, 2)
    assert SpareNoise.read(fine.to_bytes(), 3, 2) == fine


@pytest.mark.slow
def test_with_few_neighbours_among_many_parties_the_same_is_taken_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SpareNoise, "part", lambda self, part, seed, size: np.full(size, 1000**part, np.int64))  # noqa: ARG005
    plan, identities = with_spare(110, 3, 0, length=1)
    assert plan.degree < 109
    silent = {3: Kind.MASKED, 77: Kind.SHARES, 80: Kind.REVEALED}
    assert summed(plan, identities, silent).sum().tolist() == [108 * (1000 + 1000**2)]

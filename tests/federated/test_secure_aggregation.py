"""Secure sums: exact with anybody missing at any time, and nothing but the sum for a coordinator that lies."""

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PublicKey
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from defocus.errors import DefocusError, InvalidParameterError, ProtocolError, TooFewPartiesError
from defocus.federated import Coordinator, Identity, Party, SumPlan, masks, secure_sum, sum_plan
from defocus.federated.messages import HEAD, Kind, bitmap, heading, numbers, read, rows, table
from defocus.federated.secret_sharing import PRIME, combined, divided

SPOKEN = [kind for kind in Kind if kind % 2]


def agreed(number: int = 5, **how: Any) -> tuple[SumPlan, list[Identity]]:
    identities = [Identity.generate() for _ in range(number)]
    return SumPlan(tuple(each.public for each in identities), **{"length": 3, "dropouts": 1, **how}), identities


def begun(plan: SumPlan, identities: list[Identity], until: Kind) -> tuple[Coordinator, list[Party], dict[int, bytes]]:
    """The sum up to what the coordinator says before a kind of message is due; and that."""
    parties = [Party(plan, i + 1, own, np.full(plan.length, i + 1)) for i, own in enumerate(identities)]
    coordinator = Coordinator(plan)
    said: dict[int, bytes] = {}
    for party in parties if until is not Kind.KEYS else []:
        coordinator.accept(party.begin())
    while coordinator.due is not None and coordinator.due < until:
        said = coordinator.advance()
        if coordinator.due == until:
            break
        for number, message in said.items():
            coordinator.accept(parties[number - 1].receive(message))
    return coordinator, parties, said


@pytest.mark.parametrize("kind", SPOKEN)
@pytest.mark.parametrize("gone", [(1,), (2, 5), (6, 7)])
def test_the_sum_is_that_of_whoever_sent_a_vector_wherever_others_stop(kind: Kind, gone: tuple[int, ...]) -> None:
    vectors = np.random.default_rng(3).integers(-(2**20), 2**20, (7, 40))
    total, over = secure_sum(vectors, dropouts=2, colluding=1, silent=dict.fromkeys(gone, kind))
    left = set(range(1, 8)) - (set(gone) if kind <= Kind.MASKED else set())
    assert over == left
    assert total.tolist() == vectors[[each - 1 for each in sorted(left)]].sum(0).tolist()


@pytest.mark.parametrize("kind", SPOKEN[:3])
def test_with_one_more_missing_there_is_no_sum(kind: Kind) -> None:
    vectors = np.ones((7, 2), np.int64)
    with pytest.raises(TooFewPartiesError, match=r"4 parties answered, but it takes 5\.\nTo fix: "):
        secure_sum(vectors, dropouts=2, silent=dict.fromkeys((1, 2, 3), kind))


@given(
    st.lists(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=3, max_size=3), min_size=2, max_size=6),
    st.sampled_from(range(8, 65, 8)),
)
@settings(deadline=None, max_examples=25)
def test_sums_are_exact_modulo_any_number_of_bytes(vectors: list[list[int]], bits: int) -> None:
    total, _ = secure_sum([np.array(each, np.int64) for each in vectors], bits=bits)
    for got, column in zip(total.tolist(), zip(*vectors, strict=True), strict=True):
        assert (got - sum(column)) % (1 << bits) == 0
        assert -(1 << bits - 1) <= got < 1 << bits - 1


@pytest.mark.slow
def test_five_of_fifty_that_stop_at_any_steps_leave_the_sum_of_the_others_and_six_leave_none() -> None:
    """All five at one step, each at another one, and one more than was agreed on."""
    vectors = np.random.default_rng(5).integers(-(2**20), 2**20, (50, 3))
    for kinds in (*([kind] * 5 for kind in SPOKEN), SPOKEN):
        silent = dict(zip((4, 11, 23, 37, 50), kinds, strict=True))
        total, over = secure_sum(vectors, dropouts=5, silent=silent)
        left = sorted(set(range(1, 51)) - {number for number, kind in silent.items() if kind <= Kind.MASKED})
        assert sorted(over) == left
        assert total.tolist() == vectors[[each - 1 for each in left]].sum(0).tolist()
    for kind in SPOKEN[:3]:
        with pytest.raises(TooFewPartiesError, match="44 parties answered, but it takes 45"):
            secure_sum(vectors, dropouts=5, silent=dict.fromkeys((4, 11, 23, 37, 50, 1), kind))


@pytest.mark.slow
def test_more_than_a_hundred_parties_have_few_neighbours_and_the_same_sum() -> None:
    vectors = np.random.default_rng(4).integers(-9, 9, (110, 5))
    total, over = secure_sum(vectors, dropouts=3, silent={3: Kind.MASKED, 77: Kind.SHARES, 80: Kind.REVEALED})
    assert total.tolist() == np.delete(vectors, [2, 76], 0).sum(0).tolist()
    assert len(over) == 108


def test_neighbours_are_mutual_and_as_few_as_is_safe() -> None:
    plan, _ = agreed(400, dropouts=20, colluding=20)
    assert plan.degree < 100
    near = {party: plan.neighbours(party) for party in range(1, 401)}
    assert all(len(each) == plan.degree and party not in each for party, each in near.items())
    assert all(party in near[other] for party, each in near.items() for other in each)
    lost, bad = plan._unlucky(plan.degree)
    assert plan.threshold == plan.degree - lost
    assert 2 * plan.threshold > plan.degree + bad
    small, _ = agreed(7, dropouts=2, colluding=1)
    assert (small.degree, small.threshold, small.quorum) == (6, 4, 5)


def test_both_masks_of_a_party_take_more_shares_than_there_are() -> None:
    """For all plans of few parties: colluders and one share of each other neighbour do not open both."""
    for number, gone, bad in itertools.product(range(2, 14), range(6), range(6)):
        try:
            plan, _ = agreed(number, dropouts=gone, colluding=bad)
        except InvalidParameterError:
            assert number - 1 <= 2 * gone + bad
            continue
        assert 2 * (plan.threshold - bad) > plan.degree - bad
        assert plan.threshold > bad
        assert 2 * (plan.quorum - bad) > number - bad  # so of two sets of survivors, one is not signed by enough
        assert plan.quorum <= plan.least


@pytest.mark.slow
@pytest.mark.statistical
def test_a_coordinator_and_a_party_that_tells_everything_see_uniform_numbers_that_add_up() -> None:
    """What is left of honest vectors without all masks that the two can know is uniform, up to its sum."""
    seen = []
    for _ in range(250):
        plan, identities = agreed(4, length=1, bits=8, dropouts=0, colluding=1)
        _, parties, said = begun(plan, identities, Kind.MASKED)
        masked = {number: parties[number - 1].receive(message) for number, message in said.items()}
        left = []
        for number in (1, 2, 3):
            value = np.frombuffer(masked[number], np.uint8)[35:36].astype(np.uint32)
            own = known_keys(parties[number - 1], parties[3], plan)
            masks.add_masks(value, [(own[0], True), (own[1], number < 4)])
            left.append(int(value[0]) % 256)
        assert (sum(left) - (1 + 2 + 3)) % 256 == 0
        seen.append(left)
    for pair in itertools.combinations(range(3), 2):
        quarters = np.zeros((4, 4))
        for each in seen:
            quarters[each[pair[0]] // 64, each[pair[1]] // 64] += 1
        assert stats.chisquare(quarters.ravel()).pvalue > 1e-6


def known_keys(party: Party, colluder: Party, plan: SumPlan) -> tuple[bytes, bytes]:
    """What a coordinator learns of a survivor, and what a colluding neighbour knows."""
    mine = masks.derived(party._seed, plan.session, b"self")
    theirs = party._number, party._keys.public_key().public_bytes_raw()
    told = masks.exchanged((colluder._number, colluder._keys), theirs, plan.session, b"pair")
    return mine, told


def with_unused_bit(key: bytes) -> bytes:
    return key[:31] + bytes([key[31] | 0x80])


def moved_by_a_small_point(key: bytes) -> bytes:
    prime = 2**255 - 19
    return pow(int.from_bytes(key, "little"), -1, prime).to_bytes(32, "little")


@pytest.mark.parametrize("twin", [with_unused_bit, moved_by_a_small_point])
@pytest.mark.parametrize("place", [0, 1])
def test_a_twin_of_anothers_key_gives_other_masks_and_seals(twin: Callable[[bytes], bytes], place: int) -> None:
    """Party 3 sends party 2 other bytes for the key of party 1: their masks would cancel, and their seals be one."""
    plan, identities = agreed(3, dropouts=0, colluding=1)
    parties = {n: Party(plan, n, identities[n - 1], [n, n, n]) for n in (1, 2, 3)}
    begun_with = {n: party.begin() for n, party in parties.items()}
    honest = begun_with[1][35:-64]
    forged = bytearray(begun_with[3][35:-64])
    forged[32 * place : 32 * place + 32] = twin(honest[32 * place : 32 * place + 32])
    signed = identities[2].signed(heading(Kind.KEYS, plan.session, 3), bytes(forged))
    told = table([(1, honest + begun_with[1][-64:]), (3, bytes(forged) + signed[-64:])])
    parties[2].receive(heading(Kind.DIRECTORY, plan.session) + told)
    own = parties[2]._sealing if place == 0 else parties[2]._keys
    first, third = (parties[2]._others[n][place] for n in (1, 3))
    assert first != third
    exchange = [own.exchange(X25519PublicKey.from_public_bytes(each)) for each in (first, third)]
    assert exchange[0] == exchange[1]  # the twin has the same secret
    keys = {masks.exchanged((2, own), (n, key), plan.session, b"x") for n, key in ((1, first), (3, third))}
    assert len(keys) == 2


def test_a_key_that_two_parties_send_is_refused() -> None:
    plan, identities = agreed(4, dropouts=1)
    parties = [Party(plan, n + 1, own, [0, 0, 0]) for n, own in enumerate(identities)]
    said = [each.begin() for each in parties]
    keys = [said[1][HEAD:-64], said[1][HEAD : HEAD + 32] + said[2][HEAD + 32 : -64]]
    signed = identities[2].signed(heading(Kind.KEYS, plan.session, 3), keys[1])
    told = table([(2, said[1][HEAD:]), (3, keys[1] + signed[-64:]), (4, said[3][HEAD:])])
    with pytest.raises(ProtocolError, match="the same key"):
        parties[0].receive(heading(Kind.DIRECTORY, plan.session) + told)


SMALL = [
    *(point.to_bytes(32, "little") for point in (0, 1, 2**255 - 20, 2**255 - 19, 2**255 - 18)),
    bytes.fromhex("e0eb7a7c3b41b8ae1656e3faf19fc46ada098deb9c32b1fd866205165f49b800"),
    bytes.fromhex("5f9c95bca3508c24b1d0b1559c83ef5b04445cc4581c8e86d8224eddd09f1157"),
]
"""All points of small order as they may be written, by Bernstein's list; with the unused bit set they are others."""


@pytest.mark.parametrize("place", [0, 1])
@pytest.mark.parametrize("key", [*SMALL, *map(with_unused_bit, SMALL), b"", bytes(31), "first", "own"], ids=str)
def test_a_party_whose_keys_are_none_is_left_out_and_named_and_the_others_go_on(key: Any, place: int) -> None:
    """What its neighbours refuse, and so everybody, is refused by the coordinator before they are told."""
    plan, identities = agreed(5)
    parties = [Party(plan, n, own, [n, n, n]) for n, own in enumerate(identities, 1)]
    coordinator, first = Coordinator(plan), b""
    for party in parties:
        said = party.begin()
        first = first or said[HEAD : HEAD + 32]
        if party is parties[3]:
            body = [said[HEAD : HEAD + 32], said[HEAD + 32 : -64]]
            body[place] = {"first": first, "own": body[1 - place]}.get(key, key)
            said = identities[3].signed(said[:HEAD], b"".join(body))
            with pytest.raises(ProtocolError, match=r"Party 4 sent a key that|wrong length"):
                coordinator.accept(said)
            continue
        coordinator.accept(said)
    while coordinator.due is not None:
        for number, message in coordinator.advance().items():
            coordinator.accept(parties[number - 1].receive(message))
    assert coordinator.sum().tolist() == [11] * 3
    assert coordinator.survivors == {1, 2, 3, 5}


def test_tails_of_drawing_are_those_of_counting() -> None:
    """Against all ways to draw, in whole numbers."""
    for number, marked, drawn in ((7, 3, 4), (10, 0, 3), (12, 12, 5), (40, 11, 20)):
        ways = [math.comb(marked, x) * math.comb(number - marked, drawn - x) for x in range(drawn + 1)]
        for x, got in enumerate(sum_plan._log_tails(number, marked, drawn)):
            exact = sum(ways[x:]) / math.comb(number, drawn)
            assert math.exp(got) == pytest.approx(exact, rel=1e-9, abs=0)


def test_a_party_reveals_for_one_set_of_survivors_and_never_again() -> None:
    plan, identities = agreed()
    coordinator, parties, said = begun(plan, identities, Kind.REVEALED)
    shown = parties[0].receive(said[1])
    assert shown[0] == Kind.REVEALED
    with pytest.raises(ProtocolError, match="no more"):
        parties[0].receive(said[1])
    coordinator.accept(shown)
    with pytest.raises(ProtocolError, match="before"):
        coordinator.accept(shown)


def test_survivors_that_others_did_not_sign_are_refused() -> None:
    """Party 1 is told of four survivors, all others of five: nobody reveals anything to it."""
    plan, identities = agreed()
    _, parties, said = begun(plan, identities, Kind.CONFIRMED)
    lie = heading(Kind.SURVIVORS, plan.session) + bitmap([1, 2, 3, 4], 5)
    signed = [parties[i].receive(lie if i == 0 else said[i + 1]) for i in range(5)]
    signatures = {i + 1: message[-64:] for i, message in enumerate(signed)}
    with pytest.raises(ProtocolError, match="signature"):
        parties[0].receive(heading(Kind.CONFIRMATIONS, plan.session) + table(signatures.items()))
    _, parties, said = begun(*(again := agreed()), Kind.CONFIRMED)
    lie = heading(Kind.SURVIVORS, again[0].session) + bitmap([1, 2, 3, 4], 5)
    own = parties[0].receive(lie)
    alone = heading(Kind.CONFIRMATIONS, again[0].session) + table([(1, own[-64:])])
    with pytest.raises(ProtocolError, match="1 parties name the same survivors, but it takes 3"):
        parties[0].receive(alone)


def test_what_is_kept_of_a_party_goes_on_in_the_sum_it_began_and_in_no_other() -> None:
    """In another, signatures would be heard under other survivors than those it hears in its own."""
    plan, identities = agreed()
    _, parties, said = begun(plan, identities, Kind.CONFIRMED)
    again = SumPlan(plan.parties, 3, dropouts=1)
    with pytest.raises(ProtocolError, match="another sum"):
        Party.resumed(again, 1, identities[0], parties[0].kept())
    assert Party.resumed(plan, 1, identities[0], parties[0].kept()).receive(said[1])[0] == Kind.CONFIRMED


@pytest.mark.parametrize("named", [[1, 2, 3], [2, 3, 4, 5]])
def test_too_few_survivors_or_without_oneself_are_refused(named: list[int]) -> None:
    plan, identities = agreed()
    _, parties, _ = begun(plan, identities, Kind.CONFIRMED)
    with pytest.raises(ProtocolError, match="not what was agreed on"):
        parties[0].receive(heading(Kind.SURVIVORS, plan.session) + bitmap(named, 5))


def test_messages_of_an_earlier_sum_of_the_same_parties_are_refused() -> None:
    plan, identities = agreed()
    _, parties, said = begun(plan, identities, Kind.SHARES)
    again = SumPlan(plan.parties, 3, dropouts=1)
    fresh = Party(again, 1, identities[0], [1, 2, 3])
    fresh.begin()
    with pytest.raises(ProtocolError, match="another sum"):
        fresh.receive(said[1])
    shares = parties[1].receive(said[2])
    with pytest.raises(ProtocolError, match="another sum"):
        Coordinator(again).accept(shares.replace(b"\x03", b"\x01", 1))


def test_an_old_directory_under_the_same_name_opens_nothing() -> None:
    """The same plan twice: shares sealed for the keys of the first time do not open the second time."""
    plan, identities = agreed()
    coordinator, parties, said = begun(plan, identities, Kind.SHARES)
    for number, message in said.items():
        coordinator.accept(parties[number - 1].receive(message))
    inbox = coordinator.advance()
    fresh = Party(plan, 1, identities[0], [1, 2, 3])
    fresh.begin()
    fresh.receive(said[1])
    with pytest.raises(ProtocolError, match="Party 2 dealt shares that do not open"):
        fresh.receive(inbox[1])


def test_a_wrong_share_is_left_out_and_a_forged_message_refused() -> None:
    plan, identities = agreed(5, length=2)
    coordinator, parties, said = begun(plan, identities, Kind.REVEALED)
    for number, message in said.items():
        shown = parties[number - 1].receive(message)
        if number == 2:
            body = bytearray(shown[35:-64])
            body[10] ^= 1  # a share of party 1
            shown = identities[1].signed(shown[:35], bytes(body))
        if number == 3:
            with pytest.raises(ProtocolError, match="signature"):
                coordinator.accept(shown[:-1] + bytes([shown[-1] ^ 1]))
        coordinator.accept(shown)
    coordinator.advance()
    assert coordinator.sum().tolist() == [15, 15]


@given(st.integers(0, 400), st.integers(0, 7))
@settings(deadline=None, max_examples=60)
def test_one_flipped_bit_anywhere_in_what_parties_say_is_refused(place: int, bit: int) -> None:
    plan, identities = AGREED
    for kind in (Kind.KEYS, Kind.SHARES, Kind.MASKED):
        coordinator, parties, said = begun(plan, identities, kind)
        message = bytearray(parties[0].begin() if kind is Kind.KEYS else parties[0].receive(said[1]))
        message[place % len(message)] ^= 1 << bit
        before = coordinator.missing
        with pytest.raises(ProtocolError):
            coordinator.accept(bytes(message))
        assert coordinator.missing == before


AGREED = agreed()


@given(st.binary(max_size=300), st.sampled_from(list(Kind)))
@settings(deadline=None, max_examples=80)
def test_whatever_bytes_come_are_refused_in_words(junk: bytes, kind: Kind) -> None:
    plan, identities = AGREED
    for message in (junk, heading(kind, plan.session) + junk, heading(kind, plan.session, 1) + junk):
        party = Party(plan, 1, identities[0], [1, 2, 3])
        party.begin()
        for take in (Coordinator(plan).accept, party.receive):
            with pytest.raises(ProtocolError, match="To fix"):
                take(message)


@pytest.mark.parametrize("message", [None, "text", 5, bytearray(200), []])
def test_what_is_no_bytes_is_no_message(message: Any) -> None:
    with pytest.raises(ProtocolError, match="no message"):
        read(message, Kind.KEYS, bytes(32))


def test_tables_and_bitmaps_have_one_way_to_be_written() -> None:
    assert list(rows(memoryview(table([(1, b"ab"), (9, b"cd")])), 2)) == [(1, b"ab"), (9, b"cd")]
    for wrong in ([(2, b"ab"), (1, b"cd")], [(1, b"ab"), (1, b"cd")], [(0, b"ab")]):
        with pytest.raises(ProtocolError, match="twice, or not in order"):
            list(rows(memoryview(table(wrong)), 2))
    assert numbers(memoryview(bitmap([1, 3], 5)), 5) == {1, 3}
    for bad in (b"", b"\xff", b"\x80\x00"):
        with pytest.raises(ProtocolError, match="length"):
            numbers(memoryview(bad), 5)


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (lambda: agreed(2, dropouts=1), "too few to agree"),
        (lambda: agreed(1, dropouts=0), "different public keys"),
        (lambda: SumPlan((bytes(32), bytes(32)), 3), "different public keys"),
        (lambda: agreed(bits=33), "not supported"),
        (lambda: agreed(length=0), "length"),
        (lambda: agreed(dropouts=-1), "dropouts"),
        (lambda: agreed(name=b"short"), "32 bytes"),
        (lambda: Party(*agreed()[:1], 1, Identity.generate(), [1, 2, 3]), "does not name this identity"),
        (lambda: Party(AGREED[0], 1, AGREED[1][0], [1, 2]), "3 integers"),
        (lambda: Party(AGREED[0], 1, AGREED[1][0], [1.0, 2.0, 3.0]), "3 integers"),
        (lambda: Identity.from_bytes(b"x"), "32 bytes"),
    ],
)
def test_plans_that_cannot_hold_are_refused(make: Callable[[], object], match: str) -> None:
    with pytest.raises(InvalidParameterError, match=match):
        make()


def test_there_is_no_sum_before_the_last_step() -> None:
    coordinator, _, _ = begun(*agreed(), Kind.REVEALED)
    with pytest.raises(ProtocolError, match="There is no sum"):
        coordinator.sum()
    with pytest.raises(DefocusError):
        coordinator.advance()  # nobody revealed anything
    with pytest.raises(ProtocolError, match="There is no sum"):
        coordinator.sum()


@given(st.binary(min_size=32, max_size=32), st.integers(1, 6), st.data())
@settings(max_examples=40)
def test_so_many_shares_give_the_secret_and_one_fewer_do_not(
    secret: bytes, threshold: int, data: st.DataObject
) -> None:
    shares = divided(secret, range(1, 8), threshold)
    holders = data.draw(st.permutations(range(1, 8)))[:threshold]
    assert combined({each: shares[each] for each in holders}) == secret
    fewer = {each: shares[each] for each in holders[:-1]}
    if fewer:
        assert combined(fewer) != secret


def test_fewer_shares_fit_every_secret() -> None:
    """With t - 1 shares fixed, each secret has exactly one share for the last holder that completes it."""
    shares = divided(bytes(32), [1, 2, 3], 3)
    first, second = (int.from_bytes(shares[each]) for each in (1, 2))
    for secret in (0, 1, 2**255):
        # Lagrange at zero of 1, 2, 3 is 3, -3, 1
        last = (secret - 3 * first + 3 * second) % PRIME
        told = combined({1: shares[1], 2: shares[2], 3: last.to_bytes(33)})
        assert told == secret.to_bytes(32)


def test_identities_travel_as_bytes_and_are_not_shown() -> None:
    own = Identity.generate()
    assert Identity.from_bytes(own.to_bytes()).public == own.public
    assert own.to_bytes().hex() not in repr(own)

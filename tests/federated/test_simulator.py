"""What a coordinator sees together with parties that tell it everything is made from the sum of the others alone.

The simulator knows who is honest, everything of who is not, and the sum of the honest vectors that are in the sum. It
plays the honest parties with other vectors of that sum. Of the masks between two honest parties nobody else knows the
key: so it takes others, which are as likely. Then all bytes that it makes must be those of the real parties.

With spare noise it draws the seeds of what is kept anew as well, and gives the sum of the honest vectors with it.
"""

import secrets
from collections import Counter
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from tests.federated.test_secure_aggregation import agreed, begun

from defocus.federated import Party, SumPlan, masks, party
from defocus.federated.masks import PAIR, SELF
from defocus.federated.messages import HEAD, SIGNATURE, Kind, bitmap, heading, rows
from defocus.federated.secret_sharing import SHARE
from defocus.federated.sum_plan import counted_shares
from defocus.mechanisms.noise_shares import SpareNoise

CASES = [
    # parties, drop-outs, colluding; who is gone before it sends a vector, and after, as the coordinator says
    (4, 0, 2, (), ()),
    (6, 0, 4, (), ()),  # one fewer than hold a secret together, beside the two they want to know
    (8, 1, 4, (1,), ()),
    (8, 1, 4, (), (1,)),
    (9, 2, 3, (1,), (2,)),
    (9, 2, 3, (), (1, 2)),
]


def copies(plan: SumPlan, identities: Any, parties: list[Party], vectors: dict[int, Any]) -> dict[int, Party]:
    """The same parties with the same secrets, and these vectors."""
    made = {n: Party.resumed(plan, n, identities[n - 1], parties[n - 1].kept()) for n in vectors}
    for number, vector in vectors.items():
        made[number].bring(vector)
    return made


def told(plan: SumPlan, parties: dict[int, Party], inbox: dict[int, bytes], over: list[int]) -> list[dict[int, bytes]]:
    """All that these parties say from their vectors on, to a coordinator that names survivors as it likes."""
    masked = {n: each.receive(inbox[n]) for n, each in parties.items()}
    named = heading(Kind.SURVIVORS, plan.session) + bitmap(over, len(plan.parties))
    confirmed = {n: parties[n].receive(named) for n in over}
    signed = b"".join(n.to_bytes(2) + said[-SIGNATURE:] for n, said in sorted(confirmed.items()))
    signatures = heading(Kind.CONFIRMATIONS, plan.session) + signed
    return [masked, confirmed, {n: parties[n].receive(signatures) for n in over}]


@pytest.mark.parametrize("law", [None, "laplace", "gaussian"])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_what_the_coordinator_and_its_helpers_see_is_made_from_the_sum_of_the_others(
    monkeypatch: pytest.MonkeyPatch, case: Any, law: str | None
) -> None:
    number, dropouts, colluding, before, after = case
    counted = counted_shares(number, dropouts, colluding)
    spare = SpareNoise(law, Fraction(10**6), counted, dropouts) if law and dropouts else None
    plan, identities = agreed(number, length=4, dropouts=dropouts, colluding=colluding, spare=spare)
    coordinator, parties, said = begun(plan, identities, Kind.SHARES)
    for each in (n for n in said if n not in before):
        coordinator.accept(parties[each - 1].receive(said[each]))
    inbox = coordinator.advance()
    over = [n for n in sorted(inbox) if n not in after]
    honest = list(range(1, number - colluding + 1))
    hidden = [n for n in honest if n in over]  # whose sum is learnt
    draw = np.random.default_rng(number)
    real = {n: draw.integers(-(2**31), 2**31, 4) for n in inbox}
    made = {n: np.zeros(4, np.int64) if n in honest else vector for n, vector in real.items()}
    made[hidden[0]] = np.sum([real[n] for n in hidden], axis=0)

    seen = told(plan, copies(plan, identities, parties, real), inbox, over)

    drawn, others = copies(plan, identities, parties, made), copies(plan, identities, parties, real)
    for one in (n for n in honest if n in inbox):
        kept = plan.missing(over) if one in over else dropouts
        drawn[one]._spare[:kept] = [secrets.token_bytes(32) for _ in drawn[one]._spare[:kept]]
    whole = {n: real[n] + spare_noise(plan, others[n]) for n in inbox}
    played = {n: made[n] + spare_noise(plan, drawn[n]) for n in inbox}
    lacking = sum((whole[n] - played[n] for n in hidden), np.zeros(4, np.int64))
    drawn[hidden[0]].bring(made[hidden[0]] + lacking)
    played[hidden[0]] = played[hidden[0]] + lacking

    moves, carried = {}, np.zeros(4, np.int64)
    for one, other in pairwise(hidden):
        carried = carried + whole[one] - played[one]
        moves[pair_key(plan, parties, one, other)] = carried
    for one in after:  # what it sent is in no sum, and stays behind its own mask
        moves[masks.derived(parties[one - 1]._seed, plan.session, b"self")] = whole[one] - played[one]
    plain = masks.add_masks

    def moved(vector: Any, keys: Any) -> None:
        plain(vector, keys)
        for key, minus in keys:
            vector += (moves.get(key, 0 * carried) * (-1 if minus else 1)).astype(vector.dtype)

    monkeypatch.setattr(party, "add_masks", moved)
    assert told(plan, drawn, inbox, over) == seen

    # Nor have they the keys that were exchanged for others: of each they see fewer shares than open it.
    # The same of the seeds of spare noise that is kept, and of all that of who is gone.
    shares = Counter((dealer, what) for dealer in inbox for what in range(plan.secrets) for _ in range(colluding))
    for holder in (n for n in honest if n in seen[2]):
        shares.update(opened_by(plan, holder, seen[2][holder], (list(inbox), over)))
    for dealer in (n for n in honest if n in inbox):
        mask = plan.mask_opened(dealer, over)
        known = {mask, *(plan.opened(over) if dealer in over else ())}
        assert PAIR + SELF - mask not in known
        assert {what for what in range(plan.secrets) if shares[dealer, what] >= plan.threshold} == known
        assert all(shares[dealer, what] == colluding < plan.threshold for what in {*range(plan.secrets)} - known)


def opened_by(plan: SumPlan, holder: int, shown: bytes, known: tuple[list[int], list[int]]) -> list[tuple[int, int]]:
    """Of which secrets of whom a party reveals a share."""
    inbox, over = known
    found, body = [], memoryview(shown)[HEAD:-SIGNATURE]
    near = [n for n in plan.neighbours(holder) if n in inbox]
    stayed = [n for n in near if n in over]
    for what, dealers in [(None, near), *((secret, stayed) for secret in plan.opened(over))]:
        part, body = body[: len(dealers) * (2 + SHARE)], body[len(dealers) * (2 + SHARE) :]
        assert [dealer for dealer, _ in rows(part, SHARE)] == dealers
        found += [(n, plan.mask_opened(n, over) if what is None else what) for n in dealers]
    assert not body
    return found


def spare_noise(plan: SumPlan, party: Party) -> Any:
    """All that a party adds for those who may drop out."""
    parts = [plan.spare_noise(secret, seed).astype(np.int64) for secret, seed in enumerate(party._spare, 2)]
    return sum(parts, np.zeros(plan.length, np.int64))


def pair_key(plan: SumPlan, parties: list[Party], one: int, other: int) -> bytes:
    """The key of the masks between two parties."""
    theirs = parties[other - 1]._keys.public_key().public_bytes_raw()
    return masks.exchanged((one, parties[one - 1]._keys), (other, theirs), plan.session, b"pair")

r"""Sums of integer vectors over parties, of which a coordinator learns the sum and nothing else.

Each party hides its vector behind masks: one of its own, and one with each neighbour, which the neighbour subtracts.
In the sum the latter cancel. Keys of all masks are shared in secret among the neighbours, so that the masks of whoever
drops out, and the own masks of whoever stays, can be taken off afterwards: for each party one of the two, never both.

====================  =====================================================================================
who                   learns
====================  =====================================================================================
the coordinator       the sum over the parties that stayed, and who they are
a party               who takes part; of others nothing
coordinator and up to ``colluding`` parties    the sum of the others' vectors, and nothing else
====================  =====================================================================================

Guarantee:
    Sums are exact modulo 2**bits. With n parties, at most D ``dropouts`` and C ``colluding`` with the coordinator, a
    party reveals what it holds only for one set of survivors, of at least n - D parties, that more than (n + C) / 2
    parties signed. Of two such sets an honest party would have signed both, so there is one, and a coordinator that
    lies about survivors to some learns nothing. With k neighbours, a mask is opened by t = k - D shares; for both masks
    of one party, C colluders and the k - C others, who reveal one share each, would have to give 2t shares:
    2(t - C) <= k - C. The plan refuses k - 2D <= C, so that this is false.

    *Spare noise.* If the plan has it, each party adds a part of noise for each of D drop-outs, from a seed that it
    shares among its neighbours as it does the seed of its own mask. With d parties missing, the same message that
    opens masks opens the seeds of parts k > d of those that stayed, and these parts are taken off as the same
    integers. Who drops out between signing and revealing takes nothing with it: the others hold the shares. Seeds of
    parts k <= d, and all of those of who is missing, stay hidden: no honest party shows a share of them, C < t
    colluders hold too few, and there is one set of survivors, so one d. A coordinator that has one signed with
    parties of which it has no vector, so that d is too small, is shown seeds, but no sum: honest parties of the set
    sent vectors with masks between each other and with those, of which it has no keys. Nor of a set with a party X that
    never began: its honest neighbours have no masks with it, and sign and reveal nothing. Of a neighbour that began,
    masks are opened only if of its own neighbours at most k - t reveal nothing. The nearest two that began on both
    sides of X have all neighbours of X among theirs, or there is a cut. So X would have at most 2(k - t) honest
    neighbours, and more colluders than the plan allows. So of the honest parties in a sum every share has the parts
    that :mod:`defocus.mechanisms.noise_shares` counts on.

    Beyond 100 parties each has neighbours drawn at random by the name of the sum, as few as leave the same conditions
    broken with a probability below 2**-80: below 2**-40 for a coordinator that tries 2**40 names.
Assumes:
    Public keys of the parties are known to all of them. X25519, HKDF-SHA256, AES-256 in counter mode,
    ChaCha20-Poly1305 and Ed25519 are secure. No party takes part twice in sums of one name: those who call draw
    numbers for it, and find them in it. Beyond 100 parties, nobody tries more than 2**40 names.
    Nobody is kept from giving a wrong vector of its own.

Reference:
    Bonawitz et al. (2017), Practical secure aggregation for privacy-preserving machine learning; Bell, Bonawitz,
    Gascón, Lepoint, Raykova (2020), Secure single-server aggregation with (poly)logarithmic overhead.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from defocus.federated.coordinator import Coordinator
from defocus.federated.identity import Identity
from defocus.federated.messages import Kind
from defocus.federated.party import Party
from defocus.federated.sum_plan import SumPlan

__all__ = ["secure_sum"]


def secure_sum(
    vectors: Sequence[Any] | NDArray[Any],
    *,
    bits: int = 32,
    dropouts: int = 0,
    colluding: int = 0,
    silent: Mapping[int, Kind] | None = None,
) -> tuple[NDArray[np.int64], frozenset[int]]:
    """The sum of vectors by the whole protocol, all parties in this process, and over which of them it is.

    Args:
        vectors: one for each party.
        bits: see :class:`SumPlan`.
        dropouts: how many parties may fail.
        colluding: how many may tell the coordinator what they know.
        silent: for parties that drop out, the first message that they do not send.

    >>> total, over = secure_sum([[1, 2], [3, 4], [5, 6], [7, -8]], dropouts=1, silent={4: Kind.MASKED})
    >>> total.tolist(), sorted(over)
    ([9, 12], [1, 2, 3])
    """
    identities = [Identity.generate() for _ in vectors]
    plan = SumPlan(tuple(each.public for each in identities), len(vectors[0]), bits, dropouts, colluding)
    parties = [Party(plan, i + 1, own, vector) for i, (own, vector) in enumerate(zip(identities, vectors, strict=True))]
    coordinator, gone = Coordinator(plan), silent or {}

    def speaks(number: int) -> bool:
        return coordinator.due is not None and gone.get(number, Kind.REVEALED + 1) > coordinator.due

    for party in (each for i, each in enumerate(parties) if speaks(i + 1)):
        coordinator.accept(party.begin())
    while coordinator.due is not None:
        for number, message in _turns(coordinator):
            if speaks(number):
                coordinator.accept(parties[number - 1].receive(message))
    return coordinator.sum(), coordinator.survivors


def _turns(coordinator: Coordinator) -> Iterator[tuple[int, bytes]]:
    yield from coordinator.advance().items()

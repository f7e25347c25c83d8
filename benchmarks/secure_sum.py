"""Secure sums beside Flower's SecAgg+: ``python benchmarks/secure_sum.py [PARTIES] [ENTRIES] [PYTHON WITH FLOWER]``.

Both have every party for a neighbour, 32 bits for each number and a tenth of the parties that may drop out. Processor
seconds of one party and of the coordinator, and the bytes that one party sends.

``python benchmarks/secure_sum.py errors`` draws the shares of noise of federated answers, and compares what they add up
to with one table's noise.
"""

import json
import secrets
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from defocus.federated import Coordinator, Identity, Party, SumPlan
from defocus.federated.sum_plan import counted_shares
from defocus.mechanisms import Laplace
from defocus.mechanisms.noise_shares import NoiseShare, SpareNoise

HERE = Path(__file__).parent


def with_defocus(parties: int, entries: int) -> dict[str, float]:
    identities = [Identity.generate() for _ in range(parties)]
    plan = SumPlan(tuple(each.public for each in identities), entries, dropouts=parties // 10)
    vector = np.arange(entries, dtype=np.int64)
    members = [Party(plan, i + 1, own, vector) for i, own in enumerate(identities)]
    coordinator, spent, sent = Coordinator(plan), {"party": 0.0, "coordinator": 0.0}, 0

    def timed(who: str, what: object, *given: object) -> object:
        start = time.process_time()
        found = what(*given)  # type: ignore[operator]
        spent[who] += time.process_time() - start
        return found

    said = [(each, timed("party", each.begin)) for each in members]
    while coordinator.due is not None:
        for place, (_, message) in enumerate(said):
            sent += len(message) if place == 0 else 0  # type: ignore[arg-type]
            timed("coordinator", coordinator.accept, message)
        told = timed("coordinator", coordinator.advance)
        said = [
            (members[number - 1], timed("party", members[number - 1].receive, message))
            for number, message in told.items()  # type: ignore[attr-defined]
        ]
    assert (coordinator.sum() == plan.signed((vector * parties).astype(np.uint64))).all()
    return {"party": spent["party"] / parties, "coordinator": spent["coordinator"], "bytes": float(sent)}


def main(parties: int = 100, entries: int = 1_000_000, python: str = ".bench/flower/bin/python") -> None:
    ours = with_defocus(parties, entries)
    found = {"parties": parties, "entries": entries, "plain bytes": 4 * entries, "defocus": ours}
    if Path(python).exists():
        script = HERE / "secure_sum_parts" / "with_flower.py"
        theirs = subprocess.run(  # noqa: S603
            [python, str(script), str(parties), str(entries)], check=True, capture_output=True, text=True
        )
        found["flower"] = json.loads(theirs.stdout.splitlines()[-1])
        found["ratio"] = {name: found["flower"][name] / ours[name] for name in ours}
    else:
        print(f"Flower is left out: there is no {python}.")
    print(json.dumps(found, indent=1))
    (HERE / "results" / "secure_sum.json").write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


def errors(entries: int = 40_000) -> None:
    """Standard deviations relative to one table's, of Laplace noise of scale 1000, when nobody drops out."""
    one = Laplace(scale=1000)
    for sites, dropouts, gone in ((5, 0, 0), (5, 1, 0), (5, 1, 1), (11, 0, 0), (20, 0, 0), (50, 5, 0), (50, 5, 5)):
        honest = counted_shares(sites, dropouts, 0)
        share = NoiseShare(one, honest, sites, with_spare(gone), dropouts, lambda gone=gone: gone)
        own = [share.sample(np.zeros(entries, np.int64)) for _ in range(sites - gone)]
        seen, least = np.sum(own, axis=0), np.sum(own[1:], axis=0)
        told = (share.variance**0.5, seen.std(), least.std())
        print(sites, dropouts, gone, *(f"{float(each) / one.variance**0.5:.3f}" for each in told))


def with_spare(gone: int) -> Callable[[NDArray[np.int64], SpareNoise | None], NDArray[np.int64]]:
    """What of one party stays in a sum from which so many are gone."""

    def kept(own: NDArray[np.int64], spare: SpareNoise | None) -> NDArray[np.int64]:
        for part in range(1, 1 + gone):
            assert spare is not None
            own = own + spare.part(part, secrets.token_bytes(32), len(own))
        return own

    return kept


given = sys.argv[1:]
if given == ["errors"]:
    errors()
    sys.exit()
main(*(int(each) for each in given[:2]), *given[2:])

"""The same on a server, where a stream notes its states in the ledger."""

from concurrent.futures import ThreadPoolExecutor

import defocus as dp
from defocus.errors import LedgerMismatchError


def test_a_stream_on_data_with_purposes_takes_steps(server: str) -> None:
    place = f"{server}&schema=attack_stream"
    with dp.Ledger.open(place, budget=dp.Budget(50, 1e-2), unit=dp.user("patient"), dataset="hospital") as ledger:
        alarms = ledger.data("alarms", unit=dp.item(per_person=2), purposes=["care"])
        plan = dp.workloads.RunningSum(10, epsilon=0.5, delta=1e-6, unit=alarms.unit, contribution=2)
        run = plan.start(ledger=alarms, purpose="care")
        run.add(3)
        assert plan.resume(run.save(), ledger=alarms).step == 1


def test_of_two_declarations_at_once_one_holds(server: str) -> None:
    place = f"{server}&schema=attack_declared"
    dp.Ledger.open(place, budget=dp.Budget(50, 1e-2), unit=dp.user("patient"), dataset="hospital").close()

    def declare(owned: int) -> int:
        with dp.Ledger.open(place) as ledger:
            try:
                return ledger.data("x", unit=dp.rows(per_person=owned)).unit.changes
            except LedgerMismatchError:
                return 0

    with ThreadPoolExecutor(4) as pool:
        found = set(pool.map(declare, [1, 2, 3, 4])) - {0}
    assert len(found) == 1

"""The one charge of a run: before it nothing is drawn, and what is drawn after it is noted."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, final

import torch

from defocus.errors import BudgetExceededError, CheckpointError
from defocus.learning.accountant import Plan, plan
from defocus.learning.distributed import Ranks
from defocus.learning.ledgers import charge_run, delta_of, ledger_of, place_of, total_of
from defocus.learning.noise import new_key
from defocus.learning.resume import State, ended
from defocus.learning.run_log import Log, check_folder
from defocus.ledger import Ledger, Receipt
from defocus.ledger.creation import check_kinds, exists
from defocus.ledger.runs import run_file
from defocus.noise import Bits
from defocus.privacy.budgets import Budget
from defocus.privacy.events import Event
from defocus.privacy.units import Unit
from defocus.release.charge import admitted

__all__ = ["Payment", "paying"]


def paying(
    ranks: Ranks, ledger: Any, data: Any, *, unit: Unit, budget: Budget | None, size: int
) -> tuple[Ledger | str | Path | None, float]:
    """Where the ledger of a run is, in the first process, and the default delta, which is the same in all of them."""

    def found() -> tuple[Ledger | str | Path | None, float]:
        check_kinds(budget=budget, unit=unit)
        if not ranks.first:
            return None, 0.0
        place = place_of(ledger, data, unit)
        return place, delta_of(total_of(place, budget), size)

    place, delta = ranks.together(found, "open the ledger")
    return place, ranks.number(delta)


@final
class Payment:
    """What a run is charged, once and as a whole, the key that it draws from, and the log of its steps.

    The ledger is made when it is charged, so that looking at a run leaves nothing behind; one that is there already is
    opened at once, so that what does not fit it is told early. Of several processes the first one pays and notes; the
    others wait, and fail with it.
    """

    __slots__ = (
        "_about",
        "_asked",
        "_bits",
        "_budget",
        "_charged",
        "_ended",
        "_ledger",
        "_place",
        "_plan",
        "_purpose",
        "_ranks",
        "_who",
        "key",
        "log",
        "receipt",
    )

    def __init__(
        self,
        place: Ledger | str | Path | None,
        run_plan: Plan,
        asked: Mapping[str, Any],
        ranks: Ranks,
        bits: Bits,
        *,
        budget: Budget | None,
        purpose: str,
        about: str,
        who: str | None,
    ) -> None:
        self._place, self._plan, self._asked, self._ranks, self._bits = place, run_plan, asked, ranks, bits
        self._budget, self._purpose, self._about, self._who = budget, purpose, about, who
        self._ledger = self._opened(make=False)
        self._charged = self._ended = False
        self.key: bytes | None = None
        self.receipt: Receipt | None = None
        self.log: Log | None = None

    def begin(self) -> bytes:
        """Charge the run, once, and only then draw its key and open its log."""
        if self.key is not None:
            return self.key
        if not self._charged:
            self.receipt = self._ranks.together(self._charge, "charge the run")
            self._charged = True
        key = self._ranks.shared(new_key(self._bits))
        self.log = self._ranks.together(lambda: self._begun(key), "open the log of the run")
        self.key = key
        return key

    def prospect(self) -> str:
        """Whether the ledger would cover the run now, in words; empty where there is no ledger yet."""
        if self._ledger is None:
            return ""
        if admitted(self._plan.event, self._plan.price, self._ledger) is not None:
            return "The ledger covers it."
        return f"The ledger does NOT cover it; what is left: {self._ledger.remaining()}."

    def note(self, step: int, digest: bytes) -> None:
        """Note a step before its noise is drawn."""
        log = self.log
        self._ranks.together(lambda: None if log is None else log.note(step, digest), "note the step")

    def end(self, model: torch.nn.Module) -> None:
        """Note the end of the run in the ledger, once, and let go of its log."""
        if self._ended or not self._charged:
            return
        if self.receipt is not None and self._ledger is not None and self.log is not None:
            self.log.sync()
            ended(self._ledger, self.receipt, model)
        self.close()
        self._ended = True

    @property
    def ended(self) -> bool:
        """Whether the end of the run was noted."""
        return self._ended

    def close(self) -> None:
        """Let go of the log."""
        if self.log is not None:
            self.log.close()

    def resume(self, state: State, path: str | Path) -> tuple[dict[str, Any], dict[str, str]]:
        """Take over what a checkpoint says was paid and drawn, and return what else is in it; see :class:`State`."""
        try:
            kept = self._ranks.together(lambda: self._loaded(state, path), "resume the run")
            self._ranks.agree(state.key[:-4] + state.taken.to_bytes(4, "little"), "checkpoint")
        except BaseException:
            if state.log is not None:
                state.log.close()
            raise
        self.key, self.receipt, self.log, self._charged = state.key, state.receipt, state.log, True
        return kept

    def _loaded(self, state: State, path: str | Path) -> tuple[dict[str, Any], dict[str, str]]:
        self._ledger = self._opened(make=False)
        if self._ledger is None and self._ranks.first:
            raise CheckpointError(
                "The run of this checkpoint was not charged to this ledger, which does not exist.",
                fix="resume it with the ledger that it was charged to.",
            )
        return state.load(path, self._ledger)

    def _charge(self) -> Receipt | None:
        self._ledger = self._opened(make=True)
        if self._ledger is None:
            return None
        check_folder(self._ledger)  # where steps will be noted: what is wrong with it costs nothing
        try:
            return charge_run(
                self._plan.event,
                ledger=self._ledger,
                price=self._plan.price,
                purpose=self._purpose,
                question=self._about,
                who=self._who,
                replan=self._replan,
            )
        except BudgetExceededError as refused:
            refused.fix += " To try a script, run it on public or made-up data with scratch=, which charges nothing."
            raise

    def _replan(self, delta: float | None) -> Event:
        if delta is None:
            return self._plan.event
        return plan(**{**self._asked, "price": Budget(self._plan.price.epsilon, delta)}).event

    def _begun(self, key: bytes) -> Log | None:
        if self._ledger is None or self.receipt is None:
            return None
        path = run_file(self._ledger, self.receipt.sequence, self.receipt.hash)
        return Log.begin(path, self.receipt, key, most=self._plan.steps)

    def _opened(self, *, make: bool) -> Ledger | None:
        if self._place is None or not (make or exists(self._place)):
            return None
        new = self._plan.price if self._budget is None else self._budget
        return ledger_of(self._place, unit=self._plan.unit, budget=self._budget, new=new)

"""``defocus choose``: central, shuffled or local, with the error and the trust of each."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

from defocus.cli.plots import ready, save
from defocus.cli.terminal import console, table, to_json
from defocus.local.comparing import Comparison, Option, Task, compare
from defocus.privacy.digits import roughly

__all__ = ["Asked", "curve", "show"]

_SIZES = (100, 1000, 10_000, 100_000, 1_000_000)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What is to be estimated, of how many, at which price."""

    task: Task
    users: int
    epsilon: float
    delta: float | None
    categories: int
    error: float | None

    def compared(self, users: int | None = None) -> Comparison:
        """The options, for another number of users if told."""
        n = self.users if users is None else users
        return compare(n, self.epsilon, self.task, delta=self.delta, categories=self.categories)


def show(asked: Asked, *, plot: Path | None, as_json: bool) -> None:
    """Print the options, the least error first, and which one is recommended."""
    if plot is not None:
        ready(plot)
    found = asked.compared()
    chosen = found.recommend(error=asked.error)
    if plot is not None:
        save(curve(asked), plot)
    if as_json:
        to_json(
            {
                "task": found.task,
                "users": found.users,
                "epsilon": float(found.epsilon),
                "delta": float(found.delta),
                "sampling_error": found.sampling_error,
                "options": [_written(option) for option in found.options],
                "left_out": list(found.left_out),
                "recommended": _written(chosen),
            }
        )
        return
    screen = console()
    heads = ["model", "method", "error", "of users", "messages"]
    rows = [
        (o.model, o.method, roughly(o.error), f"{o.error / found.users:.2%}", f"{o.messages:.3g}")
        for o in found.options
    ]
    screen.print(f"{found.task} of {found.users} users, epsilon {found.epsilon:g}, delta {float(found.delta):g}")
    screen.print(table(heads, rows, numbers=heads[2:]))
    for option in (found.of(model) for model in dict.fromkeys(o.model for o in found.options)):
        screen.print(f"{option.model} trusts {option.trust}.")
    for why in found.left_out:
        screen.print(f"Left out: {why}")
    screen.print(f"Recommended: {chosen.model}, {chosen.method}. {_why(asked, found, chosen)}")


def curve(asked: Asked) -> Any:
    """A figure of each model's error against the number of users: the root of n, seen."""
    from defocus.cli.plots import figure_of  # noqa: PLC0415 # matplotlib is loaded only by who plots

    lines: dict[str, list[tuple[int, float]]] = {}
    for n in _SIZES:
        found = asked.compared(n)
        for model in dict.fromkeys(option.model for option in found.options):
            lines.setdefault(model, []).append((n, found.of(model).error))
        lines.setdefault("sampling", []).append((n, found.sampling_error))
    return figure_of(lines, x="users", y=f"standard error at epsilon {asked.epsilon:g}")


def _why(asked: Asked, found: Comparison, chosen: Option) -> str:
    limit = found.sampling_error if asked.error is None else asked.error
    name = "the sampling error of so many users" if asked.error is None else "the error asked for"
    if chosen.error <= limit:
        return f"It needs the least trust of those within {name}, {roughly(limit)}."
    return f"None is within {name}, {roughly(limit)}; this one errs least."


def _written(option: Option) -> dict[str, Any]:
    return {
        "model": option.model,
        "method": option.method,
        "error": option.error,
        "trust": option.trust,
        "messages": option.messages,
        "local_epsilon": option.local_epsilon,
    }

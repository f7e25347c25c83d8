"""Training: one example of odd numbers in the place of an ordinary one."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.learning.making import data, model, parameters
from tests.soundness.odd_rows import VALUES
from tests.soundness.watching import attempt, compared, no_differences

import defocus as dp
from defocus.learning import Automatic, Gradients, PerLayer, Quantile, Trainer

X, Y = data(24, 5)


def odd_examples() -> dict[str, tuple[Any, Any]]:
    """What one example of a float tensor, with a class, can hold."""
    found: dict[str, tuple[Any, Any]] = {"an ordinary example": (torch.ones(5), 1)}
    for name, make in VALUES.items():
        value = make()
        if isinstance(value, float):
            found[f"{name} in one entry"] = (torch.tensor([value, 0, 0, 0, 0], dtype=torch.float64).float(), 1)
            found[f"{name} in all entries"] = (torch.full((5,), value, dtype=torch.float64).float(), 0)
    found["a class that is not there"] = (torch.ones(5), 7)
    found["a negative class"] = (torch.ones(5), -1)
    found["the class that is ignored"] = (torch.ones(5), -100)
    return found


def tensors(x: torch.Tensor, y: torch.Tensor) -> Any:
    return x, y


class _Examples(torch.utils.data.Dataset[Any]):
    def __init__(self, x: torch.Tensor, y: torch.Tensor) -> None:
        self.x, self.y = x, y

    def __len__(self) -> int:
        return len(self.x)

    def __getitem__(self, i: int) -> Any:
        return self.x[i], self.y[i]


KINDS: Mapping[str, Callable[[torch.Tensor, torch.Tensor], Any]] = {
    "tensors": tensors,
    "arrays": lambda x, y: (x.numpy(), y.numpy()),
    "dataset": _Examples,
}
CLIPS: Mapping[str, dict[str, Any]] = {
    "fixed": {},
    "automatic": {"clip": Automatic()},
    "quantile": {"clip": Quantile()},
    "per layer": {"clip": PerLayer(0.5)},
    "shuffled": {"sampling": "shuffled", "batch": 12},
    "no watch": {"watch": None},
}


def trained(kind: str, **more: Any) -> Callable[[Path, Sequence[Any]], Any]:
    def drive(home: Path, odd: Sequence[Any]) -> Any:
        x, y = X.clone(), Y.clone()
        for i, (inputs, target) in enumerate(odd):
            x[i], y[i] = inputs, target
        net = model()
        given: dict[str, Any] = {"clip": 1.0, "batch": 24, "steps": 3, "noise": 1.0, "unit": dp.rows(), **more}
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)

        def run() -> Any:
            trainer = Trainer(
                net, torch.nn.CrossEntropyLoss(), optimizer, KINDS[kind](x, y),
                budget=dp.Budget(100, 1e-3), ledger=home / "t.ledger", **given,
            )  # fmt: skip
            trained = trainer.fit(progress=False)
            return [trainer.explain(), str(trained), trained.explain(), trainer.epsilon()]

        return [attempt(run), parameters(net)]

    return drive


@pytest.mark.parametrize("kind", KINDS)
def test_no_example_is_told_by_any_kind_of_data(kind: str) -> None:
    # One example in the place of another is one that goes and one that comes.
    moves: Callable[[Sequence[Any]], int] = lambda odd: 2 * len(odd)  # noqa: E731
    no_differences(compared(f"Trainer, {kind}", trained(kind), odd_examples(), units=moves))


@pytest.mark.parametrize("clip", CLIPS)
def test_no_example_is_told_by_any_clipping(clip: str) -> None:
    moves: Callable[[Sequence[Any]], int] = lambda odd: 2 * len(odd)  # noqa: E731
    no_differences(compared(f"Trainer, {clip}", trained("tensors", **CLIPS[clip]), odd_examples(), units=moves))


def test_no_example_is_told_by_clipped_sums() -> None:
    def drive(home: Path, odd: Sequence[Any]) -> Any:
        del home
        x, y = X.clone(), Y.clone()
        for i, (inputs, target) in enumerate(odd):
            x[i], y[i] = inputs, target
        return attempt(
            lambda: type(Gradients(model(), torch.nn.CrossEntropyLoss()).clipped_sum((x, y), _to_one)).__name__
        )

    no_differences(compared("Gradients.clipped_sum", drive, odd_examples()))


def _to_one(norms: torch.Tensor) -> torch.Tensor:
    return 1 / norms.clamp(min=1)

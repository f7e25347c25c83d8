"""Training: one example of odd numbers in the place of an ordinary one."""

import itertools
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch
from tests.learning.making import data, model, parameters
from tests.soundness.odd_rows import VALUES
from tests.soundness.watching import attempt, compared, no_differences

import defocus as dp
from defocus.learning import AdaptiveClipping, AutomaticClipping, Gradients, PerLayerClipping, Trainer, search
from defocus.noise.testing import seeded

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


class _Examples(torch.utils.data.Dataset[Any]):  # type: ignore[misc]  # torch's classes are Any to the checker
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
    "table": lambda x, y: pa.table([*x.T.double().numpy(), y.numpy()], names=[f"x{i}" for i in range(5)] + ["y"]),
}
CLIPS: Mapping[str, dict[str, Any]] = {
    "automatic": {"max_grad_norm": AutomaticClipping()},
    "quantile": {"max_grad_norm": AdaptiveClipping()},
    "per layer": {"max_grad_norm": PerLayerClipping(0.5)},
    "shuffled": {"sampling": "shuffled", "batch_size": 12, "unit": dp.rows(replace=True)},
    "no metrics": {"metrics": "nothing"},
    "several owners": {
        "unit": dp.rows(per_person=2),
        "users": [[i, i + 1, *(["everywhere"] if i % 4 == 3 else [])] for i in range(24)],
        "batch_size": 20,
    },
}


def trained(kind: str, **more: Any) -> Callable[[Path, Sequence[Any]], Any]:
    def drive(home: Path, odd: Sequence[Any]) -> Any:
        x, y = X.clone(), Y.clone()
        for i, (inputs, target) in enumerate(odd):
            x[i], y[i] = inputs, target
        net = model()
        given: dict[str, Any] = {"max_grad_norm": 1.0, "batch_size": 24, "steps": 2, "noise_multiplier": 1.0, **more}
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)

        def run() -> Any:
            where: Any = {"unit": given.pop("unit", dp.rows()), "ledger": home / "t.ledger"}
            private = KINDS[kind](x, y)
            if kind == "table":
                opened = dp.open(private, **where, budget=dp.Budget(100, 1e-3), name="t").declare(y=[0, 1])
                private, where = opened.examples([f"x{i}" for i in range(5)], "y"), {"size": len(X)}
            elif kind == "dataset":
                where["example"] = torch.zeros(5), 0
            trainer = Trainer(
                net, torch.nn.CrossEntropyLoss(), optimizer, private, epsilon=100, delta=1e-3, **where, **given
            )
            trained = trainer.fit(progress=False)
            return [trainer.explain(), str(trained), trained.explain(), trainer.epsilon()]

        return [attempt(run), parameters(net)]

    return drive


SLOW = pytest.mark.slow


@pytest.mark.parametrize(
    "kind", ["tensors", pytest.param("arrays", marks=SLOW), pytest.param("dataset", marks=SLOW), "table"]
)
def test_no_example_is_told_by_any_kind_of_data(kind: str) -> None:
    # One example in the place of another is one that goes and one that comes.
    moves: Callable[[Sequence[Any]], int] = lambda odd: 2 * len(odd)  # noqa: E731
    no_differences(compared(f"Trainer, {kind}", trained(kind), odd_examples(), units=moves, runs=12))


@SLOW
@pytest.mark.parametrize("clip", CLIPS)
def test_no_example_is_told_by_any_clipping(clip: str) -> None:
    moves: Callable[[Sequence[Any]], int] = lambda odd: 2 * len(odd)  # noqa: E731
    no_differences(
        compared(f"Trainer, {clip}", trained("tensors", **CLIPS[clip]), odd_examples(), units=moves, runs=12)
    )


def test_no_example_is_told_by_clipped_sums() -> None:
    def drive(home: Path, odd: Sequence[Any]) -> Any:
        del home
        x, y = X.clone(), Y.clone()
        for i, (inputs, target) in enumerate(odd):
            x[i], y[i] = inputs, target
        return attempt(
            lambda: type(Gradients(model(), torch.nn.CrossEntropyLoss()).clipped_sum((x, y), _to_one)).__name__
        )

    # A building block for loops of one's own, which says what model and loss say; Trainer leaves out what fails.
    computed = {name: odd for name, odd in odd_examples().items() if "class" not in name}
    no_differences(compared("Gradients.clipped_sum", drive, computed))


def odd_pictures() -> dict[str, tuple[Any, Any]]:
    """What stands in a list of images beside a label: images of odd numbers or shapes, and what is none."""
    found: dict[str, tuple[Any, Any]] = {
        "an ordinary image": (np.ones((2, 3)), 1),
        "an odd label": (np.ones((2, 3)), 7),
    }
    for name, make in VALUES.items():
        found[name] = (make(), 0)
        found[f"{name} in one pixel"] = ([[make(), 0, 0], [0, 0, 0]], 1)
        found[f"{name} as a label"] = (np.zeros((2, 3)), make())
    found["another shape"] = (np.ones((3, 2)), 1)
    return found


def odd_sequences() -> dict[str, tuple[Any, Any]]:
    """The same for sequences of symbols."""
    found: dict[str, tuple[Any, Any]] = {"an ordinary one": ("ab", 1), "too long": ("a" * 99, 0), "empty": ("", 0)}
    for name, make in VALUES.items():
        found[name] = (make(), 0)
        found[f"{name} as a symbol"] = (["a", make()], 1)
    return found


def synthesised(form: Any, usual: Sequence[Any]) -> Callable[[Path, Sequence[Any]], Any]:
    def drive(home: Path, odd: Sequence[Any]) -> Any:
        data, labels = [usual[i % len(usual)] for i in range(60)], [i % 2 for i in range(60)]
        for i, (example, label) in enumerate(odd):
            data[i], labels[i] = example, label

        def run() -> Any:
            where: Any = {"unit": dp.rows(), "ledger": home / "e.ledger", "labels": labels, "classes": [0, 1]}
            wanted = dp.synthesis.ExampleSynthesiser(data, form, **where)
            price: Any = {"rho": 1, "batch_size": 60, "epochs": 2}  # noise as large as what one example moves
            made = wanted.fit(**price, progress=False)
            return [str(wanted.preview(**price)), made.to_json(), made.explain(), made.sample(4, bits=seeded(1))]

        return attempt(run)

    return drive


@pytest.mark.parametrize("kind", ["images", "sequences"])
def test_no_example_is_told_by_synthetic_ones(kind: str) -> None:
    images = kind == "images"
    form: Any = dp.synthesis.Images((2, 3)) if images else dp.synthesis.Sequences("abc", 4)
    drive = synthesised(form, [np.eye(2, 3), np.ones((2, 3))] if images else ["abc", "ba"])
    odds = odd_pictures() if images else odd_sequences()
    moves: Callable[[Sequence[Any]], int] = lambda odd: 2 * len(odd)  # noqa: E731
    for start in range(0, len(odds), 50):
        some = dict(itertools.islice(odds.items(), start, start + 50))
        no_differences(compared(f"ExampleSynthesiser, {kind}", drive, some, units=moves, runs=12))


@SLOW
@pytest.mark.parametrize("held_private", [False, True])
def test_no_example_is_told_by_a_search(held_private: bool) -> None:
    def drive(home: Path, odd: Sequence[Any]) -> Any:
        x, y = X.clone(), Y.clone()
        for i, (inputs, target) in enumerate(odd):
            x[i], y[i] = inputs, target

        def make(rate: float) -> Any:
            net = model()
            return net, torch.nn.CrossEntropyLoss(), torch.optim.SGD(net.parameters(), lr=rate)

        def run() -> Any:
            found = search(
                make, (X, Y) if held_private else (x, y), settings=[0.1], validation=(x, y) if held_private else (X, Y),
                epsilon=400, delta=1e-3, batch_size=24, steps=1, unit=dp.rows(), ledger=home / "s.ledger", runs=2,
                private_validation=held_private,
            )  # fmt: skip
            return [str(found.setting), found.score, str(found.event)]

        return attempt(run)

    words = "private" if held_private else "public"
    no_differences(compared(f"search, {words} validation", drive, odd_examples(), measured=False, runs=2))


def _to_one(norms: torch.Tensor) -> torch.Tensor:
    return 1 / norms.clamp(min=1)

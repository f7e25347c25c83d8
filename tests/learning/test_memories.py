"""Models and losses that remember: refused before the charge, or nothing of one example reaches another."""

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.learning.making import data, trainer
from torch import nn
from torch.nn import functional as F  # noqa: N812 -- its name everywhere

from defocus.errors import DependentExamplesError
from defocus.learning.gradients import Gradients

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


def largest(x: torch.Tensor) -> float:
    return float(x.detach().abs().max())


class Plain:
    """An object that a module holds."""

    def __init__(self) -> None:
        self.top = 1.0


class Scaling(nn.Module):
    """Divides by the largest number that it ever saw, wherever it keeps that."""

    shared = 1.0

    def __init__(self, where: str) -> None:
        super().__init__()
        self.inner, self.where, self.top, self.past = nn.Linear(5, 2), where, 1.0, [1.0]
        self.register_buffer("kept", torch.ones(()))
        self.nested: dict[str, Any] = {"of": {"lists": [1.0]}}
        self.plain, self.array, self.calls = Plain(), np.ones(1), 0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        top = getattr(self, f"by_{self.where}")(x)
        found: torch.Tensor = self.inner(x / top)
        return found

    def by_attribute(self, x: torch.Tensor) -> float:
        self.top = max(self.top, largest(x))
        return self.top

    def by_buffer(self, x: torch.Tensor) -> torch.Tensor:
        self.kept = torch.maximum(self.get_buffer("kept"), x.detach().abs().max())
        return self.kept

    def by_memory_of_a_buffer(self, x: torch.Tensor) -> torch.Tensor:
        self.get_buffer("kept").data.fill_(max(float(self.get_buffer("kept")), largest(x)))
        return self.get_buffer("kept").clone()

    def by_list(self, x: torch.Tensor) -> float:
        self.past.append(largest(x))
        return max(self.past)

    def by_nested(self, x: torch.Tensor) -> float:
        self.nested["of"]["lists"].append(largest(x))
        return float(max(self.nested["of"]["lists"]))

    def by_object(self, x: torch.Tensor) -> float:
        self.plain.top = max(self.plain.top, largest(x))
        return self.plain.top

    def by_array(self, x: torch.Tensor) -> float:
        self.array[0] = max(self.array[0], largest(x))
        return float(self.array[0])

    def by_class(self, x: torch.Tensor) -> float:
        Scaling.shared = max(Scaling.shared, largest(x))
        return Scaling.shared

    def by_new_attribute(self, x: torch.Tensor) -> float:
        self.later = max(getattr(self, "later", 1.0), largest(x))
        return self.later

    def by_threshold(self, x: torch.Tensor) -> float:
        if largest(x) > 1e7:
            self.top = largest(x)
        return self.top

    def by_counter(self, x: torch.Tensor) -> float:
        self.calls += len(x)
        return 1000.0 if self.calls > 20 else 1.0

    def by_smallest(self, x: torch.Tensor) -> float:
        self.top = min(self.top, largest(x))
        return max(self.top, 1e-3)

    def by_signs(self, x: torch.Tensor) -> float:
        self.top = 100.0 if bool((x.detach() < 0).all()) else self.top
        return self.top

    def by_numbers(self, x: torch.Tensor) -> float:
        self.top = 100.0 if bool(torch.isnan(x.detach()).any()) else self.top
        return self.top


def hooked() -> nn.Module:
    net, held = nn.Linear(5, 2), [1.0]

    def remember(_: nn.Module, args: Any) -> Any:
        held[0] = max(held[0], largest(args[0]))
        return (args[0] / held[0],)

    net.register_forward_pre_hook(remember)
    return net


def with_a_closure() -> Callable[[Any, Any], torch.Tensor]:
    top = 1.0

    def loss(output: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        nonlocal top
        top = max(top, largest(output))
        return F.cross_entropy(output / top, target, reduction="none")

    return loss


class Losing(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.top = 1.0

    def forward(self, output: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        self.top = max(self.top, largest(output))
        return F.cross_entropy(output / self.top, target, reduction="none")


def by_default(output: torch.Tensor, target: torch.Tensor, top: list[float] = [1.0]) -> torch.Tensor:  # noqa: B006
    top[0] = max(top[0], largest(output))
    return F.cross_entropy(output / top[0], target, reduction="none")


WITHIN: dict[str, Callable[[], tuple[nn.Module, Any]]] = {
    name.removeprefix("by_"): functools.partial(lambda where: (Scaling(where), nn.CrossEntropyLoss()), name[3:])
    for name in vars(Scaling)
    if name.startswith("by_")
} | {
    "hook": lambda: (hooked(), nn.CrossEntropyLoss()),
    "closure of the loss": lambda: (nn.Linear(5, 2), with_a_closure()),
    "loss": lambda: (nn.Linear(5, 2), Losing()),
    "default of the loss": lambda: (nn.Linear(5, 2), by_default),
    "part of the loss": lambda: (nn.Linear(5, 2), functools.partial(by_default, top=[1.0])),
    "method of an object": lambda: (nn.Linear(5, 2), Losing().forward),
}


def clipped(norms: torch.Tensor) -> torch.Tensor:
    return (1 / norms.clamp(min=1e-12)).clamp(max=1.0)


@pytest.mark.slow
@pytest.mark.parametrize(("place", "extreme"), [(0, 33.8), (0, 1e8), (7, 1e8), (0, -1e-6), (7, float("nan"))])
@pytest.mark.parametrize("name", WITHIN)
def test_one_example_moves_the_sum_by_the_clip_whatever_a_model_remembers(
    name: str, place: int, extreme: float
) -> None:
    """Within a step, from chunk to chunk and from step to step, without the check that would refuse most of them."""
    x, y = data(24)
    x[place] = extreme
    found = []
    for first in (list(range(8)), [i for i in range(8) if i != place]):
        torch.manual_seed(0)
        Scaling.shared = 1.0
        model, loss = WITHIN[name]()
        gradients = Gradients(model, loss)
        gradients._keep_apart("the test wants it")
        sums = []
        for chunk in (first, list(range(8, 16)), list(range(16, 24))):
            model.zero_grad()
            gradients.clipped_sum((x[chunk], y[chunk]), clipped)
            sums.append(torch.cat([p.grad.reshape(-1).clone() for p in model.parameters() if p.grad is not None]))
        found.append(sums)
    assert float((found[0][0] - found[1][0]).norm()) <= 1 + 1e-4
    assert all(torch.equal(*pair) for pair in zip(found[0][1:], found[1][1:], strict=True))


TOPS: dict[str, float] = {}
CALLS = [0]


class Global(nn.Module):
    """Asks a function that remembers under a global name."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.inner, self.name = nn.Linear(5, 2), name
        TOPS.clear()
        CALLS[0] = 0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        found: torch.Tensor = self.inner(x / globals()[self.name](x))
        return found


def largest_ever(x: torch.Tensor) -> float:
    TOPS["top"] = max(TOPS.get("top", 1.0), largest(x))
    return TOPS["top"]


def smallest_ever(x: torch.Tensor) -> float:
    TOPS["low"] = min(TOPS.get("low", 1.0), largest(x))
    return max(1e-3, TOPS["low"])


def beyond_all_that_is_usual(x: torch.Tensor) -> float:
    if largest(x) > 1e20:
        TOPS["odd"] = 50.0
    return TOPS.get("odd", 1.0)


def once_there_was_no_number(x: torch.Tensor) -> float:
    if bool(torch.isnan(x.detach()).any()):
        TOPS["lost"] = 50.0
    return TOPS.get("lost", 1.0)


def once_there_were_negative_ones(x: torch.Tensor) -> float:
    if bool((x.detach() < -1e4).all()):
        TOPS["below"] = 50.0
    return TOPS.get("below", 1.0)


def after_some_calls(x: torch.Tensor) -> float:
    CALLS[0] += len(x)
    return 50.0 if CALLS[0] > 150 else 1.0


def after_a_failure(x: torch.Tensor) -> float:
    if largest(x) > 1e20:
        TOPS["failed"] = 50.0
        raise OverflowError
    return TOPS.get("failed", 1.0)


GLOBAL = (
    largest_ever,
    smallest_ever,
    beyond_all_that_is_usual,
    once_there_was_no_number,
    once_there_were_negative_ones,
    after_some_calls,
    after_a_failure,
)


@pytest.mark.parametrize("make", GLOBAL, ids=lambda make: make.__name__)
def test_what_is_remembered_under_global_names_is_refused_before_the_charge(tmp_path: Path, make: Any) -> None:
    with pytest.raises(DependentExamplesError, match=r"changes with|the other examples"):
        trainer(tmp_path, model=Global(make.__name__))
    assert not (tmp_path / "run.ledger").exists()


@functools.lru_cache
def cached(shape: tuple[int, ...]) -> float:
    del shape
    return TOPS["now"]


def by_shape(x: torch.Tensor) -> float:
    TOPS["now"] = 1 + largest(x)
    return cached(tuple(x.shape))


def test_what_is_remembered_by_shape_is_refused_before_the_charge(tmp_path: Path) -> None:
    cached.cache_clear()
    with pytest.raises(
        DependentExamplesError, match=r"numbers of the batch come to Python by __float__ in \w+\.py, line"
    ):
        trainer(tmp_path, model=Global("by_shape"))


@pytest.mark.parametrize("name", ["attribute", "buffer", "list", "threshold", "smallest", "signs", "numbers", "loss"])
def test_most_of_what_remembers_is_refused_before_the_charge(tmp_path: Path, name: str) -> None:
    model, loss = WITHIN[name]()
    with pytest.raises(DependentExamplesError, match=r"changes with|the operator \w+ goes over the examples"):
        trainer(tmp_path, model=model, loss=loss)

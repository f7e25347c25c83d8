"""Settings that are proposed from public facts."""

import re
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.learning.making import data, model
from torch import nn

from defocus import Budget, edge, rows
from defocus.errors import InvalidParameterError
from defocus.learning import Suggestion, Trainer, suggest

BUDGET = Budget(3, 1e-5)


@pytest.fixture(scope="module")
def mnist() -> Suggestion:
    return suggest(size=60_000, epsilon=3, delta=1e-5, parameters=26_000)


def test_the_choice_costs_the_budget_and_no_more(mnist: Suggestion) -> None:
    assert 2.99 < mnist.growth_at(mnist.steps) <= 3
    assert dict(mnist.growth)[mnist.steps] == mnist.growth_at(mnist.steps)
    assert [value for _, value in mnist.growth] == sorted(value for _, value in mnist.growth)


def test_the_error_at_the_same_noise_falls_with_the_square_of_the_batch(mnist: Suggestion) -> None:
    assert mnist.error_at(2000) / mnist.error_at(4000) == pytest.approx(4)
    chosen = next(option for option in mnist.options if option.batch_size == mnist.batch_size)
    assert chosen.error == pytest.approx(mnist.error_at(mnist.batch_size))
    assert chosen.error == pytest.approx(26_000 * (mnist.noise_multiplier / mnist.batch_size) ** 2)


def test_the_batch_is_the_smallest_that_has_almost_the_least_noise(mnist: Suggestion) -> None:
    least = min(option.ratio for option in mnist.options)
    assert mnist.ratio <= 1.1 * least
    assert all(option.ratio > 1.1 * least for option in mnist.options if option.batch_size < mnist.batch_size)
    assert all(option.steps * option.batch_size == pytest.approx(30 * 60_000, rel=0.01) for option in mnist.options)


def test_more_parameters_need_no_other_batch_but_are_warned_about() -> None:
    small, large = (suggest(size=2000, epsilon=3, delta=1e-5, parameters=width) for width in (10, 10**7))
    assert small.batch_size == large.batch_size
    assert "more noise than signal" not in str(small)
    assert "more noise than signal" in str(large)


def test_a_trainer_takes_the_settings_and_charges_what_was_said(tmp_path: Path) -> None:
    net = model()
    found = suggest(size=64, epsilon=3, delta=1e-5, model=net, epochs=5)
    assert found.parameters == sum(each.numel() for each in net.parameters())
    run = Trainer(
        net,
        nn.CrossEntropyLoss(),
        torch.optim.SGD(net.parameters(), lr=0.1),
        data(),
        ledger=tmp_path / "run.ledger",
        **found.settings(),
    )
    assert (run.plan.steps, run.plan.batch_size, run.plan.ratio) == (
        found.steps,
        found.batch_size,
        found.noise_multiplier,
    )
    assert run.plan.epsilon_after(run.plan.steps) == pytest.approx(found.growth_at(found.steps))


def test_a_replaced_row_needs_about_twice_the_noise() -> None:
    added, replaced = (
        suggest(size=100, epsilon=3, delta=1e-5, parameters=10, unit=unit, epochs=100)
        for unit in (rows(), rows(replace=True))
    )
    at = {option.batch_size: option.noise_multiplier for option in added.options}
    assert all(option.noise_multiplier > 1.5 * at[option.batch_size] for option in replaced.options)


def test_it_prints_in_a_terminal_and_on_a_page(mnist: Suggestion) -> None:
    text, page = str(mnist), mnist._repr_html_()
    assert re.search(r"4096 +440 .* chosen", text)
    assert "nothing was looked at" in text
    assert "<th" in page
    assert "chosen" in page
    assert {"batch_size", "steps", "noise_multiplier", "max_grad_norm"} <= mnist.reasons().keys()


def test_the_plot_has_both_curves(mnist: Suggestion) -> None:
    left, right = mnist.plot().axes
    assert left.get_xlabel() == "steps"
    assert len(right.get_lines()) == 3


@pytest.mark.parametrize(("size", "epochs"), [(1, 1), (5, 30), (17, 1), (1000, 0.1)])
def test_every_size_gets_a_choice(size: int, epochs: float) -> None:
    found = suggest(size=size, epsilon=3, delta=1e-5, parameters=3, epochs=epochs)
    assert 1 <= found.batch_size <= size
    assert found.steps >= 1
    if len(found.options) == 1:  # too few steps whatever the batch: as many as can be had
        assert found.batch_size == min(16, size)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({}, "pass a model or parameters="),
        ({"parameters": 3, "model": nn.Linear(2, 1)}, "one of them"),
        ({"parameters": 0}, "parameters"),
        ({"parameters": True}, "parameters"),
        ({"model": "net"}, "a str has none"),
        ({"parameters": 3, "size": -1}, "size"),
        ({"parameters": 3, "size": 1.5}, "size"),
        ({"parameters": 3, "epochs": float("nan")}, "epochs"),
        ({"parameters": 3, "max_grad_norm": 0}, "max_grad_norm"),
        ({"parameters": 3, "epsilon": None}, "epsilon and delta, or rho"),
        ({"parameters": 3, "unit": edge()}, "rows or users"),
    ],
)
def test_what_is_no_public_fact_is_refused_with_a_remedy(given: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidParameterError, match=re.escape(words)) as refused:
        suggest(**{"size": 100, "epsilon": 3, "delta": 1e-5, **given})
    assert refused.value.fix

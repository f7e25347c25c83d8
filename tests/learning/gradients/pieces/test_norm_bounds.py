"""A told norm is never far below the true one, however much an example's contributions cancel."""

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
import torch
from tests.learning.gradients.comparing import Model, added, clip, grouped, told_squares
from tests.waiting import HANGS
from torch import nn

from defocus.learning.gradients.layouts import Region
from defocus.learning.gradients.losses import Losses
from defocus.learning.gradients.onepass import OnePass
from defocus.learning.gradients.pieces import Convolution, Lookup, Outer
from defocus.learning.gradients.pieces.convolution import Shape
from defocus.learning.gradients.pieces.norm_bounds import TOLD, bounded, reach
from defocus.learning.gradients.pieces.piece import Choices, Rough, Tools
from defocus.learning.gradients.pieces.shared import Tied
from defocus.learning.gradients.reference import Looped

WAYS = [("ghost",), ("instantiated",)]


def slopes(output: torch.Tensor, slope: torch.Tensor) -> torch.Tensor:
    return (output * slope).flatten(1).sum(1)


def worst(model: nn.Module, batches: Callable[[], Any], forced: tuple[str, ...], *, narrow: bool = False) -> float:
    """The largest contribution that the last example of a batch makes at clip 1, in twenty batches."""
    found = []
    parameters = dict(model.named_parameters())

    def last(norms: torch.Tensor) -> torch.Tensor:
        factors = (1 / norms).clamp(max=1)
        factors[..., :-1] = 0
        return factors

    for _ in range(20):
        model.zero_grad()
        way = OnePass(model, Losses(slopes), (parameters,), Choices(forced=forced))
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=narrow):
            way.add(batches(), last)
        found.append(float(torch.cat([p.grad.flatten() for p in parameters.values()]).norm()))
    return max(found)


@pytest.mark.slow
@pytest.mark.parametrize("forced", WAYS)
@pytest.mark.parametrize("scale", [1e4, 1e6, 1e7])
def test_two_visits_that_cancel(scale: float, forced: tuple[str, ...]) -> None:
    torch.manual_seed(0)

    def visits() -> Any:
        base = torch.randn(1, 1, 64) * scale
        bad = torch.cat([base + torch.randn(1, 1, 64) * scale * 3e-5, base], 1)
        return torch.cat([torch.randn(7, 2, 64), bad]), torch.randn(8, 64) * 0.1

    def forward(self: Any, x: torch.Tensor) -> Any:
        h = self.l(x)
        return h[:, 0] - h[:, 1]

    assert worst(Model(forward, l=nn.Linear(64, 64, bias=False)), visits, forced) <= TOLD


@pytest.mark.parametrize("forced", WAYS)
def test_a_row_looked_up_again_and_again_with_gradients_that_cancel(forced: tuple[str, ...]) -> None:
    torch.manual_seed(0)

    def words() -> Any:
        ids = torch.randint(0, 12, (8, 4))
        ids[-1] = 7
        a = torch.randn(1, 1, 16) * 1e6
        bad = torch.cat([a + torch.randn(1, 1, 16) * 10, -a, a, -a], 1)
        return ids, torch.cat([torch.randn(7, 4, 16), bad])

    model = Model(lambda self, ids: self.e(ids), e=nn.Embedding(12, 16))
    assert worst(model, words, forced) <= TOLD


@pytest.mark.parametrize("forced", WAYS)
def test_a_table_looked_up_and_multiplied_with_gradients_that_cancel(forced: tuple[str, ...]) -> None:
    torch.manual_seed(0)

    def forward(self: Any, ids: torch.Tensor, x: torch.Tensor) -> Any:
        return torch.cat([self.e(ids), nn.functional.linear(x, self.e.weight)], 2)

    def words() -> Any:
        ids, x = torch.randint(0, 12, (8, 2)), torch.randn(8, 2, 16)
        slope = torch.randn(8, 2, 28)
        a = torch.randn(16) * 1e6
        ids[-1], x[-1], slope[-1] = 7, a + torch.randn(2, 16) * 10, 0.0
        slope[-1, :, :16] = -a
        slope[-1, :, 16 + 7] = 1.0
        return (ids, x), slope

    assert worst(Model(forward, e=nn.Embedding(12, 16)), words, forced) <= TOLD


@pytest.mark.parametrize("forced", WAYS)
def test_patches_that_cancel(forced: tuple[str, ...]) -> None:
    torch.manual_seed(0)

    def images() -> Any:
        x, slope = torch.randn(8, 16, 2), torch.randn(8, 24, 2)
        base = torch.randn(16) * 1e7
        x[-1, :, 0], x[-1, :, 1] = base * (1 + 3e-5 * torch.randn(16)), base
        slope[-1, :, 1] = -slope[-1, :, 0]
        return x, slope * 0.1

    model = Model(lambda self, x: self.c(x), c=nn.Conv1d(16, 24, 1, bias=False))
    assert worst(model, images, forced) <= TOLD


@pytest.mark.parametrize("forced", WAYS)
def test_narrow_numbers_that_cancel(forced: tuple[str, ...]) -> None:
    torch.manual_seed(0)

    def forward(self: Any, x: torch.Tensor) -> Any:
        h = self.l(x)
        return h[:, 0] + h[:, 1] - h[:, 2]

    def visits() -> Any:
        one, two = (torch.randint(-32, 32, (1, 1, 256)).float() for _ in range(2))
        three = one + two
        three[..., 0] += 2
        return torch.cat([torch.randn(7, 3, 256), torch.cat([one, two, three], 1) / 32]), torch.randn(8, 256) * 10

    model = Model(forward, l=nn.Linear(256, 256, bias=False))
    assert worst(model, visits, forced, narrow=True) <= TOLD


def test_ordinary_norms_are_told_as_they_are_and_what_is_no_number_stays_so() -> None:
    squares = torch.tensor([4.0, torch.nan, torch.inf, -1e-3, 1e-6])
    reach = torch.tensor([4.0, 4.0, torch.inf, 4.0, 4.0])
    share = 100 * 2.0**-24
    found = bounded([Rough(squares, reach, share)])[0]
    assert float(found[0]) == 4.0
    assert bool(found[1].isnan())
    assert float(found[2]) == torch.inf
    assert float(found[3]) == pytest.approx(16 * share / 1.0018**2)
    assert float(found[4]) == pytest.approx((1e-6 + 16 * share) / 1.0018**2)
    several = bounded([Rough(squares, reach, share), Rough(squares[[0]].expand(5), reach, off=2**-10)])
    assert torch.allclose(several[0, [0, 3, 4]], found[[0, 3, 4]])
    assert not bool(several[0, 1:3].isfinite().any())
    assert float(several[1, 0]) == pytest.approx(((2 + 2**-8) / 1.0018) ** 2)


def outer(left: torch.Tensor, right: torch.Tensor) -> Outer:
    where = Region("w", (left.shape[2], right.shape[2]), (right.shape[2], 1), 0)
    return Outer(where, left, right, Tools(Choices(forced=("ghost",))))


def true_norms(left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
    return torch.bmm(left.double().transpose(1, 2), right.double()).flatten(1).norm(dim=1)


def told_over_true(squares: torch.Tensor, true: torch.Tensor) -> tuple[float, float]:
    ratios = squares.double().sqrt() / true
    return float(ratios.min()), float(ratios.max())


@pytest.mark.parametrize(
    ("length", "rows", "columns", "ghost"),
    [
        (128, 256, 1024, True),
        (256, 768, 3072, True),
        (1024, 64, 64, True),
        (1024, 768, 256, False),
        (4096, 64, 9, False),
    ],
)
def test_long_sequences_are_told_at_most_one_percent_too_long(
    length: int, rows: int, columns: int, *, ghost: bool
) -> None:
    """Contributions that point anywhere, and such with a part in common, as the mean over positions leaves them."""
    torch.manual_seed(0)
    for shared in (0.0, 3.0):
        left = torch.randn(2, length, rows)
        right = torch.randn(2, length, columns) + shared * torch.randn(2, 1, columns)
        piece = outer(left, right)
        assert (piece.width is not None) == ghost, "products of pairs are for sequences that are short enough"
        squares = told_squares(piece) if ghost else bounded([piece._written(slice(None), 0.0)])[0]
        least, most = told_over_true(squares, true_norms(left, right))
        assert least >= 1 / TOLD
        assert most <= 1.01


@pytest.mark.parametrize("length", [2, 130, 1024])
@pytest.mark.parametrize("rest", [1e-1, 1e-3, 1e-5])
def test_single_examples_that_cancel_are_looked_at_again(length: int, rest: float) -> None:
    """All but a small rest of each contribution is taken back by another: norms are upper bounds, closer than pairs."""
    torch.manual_seed(1)
    left, right = torch.randn(4, length, 48), torch.randn(4, length, 40)
    half = length // 2
    left[:2, half:] = left[:2, :half] * (1 + rest * torch.randn(2, half, 48))
    right[:2, half:] = -right[:2, :half]
    true = true_norms(left, right)
    squares, most = outer(left, right).ghost(64)
    assert torch.allclose(most, reach(left, right))
    ghost = bounded([Rough(squares, most, 200 * 2**-24)])[0]
    assert told_over_true(ghost, true)[0] >= 1 / TOLD
    everywhere = bounded([outer(left, right)._written(slice(None), 0.0)])[0]
    assert told_over_true(everywhere, true)[0] >= 1 / TOLD
    assert told_over_true(everywhere[2:], true[2:])[1] <= 1.01
    found = told_squares(outer(left, right))
    assert told_over_true(found, true)[0] >= 1 / TOLD
    assert told_over_true(found[2:], true[2:])[1] <= 1.01
    assert bool((found <= ghost).all())
    assert bool((found.sqrt() <= true * 1.01 + 1e-7 * length * reach(left, right)).all())


@pytest.mark.parametrize("length", [300, 3000])
def test_a_model_of_long_sequences_is_clipped_as_the_loop_clips_it(length: int) -> None:
    torch.manual_seed(6)
    layer, last = nn.Linear(24, 32), nn.Linear(32, 5)
    model = Model(lambda self, ids: self.b(self.a(self.e(ids)).tanh()).mean(1), e=nn.Embedding(9, 24), a=layer, b=last)
    batch = torch.randint(0, 9, (3, length)), torch.tensor([0, 3, 4])
    losses, parts = Losses(nn.CrossEntropyLoss()), grouped(model, None)
    _, norms, plain = added(Looped(model, losses, parts), model, batch, clip(0.01))
    found = added(OnePass(model, losses, parts, Choices(forced=("ghost",))), model, batch, clip(0.01))
    assert told_over_true(found[1][0].square(), norms[0].double())[0] >= 1 / TOLD
    assert told_over_true(found[1][0].square(), norms[0].double())[1] <= 1.01
    assert float((found[2] - plain).norm()) <= 0.01 * float(plain.norm())


def cut(values: torch.Tensor) -> torch.Tensor:
    return (values.view(torch.int32) & ~0x1FFF).view(torch.float32)


def test_products_that_round_their_factors_move_norms_by_little() -> None:
    """Factors of 11 bits, as some processors multiply them: the clipped sum is no longer than what was told."""
    torch.manual_seed(2)
    left, right, factor = torch.randn(3, 256, 32), torch.randn(3, 256, 32), 0.7
    left[0, 128:], right[0, 128:] = left[0, :128] * (1 + 1e-3 * torch.randn(128, 32)), -right[0, :128]
    squares, _ = outer(cut(left), cut(right)).ghost(32)
    norms = bounded([Rough(squares, reach(left, right), 200 * 2**-24, 2**-10)])[0].sqrt()
    added = true_norms(cut(factor * left), cut(right)) / factor
    assert bool((added <= norms * TOLD).all())
    assert float((norms[1:] / added[1:]).max()) <= 1.02


@pytest.mark.parametrize("length", [64, 600, 4096])
def test_rows_looked_up_again_and_again_are_told_at_most_one_percent_too_long(length: int) -> None:
    torch.manual_seed(3)
    ids = torch.randint(0, 7, (3, length))
    ids[0] = 5
    found = torch.randn(3, length, 8)
    found[1, 1::2] = -found[1, ::2] + 1e-4 * torch.randn(length // 2, 8)
    ids[1, 1::2] = ids[1, ::2]
    piece = Lookup(Region("w", (7, 8), (8, 1), 0), ids, found, Tools(Choices()))
    exact = Lookup(piece.region, ids, found.double(), Tools(Choices())).each().flatten(1).norm(dim=1)
    found = told_squares(piece)
    assert told_over_true(found, exact)[0] >= 1 / TOLD
    assert told_over_true(found[::2], exact[::2])[1] <= 1.01


@pytest.mark.parametrize("length", [3, 500])
def test_a_long_sequence_of_a_tied_table(length: int) -> None:
    """A short one by products of pairs, a long one written out, and in both one that cancels."""
    torch.manual_seed(4)
    where, tools = Region("w", (50, 400), (400, 1), 0), Tools(Choices(forced=("ghost",)))
    ids, found = torch.randint(0, 50, (3, length)), torch.randn(3, length, 400)
    left, right = torch.randn(3, length, 50), torch.randn(3, length, 400)
    left[0], right[0] = nn.functional.one_hot(ids[0], 50), -found[0] * (1 + 1e-4 * torch.randn(length, 400))
    tied = Tied(Lookup(where, ids, found, tools), Outer(where, left, right, tools), tools)
    exact = Lookup(where, ids, found.double(), tools).each() + torch.bmm(left.double().transpose(1, 2), right.double())
    found, true = told_squares(tied), exact.flatten(1).norm(dim=1)
    assert told_over_true(found, true)[0] >= 1 / TOLD
    assert told_over_true(found[1:], true[1:])[1] <= 1.01


def test_convolutions_over_many_positions_are_written_out_where_pairs_are_too_many() -> None:
    torch.manual_seed(5)
    x, g = torch.randn(2, 3, 900), torch.randn(2, 4, 898)
    x[1, :, 450:] = x[1, :, :450]
    g[1, :, 450:] = -g[1, :, :448] * (1 + 1e-4 * torch.randn(4, 448))
    shape = Shape((3,), (1,), ((0, 0),), (1,), 1)
    piece = Convolution(Region("w", (4, 3, 3), (9, 3, 1), 0), x, g, shape, Tools(Choices()))
    exact = Convolution(piece.region, x.double(), g.double(), shape, Tools(Choices())).each().flatten(1).norm(dim=1)
    for squares in (bounded([piece._written(torch.arange(2), 0.0)])[0], told_squares(piece)):
        assert told_over_true(squares, exact)[0] >= 1 / TOLD
        assert told_over_true(squares[:1], exact[:1])[1] <= 1.01


SETTINGS = {
    "": 0.0,
    "torch.set_float32_matmul_precision('high')": 2**-10,
    "torch.set_float32_matmul_precision('medium')": 2**-8,
    "torch.backends.mkldnn.matmul.fp32_precision = 'bf16'": 2**-8,
    "torch.backends.fp32_precision = 'tf32'": 2**-10,
}


@pytest.mark.slow
def test_precisions_are_found_however_they_were_set() -> None:
    """In a process of their own, since PyTorch cannot take a setting by the new names back."""
    lines = [f"check({setting!r}, {wanted})" for setting, wanted in SETTINGS.items()]
    program = f"""
import os, torch
from defocus.learning.gradients.pieces.norm_bounds import total_rounding
def check(setting, wanted):
    if os.fork() == 0:
        exec(setting)
        os._exit(total_rounding(torch.zeros(1)) != wanted)
    assert os.wait()[1] == 0, setting
{chr(10).join(lines)}
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=HANGS)  # noqa: S603 -- our own words

"""Norms and totals of pieces are those of the gradients written out."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.learning.gradients.comparing import told_squares

from defocus.learning.gradients.layouts import Region, Regions
from defocus.learning.gradients.pieces import Direct, Lookup, Outer, Piece, joined
from defocus.learning.gradients.pieces.direct import Several
from defocus.learning.gradients.pieces.piece import Choices, Tools
from defocus.learning.gradients.pieces.shared import Tied

sizes = st.integers(1, 4)
ways = st.sampled_from([("ghost",), ("instantiated",)])


def region(rows: int, columns: int) -> Region:
    return Region("w", (rows, columns), (columns, 1), 0)


def assert_consistent(piece: Piece) -> None:
    each, factors = piece.each().clone(), torch.rand(len(piece.each()))
    told = told_squares(piece).to(each.dtype)
    assert torch.allclose(told, each.flatten(1).square().sum(1), rtol=1e-4, atol=1e-5)
    assert torch.allclose(piece.total(factors), torch.tensordot(factors, each, 1), rtol=1e-4, atol=1e-5)
    assert torch.allclose(piece.each(), each, atol=1e-5)


@settings(deadline=None)
@given(sizes, sizes, sizes, sizes, ways)
def test_outer_products(examples: int, length: int, rows: int, columns: int, forced: tuple[str, ...]) -> None:
    tools = Tools(Choices(forced=forced))
    left, right = torch.randn(examples, length, rows), torch.randn(examples, length, columns)
    assert_consistent(Outer(region(rows, columns), left, right, tools))
    assert_consistent(Outer(region(rows, columns), left[:, 0], right[:, 0], tools))


@settings(deadline=None)
@given(sizes, sizes, sizes, sizes, ways)
def test_lookups(examples: int, length: int, rows: int, columns: int, forced: tuple[str, ...]) -> None:
    ids, found = torch.randint(0, rows, (examples, length)), torch.randn(examples, length, columns)
    assert_consistent(Lookup(region(rows, columns), ids, found, Tools(Choices(forced=forced))))


@settings(deadline=None)
@given(sizes, sizes, sizes, sizes, ways)
def test_a_table_looked_up_and_multiplied(
    examples: int, length: int, rows: int, columns: int, forced: tuple[str, ...]
) -> None:
    tools, where = Tools(Choices(forced=forced)), region(rows, columns)
    lookup = Lookup(where, torch.randint(0, rows, (examples, 2)), torch.randn(examples, 2, columns), tools)
    outer = Outer(where, torch.randn(examples, length, rows), torch.randn(examples, length, columns), tools)
    parameter = torch.nn.Parameter(torch.zeros(rows, columns))
    (tied,) = joined([lookup, outer], Regions({"w": parameter}), tools)
    assert isinstance(tied, Tied)
    assert_consistent(tied)


def test_uses_of_separate_places_stay_separate_and_others_are_joined() -> None:
    parameter = torch.nn.Parameter(torch.zeros(4, 2))
    regions, tools = Regions({"w": parameter}), Tools(Choices())
    top, middle, bottom = (regions.find(parameter[i : i + 2]) for i in (0, 1, 2))
    assert top is not None
    assert middle is not None
    assert bottom is not None
    pieces: list[Piece] = [Direct(where, torch.randn(3, 2, 2)) for where in (top, bottom)]
    assert len(joined(pieces, regions, tools)) == 2
    (all_of,) = joined([*pieces, Direct(middle, torch.ones(3, 2, 2))], regions, tools)
    assert all_of.region == regions.whole("w")
    expected = torch.cat([pieces[0].each(), pieces[1].each()], 1)
    expected[:, 1:3] += 1
    assert torch.allclose(all_of.each(), expected)
    assert_consistent(all_of)


def test_several_small_gradients_side_by_side_are_the_same_gradients() -> None:
    parts = [Direct(region(2, 3), torch.randn(4, 2, 3)), Direct(Region("s", (), (), 0), torch.randn(4))]
    several, factors = Several(parts), torch.rand(4)
    assert torch.allclose(several.squares(), sum(part.squares() for part in parts))
    for part, (where, total) in zip(parts, several.totals(factors), strict=True):
        assert where == part.region
        assert torch.allclose(total, part.total(factors))


@pytest.mark.parametrize("forced", [("ghost",), ("instantiated",)])
def test_silenced_examples_are_zero_even_if_they_were_infinite(forced: tuple[str, ...]) -> None:
    tools, usable = Tools(Choices(forced=forced)), torch.tensor([True, False])
    left, right = torch.randn(2, 3, 4), torch.randn(2, 3, 5)
    right[1] = torch.inf
    table = torch.randn(2, 3, 5)
    table[1] = torch.nan
    for piece in (
        Outer(region(4, 5), left, right, tools),
        Lookup(region(4, 5), torch.randint(0, 4, (2, 3)), table, tools),
        Direct(region(3, 5), right),
    ):
        piece.squares()
        piece.silence(usable)
        assert bool(torch.isfinite(piece.total(torch.tensor([1.0, 0.0]))).all())
        assert not bool(piece.each()[1].any())

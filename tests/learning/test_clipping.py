"""Rules of clipping: no contribution is longer than the clip."""

import math
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from defocus.errors import InvalidParameterError
from defocus.learning.clipping import AdaptiveClipping, AutomaticClipping, FixedClipping, PerLayerClipping, as_clipping

lengths = st.floats(0, 1e30, allow_nan=False)
clips = st.floats(1e-6, 1e6)


@given(norm=lengths, clip=clips)
def test_no_rule_lets_a_gradient_be_longer_than_the_clip(norm: float, clip: float) -> None:
    norms = torch.tensor([norm])
    for rule in (
        FixedClipping(clip),
        AutomaticClipping(clip),
        AdaptiveClipping(initial=clip),
        PerLayerClipping({"a": clip}, (("a.w",),)),
    ):
        factor = rule.rule(rule.start())(norms)
        assert float(factor[0]) >= 0
        assert float(factor[0]) * float(norms[0]) <= clip * (1 + 1e-5)


def test_short_gradients_are_left_alone_and_normalised_ones_are_not() -> None:
    norms = torch.tensor([0.5, 2.0, math.inf])
    assert FixedClipping(1).rule((1.0,))(norms).tolist() == [1.0, 0.5, 0.0]
    assert AutomaticClipping(1, 0.5).rule((1.0,))(norms).tolist() == pytest.approx([1.0, 0.4, 0.0])


def test_layers_are_cut_apart_and_their_clips_add_up_as_lengths() -> None:
    names = ["a.weight", "a.bias", "b.c.weight"]
    even = PerLayerClipping(3.0).grouped(names)
    assert even.names == (("a.weight", "a.bias"), ("b.c.weight",))
    assert even.total() == pytest.approx(3.0)
    named = PerLayerClipping({"a": 3.0, "b": 4.0}).grouped(names)
    assert named.start() == (3.0, 4.0)
    assert named.total() == 5.0
    factors = named.rule(named.start())(torch.tensor([[1.0, 6.0], [8.0, 1.0]]))
    assert factors.tolist() == [[1.0, 0.5], [0.5, 1.0]]
    with pytest.raises(InvalidParameterError, match=r"b\.c\.weight is in no group"):
        PerLayerClipping({"a": 1.0}).grouped(names)
    with pytest.raises(InvalidParameterError, match="No trainable parameter is in the group 'c'"):
        PerLayerClipping({"a": 1.0, "b": 1.0, "c": 1.0}).grouped(names)


def test_the_clip_moves_towards_its_quantile() -> None:
    rule = AdaptiveClipping(0.5, rate=0.2)
    assert rule.moved(1.0, 0.9) < 1.0 < rule.moved(1.0, 0.1)
    assert rule.moved(1.0, 0.5) == 1.0
    assert rule.moved(1.0, 1e300) == rule.moved(1.0, 2.0)  # a noisy share can be anything
    assert rule.moved(1e-12, 1.0) == 1e-12


def test_a_number_means_fixed_clipping() -> None:
    assert as_clipping(2) == FixedClipping(2)
    assert as_clipping(AutomaticClipping()) == AutomaticClipping()


@pytest.mark.parametrize("bad", [0, -1, math.nan, math.inf, True, "1", None, 1e300, 1e-300])
def test_clips_that_bound_nothing_are_refused(bad: Any) -> None:
    with pytest.raises(InvalidParameterError):
        as_clipping(bad)
    for rule in (
        FixedClipping,
        AutomaticClipping,
        PerLayerClipping,
        lambda x: AdaptiveClipping(initial=x),
        lambda x: PerLayerClipping({"a": x}),
    ):
        with pytest.raises(InvalidParameterError):
            rule(bad)


@pytest.mark.parametrize("bad", [{}, {1: 1.0}])
def test_layers_need_names(bad: Any) -> None:
    with pytest.raises(InvalidParameterError, match="names of modules"):
        PerLayerClipping(bad)


@pytest.mark.parametrize(
    "rule",
    [FixedClipping(1), AutomaticClipping(), AdaptiveClipping(), PerLayerClipping(1.0).grouped(["a.b", "c.d"])],
    ids=lambda rule: type(rule).__name__,
)
def test_every_rule_says_what_it_does(rule: Any) -> None:
    assert len(rule.words()) > 20

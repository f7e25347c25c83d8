r"""How far one contribution may move a step: rules from the norms of gradients to factors.

Guarantee:
    For every rule, factor times norm is at most the clip, for each group of parameters and whatever the norm is. So one
    unit moves the sum of a step by at most the L2 norm of the clips of all groups.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, final

import torch

from defocus.errors import InvalidParameterError, Number, in_range, positive

__all__ = ["AdaptiveClipping", "AutomaticClipping", "Clipping", "FixedClipping", "PerLayerClipping", "as_clipping"]


class Clipping(ABC):
    """A rule of clipping. What it needs beyond the norms of a batch is public, or paid for."""

    __slots__ = ()

    @abstractmethod
    def start(self) -> tuple[float, ...]:
        """The clips of the first step, one for each group."""

    @abstractmethod
    def rule(self, clips: Sequence[float]) -> Callable[[torch.Tensor], torch.Tensor]:
        """From norms, of shape (B,) or (groups, B), to factors of the same shape."""

    @abstractmethod
    def words(self) -> str:
        """The rule in a sentence."""

    @property
    def share(self) -> float:
        """The part of the precision of a step that a private search for the clip takes."""
        return 0.0


@final
@dataclass(frozen=True, slots=True)
class FixedClipping(Clipping):
    """Longer gradients are cut to ``norm``, shorter ones are left as they are.

    Reference:
        Abadi et al. (2016), Deep learning with differential privacy.

    >>> FixedClipping(2.0).rule((2.0,))(torch.tensor([1.0, 4.0]))
    tensor([1.0000, 0.5000])
    """

    norm: Number

    def __post_init__(self) -> None:
        _norm("max_grad_norm", self.norm)

    def start(self) -> tuple[float, ...]:
        """See the base class."""
        return (float(self.norm),)

    def rule(self, clips: Sequence[float]) -> Callable[[torch.Tensor], torch.Tensor]:
        """See the base class."""
        return _cut(clips[0])

    def words(self) -> str:
        """See the base class."""
        return f"gradients longer than {float(self.norm):g} are cut to that length"


@final
@dataclass(frozen=True, slots=True)
class AutomaticClipping(Clipping):
    """Every gradient is brought to length about ``norm``: g·norm/(|g| + stability).

    Only the learning rate is left to tune.

    Reference:
        Bu, Wang, Zha, Karypis (2023), Automatic clipping: differentially private deep learning made easier and
        stronger.

    >>> AutomaticClipping(stability=1.0).rule((1.0,))(torch.tensor([1.0, 3.0]))
    tensor([0.5000, 0.2500])
    """

    norm: Number = 1
    stability: Number = 0.01

    def __post_init__(self) -> None:
        _norm("norm", self.norm)
        _norm("stability", self.stability)

    def start(self) -> tuple[float, ...]:
        """See the base class."""
        return (float(self.norm),)

    def rule(self, clips: Sequence[float]) -> Callable[[torch.Tensor], torch.Tensor]:
        """See the base class."""
        clip, stability = clips[0], float(self.stability)
        return lambda norms: clip / (norms + stability)

    def words(self) -> str:
        """See the base class."""
        return f"every gradient is brought to a length of about {float(self.norm):g}"


@final
@dataclass(frozen=True, slots=True)
class AdaptiveClipping(Clipping):
    r"""The clip follows a quantile of the norms, found privately on the way.

    After each step the noisy share b of contributions that were not longer than the clip C moves it:
    :math:`C \leftarrow C\,e^{-\eta(b - \gamma)}`. Every contribution counts ±1, so one unit moves the count by 1; its
    noise takes ``share`` of the precision of the step (the inverse squares of the ratios add up), and is charged
    with it.

    Reference:
        Andrew, Thakkar, McMahan, Ramaswamy (2021), Differentially private learning with adaptive clipping.

    >>> AdaptiveClipping(0.5).target
    0.5
    """

    target: Number = 0.5
    initial: Number = 1
    rate: Number = 0.2
    precision: Number = 0.01

    def __post_init__(self) -> None:
        in_range("target", self.target, 0, 1)
        _norm("initial", self.initial)
        in_range("rate", self.rate, 1e-6, 10)
        in_range("precision", self.precision, 1e-6, 0.5)

    def start(self) -> tuple[float, ...]:
        """See the base class."""
        return (float(self.initial),)

    def rule(self, clips: Sequence[float]) -> Callable[[torch.Tensor], torch.Tensor]:
        """See the base class."""
        return _cut(clips[0])

    @property
    def share(self) -> float:
        """See the base class."""
        return float(self.precision)

    def moved(self, clip: float, below: float) -> float:
        """The next clip, where a noisy share ``below`` of the contributions was not longer than this one."""
        step = float(self.rate) * (min(max(below, -1.0), 2.0) - float(self.target))
        return min(max(clip * math.exp(-step), 1e-12), 1e12)

    def words(self) -> str:
        """See the base class."""
        return (
            f"the clip follows the {100 * float(self.target):g} % quantile of the norms, from {float(self.initial):g};"
            f" counting them takes {100 * self.share:g} % of the precision"
        )


@final
@dataclass(frozen=True, slots=True)
class PerLayerClipping(Clipping):
    """Groups of parameters are clipped apart, each to a norm of its own; one unit moves all of them together.

    ``norms`` maps the first words of parameters' names to clips, for example ``{"encoder": 1.0, "head": 0.5}``; the
    longest that fits counts, and every trainable parameter must be in a group. One number gives each module that has
    parameters of its own a group with that clip, over the square root of how many there are.

    Reference:
        McMahan, Ramage, Talwar, Zhang (2018), Learning differentially private recurrent language models.

    >>> PerLayerClipping({"encoder": 1.0, "head": 0.5}).norms
    {'encoder': 1.0, 'head': 0.5}
    """

    norms: Any
    names: tuple[tuple[str, ...], ...] = ()
    """The names of the parameters of each group, once the model is known."""

    def __post_init__(self) -> None:
        if isinstance(self.norms, dict):
            if not self.norms or not all(isinstance(name, str) for name in self.norms):
                raise InvalidParameterError(
                    "PerLayerClipping needs the names of modules with their clips.",
                    fix='write PerLayerClipping({"encoder": 1.0}).',
                )
            for norm in self.norms.values():
                _norm("a clip of PerLayerClipping", norm)
        else:
            _norm("the clip of PerLayerClipping", self.norms)

    def grouped(self, parameters: Sequence[str]) -> "PerLayerClipping":
        """The same for the parameters of these names."""
        groups: dict[str, list[str]] = {}
        for name in parameters:
            home = name.rpartition(".")[0]
            if isinstance(self.norms, dict):
                fitting = [norms for norms in self.norms if name == norms or name.startswith(f"{norms}.")]
                if not fitting:
                    raise InvalidParameterError(
                        f"The trainable parameter {name} is in no group.",
                        fix="name its module in PerLayerClipping({…}).",
                    )
                home = max(fitting, key=len)
            groups.setdefault(home, []).append(name)
        unknown = [name for name in self.norms if name not in groups] if isinstance(self.norms, dict) else []
        if unknown:
            raise InvalidParameterError(
                f"No trainable parameter is in the group {unknown[0]!r:.60} of PerLayerClipping.",
                fix="leave it out, or write the name of a module as model.named_modules() has it.",
            )
        norms = {home: self.norms[home] if isinstance(self.norms, dict) else self.norms for home in groups}
        if not isinstance(self.norms, dict):
            norms = {home: float(self.norms) / math.sqrt(len(groups)) for home in groups}
        return PerLayerClipping(norms, tuple(tuple(names) for names in groups.values()))

    def start(self) -> tuple[float, ...]:
        """See the base class."""
        return tuple(float(norm) for norm in self.norms.values())

    def rule(self, clips: Sequence[float]) -> Callable[[torch.Tensor], torch.Tensor]:
        """See the base class."""
        if len(clips) == 1:
            return _cut(clips[0])
        bounds = torch.tensor(clips)

        def cut(norms: torch.Tensor) -> torch.Tensor:
            return (bounds.to(norms.device)[:, None] / norms).clamp(max=1.0)

        return cut

    def words(self) -> str:
        """See the base class."""
        return f"{len(self.names)} groups of parameters are cut apart, to lengths that add up to {self.total():.4g}"

    def total(self) -> float:
        """The L2 norm of all clips: how far one contribution moves a step."""
        return math.hypot(*self.start())


def as_clipping(max_grad_norm: object) -> Clipping:
    """A rule, or the fixed one that a number means."""
    if isinstance(max_grad_norm, Clipping):
        return max_grad_norm
    return FixedClipping(positive("max_grad_norm", max_grad_norm))


def _cut(clip: float) -> Callable[[torch.Tensor], torch.Tensor]:
    return lambda norms: (clip / norms).clamp(max=1.0)


def _norm(name: str, value: object) -> None:
    in_range(name, positive(name, value), 1e-12, 1e12)

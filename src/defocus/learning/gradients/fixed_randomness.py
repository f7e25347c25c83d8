"""Randomness that is the same for every example, so that an example can be compared between batches of any size."""

from statistics import NormalDist
from typing import Any, final

import torch
from torch.utils._python_dispatch import TorchDispatchMode

__all__ = ["Steady"]


@final
class Steady(TorchDispatchMode):
    """While it lasts, whatever torch draws is the ``level`` of its law, the same number everywhere.

    A coin shows one up to the middle level and zero above, so that dropout drops nothing, or everything. Orders are
    reversed, and choices take the likeliest. Draws below autograd are met as well, such as those of attention and of
    recurrent layers. Other generators than torch's are not.

    >>> with Steady():
    ...     torch.rand(2), torch.randn(1), torch.randperm(3), torch.dropout(torch.ones(2), 0.5, True)
    (tensor([0.5000, 0.5000]), tensor([0.]), tensor([2, 1, 0]), tensor([2., 2.]))
    """

    def __init__(self, level: float = 0.5) -> None:
        super().__init__()
        self._level, self._coin = level, float(level <= 0.5)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run what draws nothing as it is, and put the same number everywhere into what was drawn."""
        del types
        arguments = func._schema.arguments  # noqa: SLF001 -- its only name
        given = {each.name: each.default_value for each in arguments if each.has_default_value()}
        given |= dict(zip((each.name for each in arguments), args, strict=False)) | (kwargs or {})
        for name in ("dropout_p", "dropout"):
            if isinstance(given.get(name), float):
                given[name] = 0.0
        what = func.overloadpacket.__name__.removesuffix("_")
        if what == "native_dropout" and given["train"] is not False:
            return self._dropped(given["input"], given["p"])
        made = func(**given)
        if what in _DRAWS:
            made.copy_(self._drawn(what, given, made))
        return made

    def _dropped(self, whole: torch.Tensor, rate: float) -> tuple[torch.Tensor, torch.Tensor]:
        scale = 0.0 if rate == 1 else self._coin / (1 - rate)
        return whole * scale, torch.full_like(whole, bool(self._coin), dtype=torch.bool)

    def _drawn(self, what: str, given: dict[str, Any], made: torch.Tensor) -> Any:
        match what:
            case "randperm":
                found: Any = torch.arange(len(made) - 1, -1, -1, device=made.device)
            case "multinomial":
                found = given["self"].topk(made.shape[-1]).indices
            case "_sample_dirichlet":
                found = given["self"] / given["self"].sum(-1, keepdim=True)
            case "bernoulli":
                chance = torch.as_tensor(given.get("p", given["self"]), device=made.device)
                found = chance > 0 if self._coin else chance >= 1
            case "randint" | "randint_like" | "random":
                low, high = given.get("low", given.get("from", 0)), given.get("high", given.get("to"))
                found = torch.full_like(made, low if high is None else low + int((high - low) * self._level))
            case "rand" | "rand_like" | "uniform":
                low, high = given.get("from", 0.0), given.get("to", 1.0)
                found = torch.full_like(made, low + (high - low) * self._level)
            case "randn" | "randn_like" | "normal" | "normal_functional":
                away = given.get("std", 1.0) * torch.full_like(made, NormalDist().inv_cdf(self._level))
                found = given.get("mean", 0.0) + away
            case _:
                found = torch.ones_like(made)
        return found


_DRAWS = frozenset(
    {
        *("rand", "rand_like", "uniform", "randn", "randn_like", "normal", "normal_functional", "bernoulli"),
        *("randint", "randint_like", "random", "randperm", "multinomial", "_sample_dirichlet"),
        *("exponential", "cauchy", "log_normal", "geometric", "poisson", "_standard_gamma"),  # all taken to be one
    }
)

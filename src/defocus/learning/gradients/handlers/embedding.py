"""Tables that are looked up in."""

from collections.abc import Callable
from typing import Any

import torch
from torch.nn import functional as F  # noqa: N812 -- its name everywhere

from defocus.errors import UnfitModelError
from defocus.learning.gradients.handlers.linear import bare
from defocus.learning.gradients.hooks import Handler, Watch
from defocus.learning.gradients.layouts import Layout
from defocus.learning.gradients.pieces import Lookup
from defocus.learning.gradients.tape import Tape

__all__ = ["HANDLERS"]


def _embedding(watch: Watch, func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    def layer(
        input: torch.Tensor,  # noqa: A002 -- PyTorch's name
        weight: torch.Tensor,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
    ) -> Any:
        del norm_type, sparse
        table = watch.region(weight)
        if max_norm is not None or (scale_grad_by_freq and table is not None):
            raise UnfitModelError(
                "An embedding with max_norm or scale_grad_by_freq changes with the data of the batch, without noise.",
                fix="leave both at their defaults.",
            )
        if table is None:
            return NotImplemented
        layout = watch.seat("embedding", input, table)
        if layout is None:
            seen = func(*args, **kwargs)
            watch.looked_up(seen, None)
            return seen
        output = watch.run(lambda: func(input, bare(weight), padding_idx))
        skipped = None if padding_idx is None else padding_idx % weight.shape[0]

        def arrived(tape: Tape, gradient: torch.Tensor, layout: Layout = layout) -> None:
            ids = layout.apart(input, watch.examples).reshape(watch.examples, -1)
            found = layout.apart(gradient, watch.examples) if layout.axis is not None else gradient
            found = found.reshape(*ids.shape, -1)
            if skipped is not None:
                found = found.masked_fill((ids == skipped).unsqueeze(2), 0.0)
            tape.take(Lookup(table, ids, found, tape.tools))

        watch.looked_up(output, arrived if layout.axis is None else None)
        if layout.axis is not None:
            watch.listen(output, arrived, input)
        return output

    return layer(*args, **kwargs)


HANDLERS: dict[Any, Handler] = {F.embedding: _embedding}

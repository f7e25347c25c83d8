"""Recurrent layers and cells, unrolled over time.

The product of the inputs with their weights is one linear layer over all times. The product of the states is computed
inside of the loop with detached weights; a tensor of zeros that is added to it collects its gradients over all times,
and together with the states they are the two factors of the gradients of the recurrent weights.
"""

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import torch
from torch.nn import functional as F  # noqa: N812 -- its name everywhere

from defocus.learning.gradients.handlers.linear import bare
from defocus.learning.gradients.hooks import Handler, UnknownUseError, Watch
from defocus.learning.gradients.pieces import Direct, Outer
from defocus.learning.gradients.tape import Tape

__all__ = ["HANDLERS"]

_State: TypeAlias = tuple[torch.Tensor, ...]
_Cell: TypeAlias = Callable[[torch.Tensor, torch.Tensor, _State], _State]
"""From what inputs and states bring, each through its weights, and the last state, to the next state."""


def _lstm(inputs: torch.Tensor, states: torch.Tensor, last: _State) -> _State:
    i, f, g, o = (inputs + states).chunk(4, -1)
    cell = f.sigmoid() * last[1] + i.sigmoid() * g.tanh()
    return o.sigmoid() * cell.tanh(), cell


def _gru(inputs: torch.Tensor, states: torch.Tensor, last: _State) -> _State:
    (ri, zi, ni), (rh, zh, nh) = inputs.chunk(3, -1), states.chunk(3, -1)
    update = (zi + zh).sigmoid()
    new = (ni + (ri + rh).sigmoid() * nh).tanh()
    return ((1 - update) * new + update * last[0],)


def _tanh(inputs: torch.Tensor, states: torch.Tensor, last: _State) -> _State:
    del last
    return ((inputs + states).tanh(),)


def _relu(inputs: torch.Tensor, states: torch.Tensor, last: _State) -> _State:
    del last
    return ((inputs + states).relu(),)


def _layers(cell: _Cell) -> Handler:
    def handler(watch: Watch, func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        del func
        if kwargs or not isinstance(args[2], list | tuple):
            return NotImplemented  # packed sequences do not say which example a row belongs to
        x, hidden, weights, biased, layers, dropout, training, both, batch_first = args
        if not any(watch.region(each) is not None for each in weights):
            return NotImplemented
        first: _State = tuple(hidden) if isinstance(hidden, list | tuple) else (hidden,)
        runs = layers * (2 if both else 1)
        each = len(weights) // runs
        x = x.transpose(0, 1) if batch_first else x
        ends: list[_State] = []
        for layer in range(layers):
            outputs = []
            for way in range(2 if both else 1):
                run = len(ends)
                mine = list(weights[run * each : (run + 1) * each])
                biases = [mine.pop(2), mine.pop(2)] if biased else [None, None]
                start = tuple(state[run] for state in first)
                output, end = _run(watch, cell, x.flip(0) if way else x, start, mine, biases)
                outputs.append(output.flip(0) if way else output)
                ends.append(end)
            x = torch.cat(outputs, -1)
            if dropout and training and layer < layers - 1:
                x = F.dropout(x, dropout, training=True)
        result = x.transpose(0, 1) if batch_first else x
        return result, *(torch.stack(states) for states in zip(*ends, strict=True))

    return handler


def _run(
    watch: Watch, cell: _Cell, x: torch.Tensor, state: _State, weights: list[Any], biases: Sequence[Any]
) -> tuple[torch.Tensor, _State]:
    """One layer in one direction, over (time, example, features)."""
    with watch:
        inputs = F.linear(x, weights[0], biases[0])
    recurrent, projection = weights[1], weights[2] if len(weights) > 2 else None
    matrix, shift = watch.region(recurrent), watch.region(biases[1])
    collector = _collector(watch, x, recurrent, matrix, shift)
    before, outputs = [], []
    for time in range(len(x)):
        before.append(state[0])
        states = F.linear(state[0], bare(recurrent), bare(biases[1]))
        if collector is not None:
            states = states + collector[0][time]
        state = cell(inputs[time], states, state)
        if projection is not None:
            with watch:
                state = (F.linear(state[0], projection), *state[1:])
        outputs.append(state[0])
    if collector is not None:
        collector[1].extend(each.detach() for each in before)
    return torch.stack(outputs), state


def _collector(
    watch: Watch, x: torch.Tensor, recurrent: torch.Tensor, matrix: Any, shift: Any
) -> tuple[torch.Tensor, list[torch.Tensor]] | None:
    """Zeros that collect the gradients of what states bring, and a place for the states themselves."""
    if matrix is None and shift is None:
        return None
    layout = watch.seat("recurrent", x, matrix, shift)
    if layout is None:
        return None
    if layout.axis != 1 or layout.each != 1:
        raise UnknownUseError
    states: list[torch.Tensor] = []
    shape = (*x.shape[:2], recurrent.shape[0])
    zeros = watch.run(lambda: x.new_zeros(()).expand(shape))

    def arrived(tape: Tape, gradient: torch.Tensor) -> None:
        left = gradient.transpose(0, 1)
        if matrix is not None:
            tape.take(Outer(matrix, left, torch.stack(states, 1), tape.tools))
        if shift is not None:
            tape.take(Direct(shift, left.sum(1)))

    watch.listen(zeros, arrived)
    return zeros, states


def _cells(cell: _Cell) -> Handler:
    def handler(watch: Watch, func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        del func
        if kwargs:
            return NotImplemented
        x, hidden, of_inputs, of_states, *biases = args
        if not any(watch.region(each) is not None for each in (of_inputs, of_states, *biases)):
            return NotImplemented
        last: _State = tuple(hidden) if isinstance(hidden, list | tuple) else (hidden,)
        first, second = biases or (None, None)
        with watch:
            inputs, states = F.linear(x, of_inputs, first), F.linear(last[0], of_states, second)
        found = cell(inputs, states, last)
        return found if len(found) > 1 else found[0]

    return handler


HANDLERS: dict[Any, Handler] = {
    torch.lstm: _layers(_lstm),
    torch.gru: _layers(_gru),
    torch.rnn_tanh: _layers(_tanh),
    torch.rnn_relu: _layers(_relu),
    torch.lstm_cell: _cells(_lstm),
    torch.gru_cell: _cells(_gru),
    torch.rnn_tanh_cell: _cells(_tanh),
    torch.rnn_relu_cell: _cells(_relu),
}

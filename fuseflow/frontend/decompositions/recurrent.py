"""Recurrent cells, and recurrent layers unrolled over time. Every gate is a product with its own rows of the weights."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import torch
from torch import Tensor

from fuseflow.errors import FrontendError
from fuseflow.frontend.decompositions.slices_and_windows import select, stack

aten = torch.ops.aten

State: TypeAlias = tuple[Tensor, ...]
"""The state that a cell hands to its next step: the hidden values, and the memory of an LSTM."""
Weights: TypeAlias = Sequence[Tensor | None]
"""The weights of a cell for its input and its state, and the two biases, which may be missing."""


def _gates(x: Tensor, weight: Tensor, bias: Tensor | None, count: int) -> list[Tensor]:
    size = weight.shape[0] // count
    parts = [x @ weight.narrow(0, n * size, size).t() for n in range(count)]
    return parts if bias is None else [part + bias.narrow(0, n * size, size) for n, part in enumerate(parts)]


def _both(x: Tensor, state: State, weights: Weights, count: int) -> tuple[list[Tensor], list[Tensor]]:
    from_input, from_state, input_bias, state_bias = (*weights, None, None)[:4]
    assert from_input is not None
    assert from_state is not None
    return _gates(x, from_input, input_bias, count), _gates(state[0], from_state, state_bias, count)


def _lstm_step(x: Tensor, state: State, weights: Weights) -> State:
    i, f, g, o = (a + b for a, b in zip(*_both(x, state, weights, 4), strict=True))
    memory = torch.sigmoid(f) * state[1] + torch.sigmoid(i) * torch.tanh(g)
    return torch.sigmoid(o) * torch.tanh(memory), memory


def _gru_step(x: Tensor, state: State, weights: Weights) -> State:
    (r, z, n), (r_state, z_state, n_state) = _both(x, state, weights, 3)
    update = torch.sigmoid(z + z_state)
    fresh = torch.tanh(n + torch.sigmoid(r + r_state) * n_state)
    return (fresh + update * (state[0] - fresh),)


def _rnn_step(activation: Callable[[Tensor], Tensor]) -> Callable[[Tensor, State, Weights], State]:
    def step(x: Tensor, state: State, weights: Weights) -> State:
        (a,), (b,) = _both(x, state, weights, 1)
        return (activation(a + b),)

    return step


def _layer(step: Callable[[Tensor, State, Weights], State]) -> Callable[..., Any]:
    """Return the function that unrolls layers over time. `step` computes a cell from its value, state and weights."""

    def unrolled(
        x: Tensor, first: Any, weights: Weights, biases: bool, layers: int, dropout: float, train: bool, both: bool, batch: bool
    ) -> tuple[Tensor, ...]:
        """Return the results of the last layer at every time, and the last states of all layers; `first` holds the first states of all
        cells, and `both` is for both directions. Raise `FrontendError` for dropout in training, and for projections."""
        if train and dropout and layers > 1:
            hint = "call .eval() on the model"
            raise FrontendError("random numbers: a recurrent layer with dropout in training mode", hint=hint)
        per_cell, directions, time = 4 if biases else 2, 2 if both else 1, 1 if batch and x.dim() == 3 else 0
        if len(weights) != layers * directions * per_cell:
            hint = "use proj_size=0 and a linear layer"
            raise FrontendError("a recurrent layer with a projection has no Einsum form", hint=hint)
        states = (first,) if isinstance(first, Tensor) else tuple(first)
        steps = [select(x, time, n) for n in range(x.shape[time])]
        last: list[State] = []
        for layer in range(layers):
            results: list[list[Tensor]] = []
            for direction in range(directions):
                cell = layer * directions + direction
                state = tuple(select(part, 0, cell) for part in states)
                outputs: list[Tensor] = []
                for value in reversed(steps) if direction else steps:
                    state = step(value, state, weights[cell * per_cell : (cell + 1) * per_cell])
                    outputs.append(state[0])
                results.append(outputs[::-1] if direction else outputs)
                last.append(state)
            steps = [torch.cat(parts, -1) if both else parts[0] for parts in zip(*results, strict=True)]
        return stack(steps, time), *(stack(parts) for parts in zip(*last, strict=True))

    return unrolled


def _cell(step: Callable[[Tensor, State, Weights], State]) -> Callable[..., Tensor]:
    return lambda x, state, *weights: step(x, (state,), weights)[0]


RECURRENT_REPLACEMENTS: dict[object, Callable[..., Any]] = {
    aten.lstm_cell.default: lambda x, state, *weights: _lstm_step(x, tuple(state), weights),
    aten.gru_cell.default: _cell(_gru_step),
    aten.rnn_tanh_cell.default: _cell(_rnn_step(torch.tanh)),
    aten.rnn_relu_cell.default: _cell(_rnn_step(torch.relu)),
    aten.lstm.input: _layer(_lstm_step),
    aten.gru.input: _layer(_gru_step),
    aten.rnn_tanh.input: _layer(_rnn_step(torch.tanh)),
    aten.rnn_relu.input: _layer(_rnn_step(torch.relu)),
}
"""Recurrent layers over all time steps at once, and single steps of them."""

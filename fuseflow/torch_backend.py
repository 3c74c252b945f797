"""A back end of `torch.compile`: the graphs that Dynamo captures from a model run through the compiler and the simulator.

Dynamo calls a back end with each graph that it captures, and with inputs that have no numbers. The numbers come when the graph is called.
Positions and masks among them decide what the program is, so a graph is compiled at each call.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fuseflow.compiler import compile
from fuseflow.errors import CheckError, FrontendError
from fuseflow.machine.files import load_machine
from fuseflow.machine.machine import Machine
from fuseflow.run.compiled import Compiled
from fuseflow.run.result import Result
from fuseflow.schedule import Schedule
from fuseflow.sim import Engine

if TYPE_CHECKING:
    from torch.fx import GraphModule

    from fuseflow.frontend.trace.model_call import DynamoGraph

KEPT_RESULTS = 256
"""The number of latest calls whose results a back end keeps. A training loop has more calls than memory can hold."""

_SPARSE = "Attempted to wrap sparse Tensor"
"""The beginning of the reason that Dynamo counts when it leaves a function with a sparse argument to Python."""


@dataclass(frozen=True, slots=True)
class BackendResult:
    """One call of one graph: the compiled program, which holds every stage, and its run.

    >>> import torch, fuseflow as ff
    >>> backend = ff.Backend(machine="ideal")
    >>> _ = torch.compile(torch.nn.ReLU(), backend=backend)(torch.ones(2, 3))
    >>> result = backend.results[0]
    >>> result.cycles == result.run.cycles, len(result.compiled.regions)
    (True, 1)
    """

    compiled: Compiled
    run: Result

    @property
    def cycles(self) -> int:
        """The cycles of the run."""
        return self.run.cycles


class Backend:
    """A back end for `torch.compile(model, backend=Backend())`, which keeps what it ran in `results`.

    Each call of each graph that Dynamo captures is one result, in order. A model without graph breaks is one graph. The simulator
    computes the outputs, and without `check=False` they are compared with PyTorch's. They have no gradients.

    >>> import torch, fuseflow as ff
    >>> backend = ff.Backend(schedule=ff.Schedule.fuse("full"))
    >>> fast = torch.compile(lambda a, x: (a @ x).relu(), backend=backend)
    >>> fast(torch.eye(2), torch.ones(2, 2))
    tensor([[1., 1.],
            [1., 1.]])
    >>> backend.results[-1].run.check.passed
    True
    """

    __name__ = "fuseflow"  # Dynamo calls a back end so in its messages

    def __init__(
        self,
        *,
        schedule: Schedule | None = None,
        machine: str | Path | Machine = "rda",
        engine: Engine = "auto",
        check: bool = True,
    ) -> None:
        self._schedule, self._engine, self._check = schedule, engine, check
        self._machine = load_machine(machine)
        self._kept: deque[BackendResult] = deque(maxlen=KEPT_RESULTS)
        self._sparse_before = _sparse_breaks()

    @property
    def results(self) -> tuple[BackendResult, ...]:
        """The calls so far, oldest first. Raise `FrontendError` if there was none, or if Dynamo left a function with a sparse argument to
        Python, because the results are then not the results of the model."""
        self._refuse_sparse_breaks()
        if not self._kept:
            raise FrontendError(
                "torch.compile has given no graph to this back end",
                hint="call the model that `torch.compile` returned; `fullgraph=True` says what Dynamo could not capture",
            )
        return tuple(self._kept)

    def clear(self) -> None:
        """Forget all results, and the functions that Dynamo left to Python."""
        self._kept.clear()
        self._sparse_before = _sparse_breaks()

    def __call__(self, graph_module: GraphModule, example_inputs: Sequence[Any]) -> Callable[..., list[Any]]:
        """Return a function that compiles and runs a graph on the values that it is called with."""
        from fuseflow.frontend.trace.model_call import DynamoGraph, input_sources

        sources = input_sources(graph_module)

        def call(*values: Any) -> list[Any]:
            self._refuse_sparse_breaks()
            return self._run(DynamoGraph(graph_module, sources, values))

        return call

    def _run(self, graph: DynamoGraph) -> list[Any]:
        import torch

        with torch.no_grad():
            compiled = compile(graph, graph.inputs, schedule=self._schedule, machine=self._machine)
            result = compiled.run(check=self._check, engine=self._engine)
            eager = graph(**graph.inputs)
        self._kept.append(BackendResult(compiled, result))
        if result.check is not None and not result.check.passed:
            raise CheckError(f"of a graph of torch.compile, {result.check.problem}")
        return _outputs(compiled, result, eager)

    def _refuse_sparse_breaks(self) -> None:
        """Raise `FrontendError` if Dynamo left a function with a sparse argument to Python since this back end was made."""
        if _sparse_breaks() > self._sparse_before:
            raise FrontendError(
                "torch.compile gives no function with a sparse argument to a back end: Python runs such a function, and only the "
                "functions that it calls with dense tensors may come here",
                hint="call `ff.compile(model, inputs)`, which takes sparse tensors",
            )


def _outputs(compiled: Compiled, result: Result, eager: Sequence[Any]) -> list[Any]:
    """Return the results of the graph, with the numbers of the simulator. `eager` are the results of PyTorch, which give the
    shapes, the types, and the values that are no tensors."""
    import torch

    names = iter(compiled.source.program.outputs)
    outputs: list[Any] = []
    for value in eager:
        if isinstance(value, torch.Tensor):
            dense = torch.from_numpy(result.tensors[next(names)].to_dense().copy())
            value = dense.reshape(value.shape).to(value.dtype)
        outputs.append(value)
    return outputs


def _sparse_breaks() -> int:
    """Return how often Dynamo left a function to Python because of a sparse argument. Dynamo counts for the whole process."""
    utils = sys.modules.get("torch._dynamo.utils")
    counts: Mapping[str, int] = {} if utils is None else utils.counters["unimplemented"]
    return sum(count for reason, count in counts.items() if reason.startswith(_SPARSE))


backend = Backend()
"""A back end with the default schedule and machine, for `torch.compile(model, backend=ff.backend)`. All of a process share its results."""

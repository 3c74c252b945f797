"""Traced runs of the reference: a graph that is stuck is explained as it is by a run that nobody traces. The engine says the same."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import dataflow
import numpy as np
import pytest

from fuseflow.errors import DeadlockError
from fuseflow.samml import nodes as n
from fuseflow.sim import Machine, load_machine, simulate
from fuseflow.sim.engine.traced_run import trace as trace_engine
from fuseflow.sim.events.log import CycleSpan
from fuseflow.sim.events.timeline import Timeline
from fuseflow.sim.reference.traced_run import trace as trace_reference
from fuseflow.tensors import pack


@pytest.mark.parametrize("machine", [Machine(name="m"), load_machine("rda", {"fifo_depth": None})], ids=["ideal", "hbm2"])
@pytest.mark.parametrize("trace", [trace_reference, trace_engine], ids=["reference", "engine"])
def test_a_traced_graph_that_is_stuck(trace: Callable[..., Any], machine: Machine) -> None:
    graph = dataflow.graph("normalized")
    graph = replace(graph, depths=((n.Edge("div", 0), 2),))
    tensors = {"A": pack(np.ones((3, 9)), graph.declared["A"].format)}
    with pytest.raises(DeadlockError) as untraced:
        simulate(graph, tensors, machine, engine="reference")
    with pytest.raises(DeadlockError, match=r"`A_v` waits for a slot of input 0 of `div`, full at depth 2") as traced:
        trace(graph, tensors, machine, lambda: Timeline(CycleSpan()))
    assert str(traced.value).splitlines()[:2] == str(untraced.value).splitlines()[:2]

"""Names in a graph are text wherever a graph and its run are written: Graphviz, traces, JSON, and tables on a terminal."""

from __future__ import annotations

import io
import json
import re
import shutil
import subprocess
from dataclasses import replace

import numpy as np
import pytest
from hostile_names import HOSTILE, OBEYED, renamed

import fuseflow as ff
from fuseflow.cli.sanitized_console import SafeConsole
from fuseflow.einsum.parse import parse
from fuseflow.explain.region_timelines import Tracer
from fuseflow.filesystem import json_text
from fuseflow.report.memory_tables import memory_tables
from fuseflow.report.table_width import print_table
from fuseflow.report.tables import result_table, top_tables
from fuseflow.report.trace import trace_bytes
from fuseflow.samml import dot
from fuseflow.samml.nodes import Graph
from fuseflow.sim import load_machine, simulate

PROGRAM = "tensor A[3, 3] csr\ntensor B[3] dense\ny[i] = sum(k) A[i, k] * B[k]\noutput y\n"


@pytest.fixture(scope="module")
def program() -> ff.Compiled:
    return ff.compile(parse(PROGRAM), tensors={"A": np.eye(3), "B": np.ones(3)})


def hostile_nodes(graph: Graph, name: str) -> dict[str, str]:
    """A new name for each node. One that is called as its operator keeps its name, since the operator must."""
    return {node.name: f"{name}{k}" for k, node in enumerate(graph.nodes) if getattr(node, "function", "") != node.name}


@pytest.fixture(params=HOSTILE.values(), ids=HOSTILE)
def spoiled(request: pytest.FixtureRequest, program: ff.Compiled):
    """A graph whose nodes and tensors have a hostile name, with the tensors that it reads."""
    region, name = program.regions[0], request.param
    nodes = hostile_nodes(region.graph, name)
    tensors = {"A": f"A{name}", "B": f"B{name}", "y": f"y{name}"}
    memory = {tensors[key]: value for key, value in program.memory().items()}
    return replace(renamed(region.graph, {**nodes, **tensors}), name=f"graph {name}"), memory


def test_graphviz_reads_them_as_text(spoiled):
    text = dot.dot(spoiled[0])
    assert not any(letter in text for letter in OBEYED)
    text.encode()
    if shutil.which("dot") is None:
        pytest.skip("Graphviz is not installed")
    names = subprocess.run(["dot", "-Tplain"], input=text.encode(), capture_output=True, check=True).stdout.decode()
    assert names.count("\nnode ") == len(spoiled[0].nodes)


def test_traces_and_json_hold_them_as_they_are(spoiled):
    graph, memory = spoiled
    machine = load_machine("rda")
    simulation = simulate(graph, memory, machine, engine="reference")
    tracer = Tracer(machine)
    tracer.add(graph.name, graph, memory, simulation)
    trace = trace_bytes(tracer.regions, {"model": graph.name}, compress=False)
    events = json.loads(trace)["traceEvents"]
    named = [event["args"]["name"] for event in events if event["name"] == "thread_name"]
    assert {node.name for node in graph.nodes} <= set(named)
    assert not any(ord(letter) < 32 and letter != "\n" for letter in trace.decode())


@pytest.mark.parametrize("name", HOSTILE.values(), ids=HOSTILE)
def test_a_terminal_shows_them_and_obeys_none(name: str, program: ff.Compiled):
    result = program.run(check=False)
    graph = program.regions[0].graph
    names = {**hostile_nodes(graph, name), "A": f"A{name}", program.regions[0].name: name}
    spoiled = replace(result, regions=renamed(result.regions, names))
    bytes_shown = io.BytesIO()
    with io.TextIOWrapper(bytes_shown, encoding="utf-8", write_through=True) as file:
        out = SafeConsole(file=file, width=80, force_terminal=True, highlight=False)
        for table in (result_table(spoiled), *top_tables(spoiled, 5), *memory_tables(spoiled)):
            print_table(out, table)
        shown = bytes_shown.getvalue().decode()
    assert not any(letter in shown for letter in OBEYED if letter != "\x1b")
    assert re.fullmatch(r"(\x1b\[[0-9;]*m|[^\x1b])*", shown)  # styles are the console's own, and set no title
    assert "\x1b[31m\x1b]" not in shown


def test_the_json_of_a_result_is_ascii(program: ff.Compiled):
    names = {program.regions[0].name: HOSTILE["control"] + HOSTILE["right to left"]}
    result = program.run(check=False)
    values = replace(result, regions=renamed(result.regions, names)).to_dict()
    text = json_text(values)
    assert text.isascii() and json.loads(text)["regions"][0]["name"] == names[program.regions[0].name]

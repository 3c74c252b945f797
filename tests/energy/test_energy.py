"""Energies of runs and of estimates: by hand, by streams that were recorded, and by what doubles."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import cache
from typing import Any

import memories
import numpy as np
import pytest
import reuse_buffers
from click.testing import CliRunner
from matvec_graph import MATVEC
from random_graphs import random_case

import fuseflow as ff
from fuseflow.cli.main import main
from fuseflow.einsum.parse import parse as parse_einsums
from fuseflow.energy import PARTS, EnergyCounts, EventEnergies, load_event_energies
from fuseflow.energy.counts import MemoryBits
from fuseflow.errors import DeadlockError, EnergyError
from fuseflow.memory.buffer_assignment import buffered_ports
from fuseflow.report.page.page import page
from fuseflow.report.page.run_directory import read_run
from fuseflow.resources.area import AreaCount
from fuseflow.resources.gate_areas import GATE_EQUIVALENT, MEMORY_BIT
from fuseflow.run.compiled import Compiled
from fuseflow.run.simulated_events import simulated_counts
from fuseflow.run.simulated_resources import simulated_resources
from fuseflow.samml.coordinate_bounds import index_bits, stream_bounds
from fuseflow.samml.nodes import Graph, Port
from fuseflow.samml.text import parse
from fuseflow.samml.tokens import D, Stop
from fuseflow.sim import Engine, Machine, Simulation, load_machine, simulate
from fuseflow.tensors import Tensor, pack

MATRIX = np.array([[1.0, 2, 0, 0, 0, 0], [0, 0, 0, 0, 0, 3], [0] * 6, [0, 0, 4, 0, 5, 0]])


def counted(graph: Graph, machine: Machine, simulation: Simulation) -> EnergyCounts:
    return simulated_counts(graph, machine, simulation, simulated_resources(graph, machine, simulation))


def matvec(machine: Machine, **options: Any) -> tuple[Graph, Simulation]:
    graph = parse(MATVEC)
    declared = graph.declared
    tensors = {"A": pack(MATRIX, declared["A"].format), "x": pack(np.ones(6), declared["x"].format)}
    return graph, simulate(graph, tensors, machine, **options)


def test_counted_by_hand() -> None:
    """Five entries in four rows. Each is multiplied and added; y has four values; pos has two words for each row."""
    machine = Machine(name="hand", fifo_depth=4)
    counts = counted(*matvec(machine)[:1], machine, matvec(machine)[1])
    assert counts.operators == {"add": 5, "mul": 5}
    assert counts.dram_bits == 32 * (2 * 4 + 5 + 5 + 5 + 4)  # pos, crd and values of A, x at each entry, and y
    assert (counts.activations, counts.workspaces) == (0, MemoryBits())
    inner, outer = 5 + 4 + 1, 4 + 1 + 1  # elements, stops and the end
    indices = 2 + outer + 3 * inner + outer  # root; A_i to A_k; A_k to x_k and A_v, x_k to x_v; A_i to y_i
    moved = indices * (8 + 2) + (3 * inner + outer) * (32 + 2)
    assert counts.fifos == MemoryBits(moved, moved)
    assert counts.notices == ("the memory answers at once: the DRAM moves the elements that are asked for, and opens no rows",)


def test_what_hbm2_did_is_what_its_channels_counted() -> None:
    machine = load_machine("rda", {"fifo_depth": 64})
    graph, simulation = matvec(machine)
    counts, memory = counted(graph, machine, simulation), simulation.memory
    assert memory is not None and not counts.notices
    assert counts.activations == sum(channel.activations for channel in memory.channels) > 0
    assert counts.dram_bits == 8 * memory.moved_bytes() == 8 * 64 * sum(port.requests for _, port in memory.ports)


@pytest.mark.parametrize("engine", ["reference", "fast"])
def test_counts_are_those_of_recorded_streams(engine: Engine) -> None:
    """Of random graphs with all primitives, in both simulators: tokens are counted one by one, and so are the values that operators
    take."""
    compared = 0
    for seed in range(40):
        case = random_case(seed, "small")
        machine = case.machine
        if machine.rules == "comal":
            continue
        try:
            simulation = simulate(case.graph, case.tensors, machine, engine=engine, record=True)
        except DeadlockError:
            continue
        counts = counted(case.graph, machine, simulation)
        assert counts.fifos.written + counts.fifos.sram_written == recorded_bits(case.graph, simulation)
        assert sum(counts.operators.values()) == recorded_operations(case.graph, simulation)
        compared += 1
    assert compared > 20


def recorded_bits(graph: Graph, simulation: Simulation) -> int:
    index, types, bits = index_bits(graph, stream_bounds(graph)), graph.types(), 0
    for node in graph.nodes:
        for port in node.inputs:
            tile = types[port].tile
            width = graph.element_bits[port] * int(np.prod(tile)) if types[port].kind == "val" else index
            bits += len(simulation.streams[port].tokens) * (width + 2)
    return bits


def recorded_operations(graph: Graph, simulation: Simulation) -> int:
    """The FLOPs that a run prints, and the operators without FLOPs beside them."""
    free = Counter[str]()
    for node in graph.nodes:
        if node.operator in ("where", "copy", "saturate", "nearest", "nearest_finite", "transpose"):
            port = node.inputs[0] if node.inputs else Port("")
            shape = [graph.types()[p].tile for p in node.inputs if graph.types()[p].tile]
            elements = int(np.prod(np.max(np.array(shape), axis=0))) if shape else 1
            values = [token for token in simulation.streams[port].tokens if not (token is D or isinstance(token, Stop))]
            free[node.name] += elements * len(values)
    return simulation.flops + sum(free.values())


@pytest.mark.parametrize("seed", range(20))
def test_both_simulators_have_the_same_energy(seed: int) -> None:
    case = random_case(seed, "small")
    try:
        runs = [simulate(case.graph, case.tensors, case.machine, engine=engine) for engine in ("reference", "fast")]
    except DeadlockError:
        return
    if case.machine.rules == "comal":
        with pytest.raises(EnergyError, match="no model of hardware"):
            counted(case.graph, case.machine, runs[0])
        return
    assert counted(case.graph, case.machine, runs[0]) == counted(case.graph, case.machine, runs[1])


def test_hbm2_is_refreshed_while_it_runs() -> None:
    """Each channel refreshes all banks every 3,900 of its cycles, of which two fit in a cycle of this machine."""
    settings = {"memory.channels": 2, "memory.clock_ghz": 2.0, "fifo_depth": 64}
    machine = load_machine("rda", settings)
    graph, simulation = matvec(machine)
    assert counted(graph, machine, simulation).refreshes == pytest.approx(2 * 2 * simulation.cycles / 3900)
    fixed = load_machine("rda", {"memory": "fixed", "fifo_depth": 64})
    assert counted(graph, fixed, matvec(fixed)[1]).refreshes == 0


def test_lines_of_reuse_buffers_are_read_and_written() -> None:
    """The oracle is an ordered dictionary, on the requests of a run without buffers. Every hit reads a line, and every other request writes
    one."""
    hits = fetches = compared = 0
    for seed in (7001, 7003, 7023, 7081, 7129, 7137, 7185, 7187, 7203, 7217):  # of which most ask for a line again
        case = memories.at_memory(random_case(seed, "medium"), seed)
        if case.machine.rules == "comal" or any(tensor.tile for tensor in case.graph.tensors):
            continue
        plain, case = case, reuse_buffers.in_graph(case, seed)
        plain = replace(plain, machine=case.machine)
        try:
            _, _, ports = reuse_buffers.traced(plain)
            counts = counted(case.graph, case.machine, simulate(case.graph, case.tensors, case.machine, engine="reference"))
            without = counted(plain.graph, plain.machine, simulate(plain.graph, plain.tensors, plain.machine, engine="reference"))
        except DeadlockError:
            continue
        sizes = buffered_ports(case.graph, case.machine.memory.line)
        lines = {(node, array[2]): size for (node, array), size in sizes.items()}
        found = sum(reuse_buffers.hits((line for line, *_ in ports[key]), size) for key, size in lines.items() if key in ports)
        asked = sum(len(ports[key]) for key in lines if key in ports)
        assert counts.workspaces.sram_read - without.workspaces.sram_read == 8 * 32 * found, seed
        assert counts.workspaces.sram_written - without.workspaces.sram_written == 8 * 32 * (asked - found), seed
        hits, fetches, compared = hits + found, fetches + asked - found, compared + 1
    assert compared > 4 and hits > 20 and fetches > 20, (compared, hits, fetches)


def test_what_is_preloaded_is_written_and_read_on_the_chip() -> None:
    """Two lanes look up 15 of 60 numbers, and keep all of them each: 2 * 60 are written, and 15 are read."""
    rng = np.random.default_rng(0)
    matrix, vector = np.zeros((5, 60), np.float32), rng.random(60).astype(np.float32) + 1
    matrix[np.arange(15) % 5, rng.permutation(60)[:15]] = 1
    counts = []
    for preloads in ((), ("x=3",)):
        schedule = ff.Schedule.from_flags(par=["i=2"], preloads=preloads)
        program = ff.compile(
            parse_einsums("tensor A[5, 60] csr\ntensor x[60]\ny[i] = sum(k) A[i, k] * x[k]\noutput y\n"),
            tensors={"A": matrix, "x": vector},
            schedule=schedule,
            machine="rda",
        )
        (region,) = program.run().regions
        counts.append(counted(region.graph, program.machine, region.simulation))
    assert counts[1].workspaces.sram_written - counts[0].workspaces.sram_written == 2 * 60 * 32
    assert counts[1].workspaces.sram_read - counts[0].workspaces.sram_read == 15 * 32


def matvec_with(depth: int) -> tuple[EnergyCounts, int | None]:
    """The counts of a run with FIFOs of so many slots, and the area of its circuit."""
    machine = Machine(name="hand", fifo_depth=depth)
    graph, simulation = matvec(machine)
    return counted(graph, machine, simulation), simulated_resources(graph, machine, simulation).area


def test_fifos_of_more_than_64_slots_are_sram() -> None:
    """Each leaks by its bits then, and no longer by its area; each token takes the energies of SRAM."""
    (small, small_area), (large, large_area) = matvec_with(64), matvec_with(65)
    machine = Machine(name="hand", fifo_depth=65)
    graph, simulation = matvec(machine)
    areas = AreaCount(graph, machine)
    edges = [(node, k) for node in graph.nodes for k in range(len(node.inputs))]
    bits = 65 * sum(areas.fifo_form(node, k).width for node, k in edges)
    assert small_area is not None and large_area is not None
    assert (small.leaking, small.leaking_bits) == (small_area * simulation.cycles, 0)
    assert large.leaking_bits == bits * simulation.cycles
    assert large.leaking == (large_area - round(bits * MEMORY_BIT / GATE_EQUIVALENT)) * simulation.cycles
    moved = small.fifos.written
    assert (small.fifos, large.fifos) == (MemoryBits(moved, moved), MemoryBits(0, 0, moved, moved))


@pytest.mark.parametrize(("size", "is_sram"), [(64, False), (65, True)])
def test_a_workspace_of_more_than_64_entries_is_sram(size: int, is_sram: bool) -> None:
    """Column sums of one row: an accumulator holds an entry for each column, in two buffers that alternate."""
    program = parse_einsums(f"tensor A[3, {size}] dense\ny[j] = sum(i) A[i, j]\noutput y\n")
    tensors = {"A": np.ones((3, size), np.float32)}
    compiled = ff.compile(program, tensors=tensors, schedule=ff.Schedule().order("y", "i,j"), machine="rtl")
    expected, actual = compiled.estimate(), compiled.run(check=False)
    (region,) = actual.regions
    counts = counted(region.graph, compiled.machine, region.simulation)
    written = 3 * size * (32 + 32)
    assert (counts.workspaces.sram_written >= written) == is_sram and (counts.workspaces.written >= written) != is_sram
    assert counts.leaking_bits == (2 * size * 64 * region.cycles if is_sram else 0)
    assert expected.energy().of_part("workspaces") == actual.energy().of_part("workspaces")
    assert "workspaces" not in expected.energy().expected


def test_the_links_of_ports_are_sram() -> None:
    """A port has room for the elements of 32 lines of 64 bytes."""
    machine = load_machine("rda", {"fifo_depth": 64})
    graph, simulation = matvec(machine)
    areas = AreaCount(graph, machine)
    ports = sum(areas.timed_ports(node) for node in graph.nodes if areas.link_slots(node))
    bits = ports * 32 * 16 * areas.link_form.width
    assert ports > 0 and counted(graph, machine, simulation).leaking_bits == bits * simulation.cycles


FUSED = {"none": ("none",), "layers": ("layer1", "layer2"), "full": ("full",)}


@cache
def gcn(fuse: str, machine: str) -> Compiled:
    return ff.compile(
        "models/gcn.py", data="karate", options={"small": True}, schedule=ff.Schedule.fuse(*FUSED[fuse]), machine=machine
    )


@cache
def gcn_result(fuse: str, machine: str) -> Any:
    return gcn(fuse, machine).run(check=False)


@pytest.mark.parametrize("fuse", ["none", "layers", "full"])
@pytest.mark.parametrize("machine", ["rtl", "rda"])
def test_an_estimate_has_the_counted_parts_of_the_run(fuse: str, machine: str) -> None:
    expected, actual = gcn(fuse, machine).estimate().energy(), gcn_result(fuse, machine).energy()
    known = set(PARTS) - expected.expected
    assert known == set(PARTS) - ({"leakage"} if machine == "rtl" else {"leakage", "dram"})
    for part in known:
        assert expected.of_part(part) == actual.of_part(part)
        assert actual.of_part(part) > 0


MODELS: dict[str, dict[str, Any]] = {
    "sae": {"model": "models/sae.py"},
    "graphsage": {"model": "models/graphsage.py", "data": "karate"},
    "attention": {"model": "models/gpt_bigbird.py", "options": {"part": "attention"}},
}


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("machine", ["rtl", "rda"])
def test_estimates_of_other_models_have_the_counted_parts_of_the_run(name: str, machine: str) -> None:
    """What an estimate does not count exactly it says, and all else is equal."""
    given = dict(MODELS[name])
    options = {"small": True, **given.pop("options", {})}
    compiled = ff.compile(**given, options=options, machine=machine)
    expected, actual = compiled.estimate().energy(), compiled.run(check=False).energy()
    known = 0
    for one, two in zip(expected.regions, actual.regions, strict=True):
        for part in set(PARTS) - one.expected:
            assert one.of_part(part) == two.of_part(part), (one.name, part)
            known += 1
    assert known >= len(expected.regions) * (5 if machine == "rtl" else 4)


def scaled(energies: EventEnergies, part: str, name: str, factor: float) -> EventEnergies:
    """The energies with one of them, given by part and name, multiplied by a factor."""
    text = energies.model_dump()
    section = text[part]["hbm2"] if part == "dram" else text[part]
    section[name]["value"] *= factor
    return EventEnergies.model_validate(text)


def test_doubling_a_constant_doubles_what_it_counts_and_nothing_else() -> None:
    result, energies = gcn_result("layers", "rda"), load_event_energies()
    before = result.energy()
    for part, name in before.constants:
        after = result.energy(scaled(energies, part, name, 2))
        for old, new in zip(before.regions[0].items, after.regions[0].items, strict=True):
            is_its = old.part == part and (old.constant == name or (part, name) == ("control", "activity"))
            assert new.energy == pytest.approx(old.energy * (2 if is_its else 1))
        for other in PARTS:
            assert other == part or after.of_part(other) == before.of_part(other)


def test_doubling_all_constants_of_a_part_doubles_the_part() -> None:
    result, energies = gcn_result("layers", "rda"), load_event_energies()
    for part in PARTS:
        doubled = energies
        for name in (name for of, name in result.energy().constants if of == part and name != "activity"):
            doubled = scaled(doubled, part, name, 2)
        assert result.energy(doubled).of_part(part) == pytest.approx(2 * result.energy().of_part(part))


def test_fused_layers_take_less_dram_energy_than_unfused() -> None:
    unfused, fused = (gcn_result(fuse, "rda").energy().of_part("dram") for fuse in ("none", "layers"))
    assert fused < unfused


def test_energy_changes_no_run(tmp_path: Any) -> None:
    arguments = ["run", "docs/example/spmm.ein", "--tensors", "docs/example/tensors.yaml", "-o"]
    for folder, more in (("a", []), ("b", ["--energy"])):
        assert CliRunner().invoke(main, [*arguments, str(tmp_path / folder), *more]).exit_code == 0
    one, two = ({str(f.relative_to(tmp_path / d)): f for f in (tmp_path / d).rglob("*") if f.is_file()} for d in "ab")
    assert two.keys() - one.keys() == {"energy.json"}
    same = [name for name in one if name not in ("result.json", "about.json")]
    assert same and all(one[name].read_bytes() == two[name].read_bytes() for name in same)


def test_tensors_are_needed_for_nothing() -> None:
    """A result knows its energy without the data that it ran on."""
    assert isinstance(next(iter(gcn_result("layers", "rda").tensors.values())), Tensor)
    assert gcn_result("layers", "rda").energy().total == gcn_result("layers", "rda").energy().total


def test_the_page_of_a_run_has_its_energy(tmp_path: Any) -> None:
    inputs, out = ["docs/example/spmm.ein", "--tensors", "docs/example/tensors.yaml"], str(tmp_path / "run")
    assert CliRunner().invoke(main, ["run", *inputs, "--energy", "-o", out]).exit_code == 0
    stored = read_run(tmp_path / "run")
    text = page(stored)
    assert stored.energy is not None and f"<td>{stored.energy['total'] / 1000:,.2f}</td>" in text
    assert "<h3>Energy</h3>" in text and "Nangate 45 nm" in text

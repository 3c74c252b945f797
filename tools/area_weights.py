"""Makes the tables of areas: of primitives in their classes, of operators, ports and FIFOs in `fuseflow/resources/unit_areas.py`.

    python tools/area_weights.py

Yosys makes gates of every different module of the four small models on `rtl`, and on `rda` in 32-bit floats, where nodes ask a memory.
Writers of lanes are those of the same models with two lanes of the outermost or of the innermost index. Primitives that models
do not have are those of random graphs, up to `--least` modules of each. A primitive has the mean of its modules,
each as often as it is there. Units are synthesized one by one. FIFOs of several depths, widths and latencies are, too, and a law of a few
numbers is fitted to them; how far it is off is printed. What yosys made once is kept below `FUSEFLOW_CACHE_DIR`, as by `fuseflow area`.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import count, product
from pathlib import Path

import click
import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "support"))
sys.path.insert(0, str(Path(__file__).resolve().parent))

from hardware_cases import Tally, circuit_of, hardware_case, has_tiles
from hardware_models import MODELS

import fuseflow as ff
from fuseflow.errors import HardwareError
from fuseflow.hardware.area.parts import FIFO, CircuitParts, Part, shallow_slots
from fuseflow.hardware.area.synthesis import KeptCells, synthesize, version
from fuseflow.hardware.circuit import Circuit
from fuseflow.hardware.circuit_files import bounded_circuit, library_closure
from fuseflow.hardware.primitives import RULES
from fuseflow.hardware.primitives.remote_lookup import REMOTE_RULES
from fuseflow.hardware.rtl_simulators import has_library
from fuseflow.ops import OPERATORS, REDUCERS
from fuseflow.resources.area import branches
from fuseflow.resources.gate_areas import GATE_EQUIVALENT, TECHNOLOGY, gate_area
from fuseflow.samml import nodes as n
from fuseflow.sim import Machine, load_machine

ROOT = Path(__file__).resolve().parents[1]
TABLE, CLASSES = ROOT / "fuseflow" / "resources" / "unit_areas.py", ROOT / "fuseflow" / "samml"
DEPTHS, WIDTHS, LATENCIES = (2, 4, 8, 64, 512, 4096), (10, 18, 34), (1, 4, 16)
SHALLOW = shallow_slots()
HEAD = '''\
"""What units take, in gate equivalents: areas of a NAND of two inputs. Made by `tools/area_weights.py`.

The gates are those of {version}, and their areas those of {technology} (fuseflow/resources/gate_areas.py).
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple


class FifoArea(NamedTuple):
    """The law of the area of a FIFO: what it takes at least, more for each bit of an address, for each bit in flip-flops, for a memory
    beside its bits, and for each bit in the registers of its latency."""

    fixed: float
    address_bit: float
    slot_bit: float
    deep: float
    latency_bit: float


'''

UNIT = '''"""The combinational unit of each operator, and of each reduction (`fold_sum`), in floats of 32 bits."""'''

LANE_WRITERS = (n.WriteLaneLevel.op, n.WriteLaneValues.op)

Weights = dict[str, float]


@click.command(help=__doc__.partition("\n")[0])
@click.option("--least", default=3, show_default=True, type=click.IntRange(1), help="modules of a primitive that no model has")
@click.option(
    "-o", "--output", default=TABLE, show_default=False, type=click.Path(path_type=Path), help="where the table is written"
)
@click.option(
    "--classes", default=CLASSES, type=click.Path(path_type=Path), help="where the classes are whose areas are written anew"
)
def main(least: int, output: Path, classes: Path) -> None:
    circuits = {memory: list(model_circuits(memory)) for memory in (False, True)}
    any_parts = CircuitParts.of(circuits[False][0])
    areas = controls(circuits[False], least, [kind.op for kind in RULES], False)
    at_memory = controls(circuits[True], least, [kind.op for kind in REMOTE_RULES if kind is not n.Root], True)
    for file in classes.glob("*.py"):
        file.write_text(with_areas(file.read_text(encoding="utf-8"), areas, at_memory), encoding="utf-8")
    head = HEAD.format(version=version().split(" (")[0], technology=TECHNOLOGY)
    output.write_text(head + written(units(any_parts), ports(circuits[True]), fifos(any_parts)), encoding="utf-8")


def with_areas(text: str, areas: Weights, at_memory: Weights) -> str:
    """The text of classes with other areas."""

    def row(match: re.Match[str]) -> str:
        area = areas.get("accumulate" if match[2] == "select" else match[2])
        if area is None:
            return match[0]
        beside = f", {at_memory[match[2]]:g}" if match[2] in at_memory else ""
        return f"{match[1]}Area({area:g}{beside})"

    return re.sub(
        r'(    op: ClassVar\[str\] = "(\w+)"\n(?:    \w+: ClassVar.*\n)*?    area: ClassVar\[Area\] = )Area\([^)]*\)', row, text
    )


def model_machine(memory: bool) -> Machine:
    return load_machine("rda", {"arithmetic": "f32"}) if memory else load_machine("rtl")


def model_circuits(memory: bool) -> Iterator[Circuit]:
    machine = model_machine(memory)
    for name, model in MODELS.items():
        click.echo(f"{name} on {machine.name}", err=True)
        for region in model.compile(machine).regions:
            yield bounded_circuit(region.graph, machine)


def lane_circuits(memory: bool) -> Iterator[Circuit]:
    """Those of models whose dense results are written in two lanes."""
    machine = model_machine(memory)
    for name, model in MODELS.items():
        orders = {region.name: region.fused.order for region in model.compile(machine).regions}
        for place in (0, -1):
            click.echo(f"{name} on {machine.name}, in lanes", err=True)
            lanes = {f"{region}.{order[place]}": 2 for region, order in orders.items()}
            schedule = ff.Schedule().par(**lanes).lower(writers="lanes")
            for region in model.compile(machine, schedule).regions:
                yield bounded_circuit(region.graph, machine)


def linked_circuits() -> Iterator[Circuit]:
    """Those of models with a link on each stream."""
    machine = model_machine(False)
    for model in MODELS.values():
        for region in model.compile(machine).regions:
            yield bounded_circuit(linked(region.graph), machine)


def linked(graph: n.Graph) -> n.Graph:
    """The graph with a link between each writer and its readers."""
    nodes, behind = list[n.Primitive](), dict[n.Port, n.Port]()
    for node in graph.nodes:
        nodes.append(replace(node, inputs=tuple(behind[port] for port in node.inputs)))
        for k, port in enumerate(node.ports):
            link = n.Link(f"{node.name}.link{k}", (port,))
            behind[port] = n.Port(link.name)
            nodes.append(link)
    return replace(graph, nodes=tuple(nodes))


def random_circuits(memory: bool) -> Iterator[Circuit]:
    for seed in count():
        case = hardware_case(seed, "fixed" if memory else "ideal")
        circuit = None if has_tiles(case) else circuit_of(case, Tally())
        if circuit is not None and circuit.machine.arithmetic == "f32":
            edges = {channel.edge: 8 for channel in circuit.channels if channel.edge is not None}
            yield circuit.bounded(edges, {unit.node.name: 16 for unit in circuit.units})


def primitive_parts(circuit: Circuit, parts: CircuitParts, asking: bool) -> Iterator[tuple[Part, int]]:
    """The module of each node with its branches, of those that ask a memory, or of the others."""
    for unit in circuit.units:
        if bool(unit.module.ports) == asking:
            yield from ((part, branches(unit.node)) for part in parts.by_node[unit.node.name] if part.kind == "primitive")


def controls(circuits: Iterable[Circuit], least: int, names: Iterable[str], asking: bool) -> Weights:
    """The mean area of the modules of each primitive, for each branch of a fork, a merge or a join. Memories, and units in them, are left
    out."""
    areas: dict[str, list[float]] = {}

    def add(circuit: Circuit, only: set[str] | None = None) -> None:
        parts = CircuitParts.of(circuit)
        own = [(part, number) for part, number in primitive_parts(circuit, parts, asking) if only is None or part.name in only]
        made = synthesized(parts, (part for part, _ in own))
        for part, number in own:
            areas.setdefault(part.name, []).append(made[part] / number)

    for circuit in circuits:
        add(circuit)
    for circuit in lane_circuits(asking):
        add(circuit, set(LANE_WRITERS))
    for circuit in () if asking else linked_circuits():
        add(circuit, {n.Link.op})
    rare = {name for name in names if name not in areas} - {"select"}
    for circuit in random_circuits(asking):
        if not rare:
            break
        if rare & {unit.node.op for unit in circuit.units}:
            add(circuit, rare)
            rare = {name for name in rare if len(areas.get(name, ())) < least}
    return {name: round(float(np.mean(areas[name]))) for name in sorted(areas)}


def synthesized(parts: CircuitParts, wanted: Iterable[Part]) -> dict[Part, float]:
    """The area of each part."""
    kept = KeptCells.of(version(), None)
    wanted = list(dict.fromkeys(wanted))
    known = {part: cells for part in wanted if (cells := kept.read(part)) is not None}
    made = synthesize(parts, [part for part in wanted if part not in known])
    for part, cells in made.items():
        kept.write(part, cells)
    return {part: gate_area(cells.counts) / GATE_EQUIVALENT for part, cells in (known | made).items()}


def ports(circuits: Iterable[Circuit]) -> float:
    """The mean area of a port."""
    total, number = 0.0, 0
    for circuit in circuits:
        parts = CircuitParts.of(circuit)
        counts = Counter({part: amount for part, amount in parts.total.items() if part.kind == "port"})
        areas = synthesized(parts, counts)
        total += sum(areas[part] * amount for part, amount in counts.items())
        number += counts.total()
    return round(total / number)


def units(parts: CircuitParts) -> Weights:
    """The area of the unit of each operator and of each reduction that has one."""
    modules = {name: f"ff_f32_{name}" for name in sorted(OPERATORS)} | {
        f"fold_{name}": f"ff_f32_fold_{name}" for name in sorted(REDUCERS)
    }
    areas: Weights = {}
    for name, module in modules.items():
        if not has_library(f"{module}.sv"):
            click.echo(f"{name} has no unit", err=True)
            continue
        part = Part("unit", name, module)
        library_closure([module])
        try:
            areas[name] = round(synthesized(parts, [part])[part])
        except HardwareError as error:
            click.echo(f"{name}: {error}", err=True)
    return areas


def fifos(parts: CircuitParts) -> Weights:
    """Fit areas of FIFOs. Those of up to 8 slots are in flip-flops, deeper ones in a memory that is not counted here."""
    cases = list(product(DEPTHS, WIDTHS, LATENCIES))
    made = synthesized(parts, [fifo(*case) for case in cases])
    areas = {case: made[fifo(*case)] for case in cases}
    terms = {"fixed": 0.0, "address_bit": 0.0, "slot_bit": 0.0, "deep": 0.0, "latency_bit": 0.0}
    rows = np.array([fifo_terms(*case) for case in cases])
    expected = np.array([areas[case] for case in cases])
    weights = 1 / expected  # what is wrong by a share counts alike, of small and of large ones
    solution, *_ = np.linalg.lstsq(rows * weights[:, None], expected * weights, rcond=None)
    off = (rows @ solution) / expected - 1
    click.echo(f"FIFOs: the law is off by {np.abs(off).mean():.1%} on average, {np.abs(off).max():.1%} at most", err=True)
    return {name: round(float(value), 2) for name, value in zip(terms, solution, strict=True)}


def fifo(depth: int, width: int, latency: int) -> Part:
    return Part("fifo", f"{depth} x {width}, latency {latency}", FIFO, (("W", width), ("D", depth), ("L", latency)))


def fifo_terms(depth: int, width: int, latency: int) -> list[float]:
    """One, the bits of an address, the bits in flip-flops, whether there is a memory, and the bits in the row of registers."""
    shallow = depth <= SHALLOW
    return [1.0, max(1, (depth - 1).bit_length()), depth * width if shallow else 0, not shallow, (latency - 1) * (width + 1)]


def written(operators: Weights, port: float, fifo: Weights) -> str:
    body = "".join(f'        "{key}": {value:g},\n' for key, value in operators.items())
    law = ", ".join(f"{key}={value:g}" for key, value in fifo.items())
    return (
        f"OPERATOR: Mapping[str, int] = MappingProxyType(\n    {{\n{body}    }}\n)\n{UNIT}\n"
        f'PORT = {port:g}\n"""The area of a port at the memory, as large as `outstanding: 32` makes it."""\n'
        f'SHALLOW_SLOTS = {SHALLOW}\n"""The most slots of a FIFO that are flip-flops. More lie in a memory."""\n'
        f"FIFO = FifoArea({law})\n"
    )


if __name__ == "__main__":
    main()

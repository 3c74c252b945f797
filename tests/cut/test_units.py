"""Where programs may be cut."""

from __future__ import annotations

from pathlib import Path

from fuseflow.compiler import compile_source
from fuseflow.cut.costs import ProgramRanges
from fuseflow.cut.units import UnitSequence, operator_units, partition_at, product_units
from fuseflow.einsum.parse import parse
from fuseflow.frontend.model_spec import ModelSpec
from fuseflow.frontend.sources import load
from fuseflow.lower.partition import PartitionedProgram, partition_program
from fuseflow.schedule import Schedule
from fuseflow.sim import load_machine

PAPER = Path(__file__).parents[2] / "models" / "paper"
NONE = Schedule.fuse("none")


def partitioned(name: str, **options: str) -> PartitionedProgram:
    return partition_program(load(ModelSpec(PAPER / f"{name}.py", options={"small": "true", **options})).program, NONE)


def names(units: UnitSequence) -> list[str]:
    return [units.name((n, n + 1)) for n in range(len(units))]


def test_a_softmax_is_one_operator() -> None:
    units = operator_units(partitioned("gcn"))
    assert names(units) == ["T0", "T1", "T2", "H", "T4", "T5", "T6", "Y"]
    assert units.einsums((7, 8)) == ("m", "S", "E", "Y")


def test_a_decoder_has_nine_products_and_its_reshapes_vanish() -> None:
    program = partitioned("gpt", decoders="1")
    units = product_units(program, operator_units(program))
    assert len(units) == 9
    assert units.einsums((1, 2)) == ("d0.p0", "d0.p", "d0.Q", "d0.K", "d0.V")
    assert [unit.parts for unit in units.units] == [1, 2, 3, 1, 1, 3, 1, 3, 3]


def test_a_partition_is_a_schedule_that_can_be_read_again() -> None:
    source = load(ModelSpec(PAPER / "gcn.py", options={"small": "true"}))
    units = operator_units(partition_program(source.program, NONE))
    schedule = units.scheduled(NONE, partition_at((2, 4, 7), len(units)))
    assert schedule == Schedule.from_yaml(str(schedule))
    assert [name for name, _ in schedule.regions] == ["T0-T1", "T2-H", "T4-T6"]
    compiled = compile_source(source, schedule, load_machine("ideal"))
    assert [r.einsums for r in compiled.regions] == [("T0", "T1"), ("T2", "H"), ("T4", "T5", "T6"), ("m", "S", "E", "Y")]


def test_every_range_is_a_region_that_can_run() -> None:
    source = load(ModelSpec(PAPER / "graphsage.py", options={"small": "true"}))
    units = operator_units(partition_program(source.program, NONE))
    for start in range(len(units)):
        schedule = units.scheduled(NONE, [(start, len(units))])
        assert partition_program(source.program, schedule).regions[-1].einsums == units.einsums((start, len(units)))


def test_a_reshape_that_stays_is_alone() -> None:
    program = parse("""
tensor X[4, 6] (dense, compressed)
tensor V[4] dense
A[i, j] = X[i, j] * V[i]
B[i, a, b] = A[i, a*3 + b]
C[i, a, b] = relu(B[i, a, b])
output A, C
""")
    program_parts = partition_program(program, NONE)
    units = operator_units(program_parts)
    stuck = [unit.first for unit in units.units if unit.alone]
    assert stuck == ["B"]
    assert not units.legal((0, len(units)))
    assert units.legal((0, 1))


def test_units_are_taken_apart_into_their_operators() -> None:
    operators = operator_units(partitioned("gcn"))
    ordered, ranges = operators.in_order_of([(0, 1), (3,), (2, 4, 5), (6, 7)])
    joined = ordered.joined(ranges)
    assert joined.borders() == (0, 2, 3, 6, 8)
    assert joined.apart(operators) == ordered


def test_ranges_of_what_is_taken_apart_end_at_its_borders() -> None:
    program = partitioned("gcn")
    operators = operator_units(program)
    joined = operators.joined(partition_at((2, 3, 6), len(operators)))
    apart = ProgramRanges(program, joined).apart()
    assert apart.units == operators
    parts = {(start, end) for start in range(8) for end in range(start + 2, 9) if apart.is_region((start, end))}
    whole = {(0, 2), (0, 3), (0, 6), (0, 8), (2, 6), (2, 8), (3, 6), (3, 8), (6, 8)}
    assert parts == whole | {(3, 5), (4, 6)}
    assert all(apart.is_region((n, n + 1)) for n in range(8))

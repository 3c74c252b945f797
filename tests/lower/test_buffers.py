"""Which tensors can have reuse buffers, what the graphs of a program say of them, and that a run counts their hits."""

from __future__ import annotations

import numpy as np
import pytest
import reuse_buffers
from programs import CHAIN

import fuseflow as ff
from fuseflow.einsum.parse import parse
from fuseflow.errors import FuseFlowError, HardwareError, MachineError, SamplingError, ScheduleError
from fuseflow.hardware.circuit import build_circuit

VIEW = """
tensor X[5, 6]
tensor W[96]
Z[h, d] = W[h*16 + d]
Q[i, h] = X[i, h] * 2
Y[i, d] = sum(h) Q[i, h] * Z[h, d]
output Y
"""


def compiled(text: str, *buffers: str, schedule: ff.Schedule | None = None, machine: str = "rda") -> ff.compiler.Compiled:
    program, rng = parse(text), np.random.default_rng(0)
    tensors = {t.name: (rng.random(t.shape) * (rng.random(t.shape) < 0.6)).astype(np.float32) for t in program.inputs}
    base = schedule or ff.Schedule.fuse("none")
    return ff.compile(program, tensors=tensors, schedule=ff.Schedule.from_flags(base=base, buffers=buffers), machine=machine)


def sizes(program: ff.compiler.Compiled) -> list[dict[str, int]]:
    """The tensors of each region that have buffers, with their bytes."""
    return [{t.name: t.buffer for t in region.graph.tensors if t.buffer} for region in program.regions]


def test_each_region_has_those_that_it_reads() -> None:
    """A result of an earlier region is an input of a later one; the region that writes it has none."""
    assert sizes(compiled(CHAIN, "weight=1KB", "V=64", "T=128")) == [{"weight": 1024}, {"V": 64, "T": 128}]
    assert sizes(compiled(CHAIN, "weight=1KB", schedule=ff.Schedule.fuse("full"))) == [{"weight": 1024}]


def test_lines_that_are_in_a_buffer_are_not_moved_again() -> None:
    plain, buffered = (compiled(CHAIN, *names).run() for names in ((), ("weight=4KB",)))
    assert buffered.check is not None and buffered.check.passed
    assert buffered.cycles < plain.cycles
    moved = {}
    for name, run in (("plain", plain), ("buffered", buffered)):
        memory = run.regions[0].simulation.memory
        assert memory is not None
        (moved[name],) = (of for port, of in memory.ports if port.tensor == "weight")
    assert moved["plain"].requests == moved["buffered"].requests
    assert moved["buffered"].moved_bytes == 20 * 40 * 4 < moved["plain"].moved_bytes
    assert moved["buffered"].hits == moved["buffered"].requests - 50
    ports = [p for p in buffered.to_dict()["regions"][0]["statistics"]["memory"]["ports"] if "buffer" in p]
    assert [(p["tensor"], p["buffer"], p["hits"]) for p in ports] == [("weight", 50, moved["buffered"].hits)]
    assert "hits" not in str(plain.to_dict()["regions"][0]["statistics"]["memory"]["ports"])
    assert buffered.regions[0].resources.buffer == 50 * 64 and plain.regions[0].resources.buffer == 0


@pytest.mark.parametrize(
    ("buffer", "message", "hint"),
    [
        ("Weight=1KB", "`Weight` cannot have a reuse buffer: the program has no such tensor", "did you mean `weight`?"),
        ("Y=1KB", "`Y` cannot have a reuse buffer: it is an output, and no region reads it", "only what is read"),
        ("U=1KB", "`U` cannot have a reuse buffer: nothing reads it", "leave it out"),
    ],
)
def test_what_cannot_have_a_buffer(buffer: str, message: str, hint: str) -> None:
    with pytest.raises(ScheduleError) as caught:
        compiled(CHAIN, buffer)
    assert caught.value.message.startswith(message) and hint in caught.value.hint


def test_what_a_region_passes_on_inside_has_no_buffer() -> None:
    with pytest.raises(ScheduleError, match="`T` cannot have a reuse buffer: no region reads it from memory") as caught:
        compiled(CHAIN, "T=1KB", schedule=ff.Schedule.fuse("full"))
    assert "--fuse" in caught.value.hint


def test_a_resident_tensor_has_no_buffer() -> None:
    with pytest.raises(ScheduleError, match="`V` cannot have a reuse buffer: it is resident"):
        compiled(CHAIN, "V=1KB", schedule=ff.Schedule.lower(resident=["V"]))


def test_the_place_in_a_schedule_file() -> None:
    for line, message in (("wieght: 1KB", "`wieght` cannot have"), ("V: 1XB", "there is no unit `XB`"), ("V: 0", "1 or more")):
        with pytest.raises(ScheduleError, match=r"s.yaml:4:3: .*" + message):
            compiled(CHAIN, schedule=ff.Schedule.from_yaml(f"fuse: full\nbuffer:\n  weight: 64\n  {line}\n", "s.yaml"))


def test_a_buffer_without_a_line_is_refused() -> None:
    with pytest.raises(MachineError, match="the reuse buffer of `weight` has 63 bytes, and a line of the memory has 64"):
        compiled(CHAIN, "weight=63").run()


def test_buffers_without_an_effect_are_named() -> None:
    (notice,) = compiled(CHAIN, "weight=1KB", machine="ideal").notices
    assert notice == "the memory of ideal answers at once, so the reuse buffers of `weight` have no effect"
    in_order = compiled(CHAIN, "X=1KB")
    assert in_order.notices == ("the reuse buffer of `X` has no effect: every line of it is asked for once, in order",)
    assert in_order.run().cycles == compiled(CHAIN).run().cycles
    assert not compiled(CHAIN, "weight=1KB").notices


def test_a_copy_and_a_view_have_the_buffer_of_what_they_are_of() -> None:
    order = ff.Schedule.fuse("none").order("T", "j,i,k").format("weight", "csr")
    assert {"weight.copy_1_0": 256} in sizes(compiled(CHAIN, "weight=256", schedule=order))
    viewed = compiled(VIEW, "W=256")
    assert {name for of in sizes(viewed) for name in of} <= {
        view.name for region in viewed.regions for view in region.views_before
    } | {"W"}
    assert any(sizes(viewed))
    result = viewed.run()
    assert result.check is not None and result.check.passed


def test_all_parts_of_a_divided_operand_have_its_buffer() -> None:
    schedule = ff.Schedule.from_yaml("plan: {weight: [{form: 2x2}, {form: elements}]}\nbuffer: {weight: 512}\n")
    assert sizes(compiled(CHAIN, schedule=schedule))[0].keys() == {"weight1", "weight2"}


def test_what_has_no_buffers_says_so() -> None:
    program = compiled(CHAIN, "weight=1KB")
    with pytest.raises(HardwareError, match="reads `weight` through a reuse buffer, and the ports of a circuit have none"):
        build_circuit(program.regions[0].graph, ff.load_machine("rda", {"memory": "fixed"}))
    with pytest.raises(SamplingError, match="what is in a buffer at a row depends on all rows before it"):
        program.run(sample=ff.Sample(fraction=0.5))


def test_lanes_have_a_buffer_each() -> None:
    program = compiled(CHAIN, "weight=1KB", schedule=ff.Schedule.fuse("none").par(i=3))
    assert program.run().regions[0].resources.buffer == 3 * 1024


def test_random_programs_with_buffers_mean_the_same() -> None:
    """On both simulators: values, cycles and statistics of the memory."""
    hits = 0
    for seed in range(12):
        text = CHAIN if seed % 2 else VIEW
        plain = compiled(text, schedule=ff.Schedule.fuse("full" if seed % 3 else "none"))
        names = {t for region in plain.regions for t in region.graph.inputs} & {t.name for t in plain.program.inputs}
        buffers = [f"{name}={size}" for name, size in reuse_buffers.drawn(sorted(names), seed)]
        try:
            program = compiled(text, *buffers, schedule=plain.schedule)
        except FuseFlowError as error:
            raise AssertionError(seed) from error
        reference, fast = (program.run(engine=engine) for engine in ("reference", "fast"))
        assert reference.check is not None and reference.check.passed
        assert reference.cycles == fast.cycles
        for a, b in zip(reference.regions, fast.regions, strict=True):
            assert a.simulation.memory is not None and b.simulation.memory is not None
            assert a.simulation.memory.ports == b.simulation.memory.ports
            hits += sum(of.hits for _, of in a.simulation.memory.ports)
    assert hits > 100


@pytest.mark.parametrize("size", ["9999999999GB", "9" * 400, "-64", "half"])
def test_bytes_that_no_file_holds_are_refused(size: str) -> None:
    """The largest number of bytes is that of 64 bits. More was an overflow in the written forms of a graph."""
    with pytest.raises(ScheduleError, match="buffer of `W`"):
        ff.Schedule().buffer("W", size)

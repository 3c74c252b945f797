"""Which tensors a schedule can place in the scratchpad, how they come there, and what a run makes of it."""

from __future__ import annotations

import numpy as np
import pytest

import fuseflow as ff
from fuseflow.einsum.parse import parse
from fuseflow.errors import SamplingError, ScheduleError
from fuseflow.hardware.circuit import build_circuit
from fuseflow.run.compiled import Compiled
from fuseflow.sim import load_machine

CHAIN = """
tensor A[40, 30] csr
tensor X[30, 16]
tensor W[16, 8]
T[i, j] = sum(k) A[i, k] * X[k, j]
U[i, l] = sum(j) T[i, j] * W[j, l]
V[i, l] = U[i, l] + U[i, l]
Z[i, j] = T[i, j] * T[i, j]
output V
output Z
"""


def compiled(*places: str, base: str = "fuse: [none]\n", machine: str = "rda", scratchpad: str = "64KB") -> Compiled:
    program, rng = parse(CHAIN), np.random.default_rng(0)
    tensors = {t.name: (rng.random(t.shape) * (rng.random(t.shape) < 0.4)).astype(np.float32) for t in program.inputs}
    schedule = ff.Schedule.from_flags(base=ff.Schedule.from_yaml(base, "s.yaml"), place=[f"{name}=scratchpad" for name in places])
    return ff.compile(program, tensors=tensors, schedule=schedule, machine=load_machine(machine, {"scratchpad": scratchpad}))


def transfers(program: Compiled) -> list[dict[str, str]]:
    """The tensors of each region in the scratchpad, and how they come there or leave it."""
    return [{t.name: t.scratchpad for t in region.graph.tensors if t.scratchpad} for region in program.regions]


def test_inputs_are_loaded_and_results_stay_for_the_next_region() -> None:
    program = compiled("X", "W", "U")
    assert [region.name for region in program.regions] == ["T", "U", "V", "Z"]
    assert transfers(program) == [{"X": "moved"}, {"W": "moved", "U": "kept"}, {"U": "kept"}, {}]


def test_a_result_that_a_later_region_finds_in_the_scratchpad_no_more_is_stored_and_loaded() -> None:
    assert transfers(compiled("T")) == [{"T": "moved"}, {"T": "kept"}, {}, {"T": "moved"}]


def test_an_output_of_the_program_is_stored() -> None:
    assert transfers(compiled("V", "Z")) == [{}, {}, {"V": "moved"}, {"Z": "moved"}]


def test_values_do_not_depend_on_places_and_bytes_do() -> None:
    plain, placed = compiled().run(), compiled("A", "X", "W", "T", "U", "V", "Z").run()
    assert placed.check is not None and placed.check.passed
    for name, values in plain.outputs.items():
        assert np.array_equal(values, placed.outputs[name])
    moved = [region.simulation.memory for region in placed.regions]
    lines = [[(m.transferred_bytes("read") // 64, m.transferred_bytes("write") // 64) for m in moved if m is not None]]
    a = placed.regions[0].simulation.memory
    assert a is not None
    sizes = {array: -(-place.length // 64) for array, place in a.places.items() if array[0] == "A"}
    # X has 30 lines, T and Z 40, W 8, and V 20; T is stored for Z, which loads it again
    assert lines == [[(sum(sizes.values()) + 30, 40), (8, 0), (0, 20), (40, 40)]]
    assert all(m is not None and m.moved_bytes() == m.transferred_bytes("read") + m.transferred_bytes("write") for m in moved)


def test_the_estimate_knows_the_bytes_and_the_cycles() -> None:
    program = compiled("A", "X", "W", "T", "U", "V", "Z")
    run, estimate = program.run(), program.estimate()
    assert 0.7 * run.cycles < estimate.cycles < 1.4 * run.cycles
    for simulated, expected in zip(run.regions, estimate.regions, strict=True):
        memory = simulated.simulation.memory
        assert memory is not None
        assert abs(memory.transferred_bytes("read") - expected.chip.loaded) < 4 * 64
        assert abs(memory.transferred_bytes("write") - expected.chip.stored) < 64


def test_words_of_the_scratchpad_take_the_energy_of_sram() -> None:
    program = compiled("X")
    counts = program.run()
    memory = counts.regions[0].simulation.memory
    assert memory is not None
    from fuseflow.run.simulated_events import dram_events

    events = dram_events(program.machine, counts.regions[0].simulation)
    assert events.buffered == 8 * 30 * 64 and events.hits == 8 * 64 * memory.words("read")


@pytest.mark.parametrize(
    ("name", "base", "message"),
    [
        ("Q", "fuse: [none]\n", "`Q` cannot be placed: the program has no such tensor"),
        ("T", "fuse: [full]\n", "`T` cannot be placed: it is passed on inside of a region"),
        ("W", "fuse: [none]\nresident: [W]\n", "`W` cannot be placed: it is resident"),
        ("W", "fuse: [none]\nbuffer: {W: 1KB}\n", "`W` cannot be placed: it has a reuse buffer"),
        ("W", "fuse: [none]\npreload: {W: 2}\n", "`W` cannot be placed: it is preloaded"),
    ],
)
def test_what_cannot_be_placed(name: str, base: str, message: str) -> None:
    with pytest.raises(ScheduleError, match=message):
        compiled(name, base=base)


def test_there_is_one_memory_to_place_tensors_in() -> None:
    with pytest.raises(ScheduleError, match="place of `W`: there is no memory `cache`"):
        ff.Schedule.from_yaml("place: {W: cache}")
    assert ff.Schedule().memory("W") == ff.Schedule.from_yaml("place: {W: scratchpad}")


def test_samples_refuse_places_and_circuits_do_not() -> None:
    program = compiled("X")
    with pytest.raises(SamplingError, match="a run with a scratchpad cannot be sampled"):
        program.run(sample=ff.Sample(fraction=1))
    assert build_circuit(program.regions[0].graph, program.machine).machine.scratchpad is not None


def test_a_place_without_an_effect_is_named() -> None:
    notices = compiled("X", machine="ideal").notices
    assert "the memory of ideal answers at once, so it has no effect that `X` is placed in the scratchpad" in notices

"""Resident weights of a model, from the command to the tables: no byte of them is read in a run, and they are loaded once."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import sources
from click.testing import CliRunner
from memories import without_refresh

import fuseflow as ff
from fuseflow.cli.main import main
from fuseflow.einsum.parse import parse
from fuseflow.errors import MachineError
from fuseflow.estimate.program import Estimator
from fuseflow.run.artifact_reader import load_saved
from fuseflow.sampling.sample_request import parse_sample

WEIGHTS = ("decoder.weight", "encoder.weight")
WORDS = [word for name in WEIGHTS for word in ("--resident", name)]
SMALL = ["models/sae.py", "--option", "small=true", "--data", "images:side=6,count=3", "--machine", "rda", "--fuse", "full"]


def sae(*resident: str, fuse: str = "full", machine: str = "rda") -> ff.compiler.Compiled:
    schedule = ff.Schedule.fuse(fuse).lower(resident=resident)
    return sources.compiled("sae.py", schedule, machine, {"small": True}, "images:side=6,count=3")


def fuseflow(*words: object) -> str:
    outcome = CliRunner().invoke(main, [str(word) for word in words])
    assert outcome.exit_code == 0, outcome.output
    return outcome.output


@pytest.mark.parametrize("engine", ["reference", "fast"])
@pytest.mark.parametrize("fuse", ["none", "layerwise", "full"])
def test_a_layer_with_resident_weights(fuse: str, engine: ff.sim.Engine) -> None:
    """The outputs are right, no byte of the weights is read, all others are, and no run takes longer."""
    plain, program = sae(fuse=fuse).run(engine=engine), sae(*WEIGHTS, fuse=fuse)
    result = program.run(engine=engine)
    assert result.check is not None and result.check.passed
    read, plainly = (run.stats["bytes"]["by_tensor"] for run in (result, plain))
    assert set(WEIGHTS) <= set(plainly) and not set(WEIGHTS) & set(read)
    assert all(read[name] == plainly[name] for name in read)
    assert result.cycles < plain.cycles and result.flops == plain.flops
    assert result.config.bytes == sum(program.inputs()[name].nbytes for name in WEIGHTS)
    assert plain.config.bytes == plain.config.cycles == 0
    for region in result.regions:
        assert region.simulation.memory is not None
        assert not {port.tensor for port, _ in region.simulation.memory.ports} & set(WEIGHTS)
        assert region.config.cycles == -(-region.config.bytes // 256)  # eight channels


@pytest.mark.parametrize("fuse", ["none", "full"])
def test_the_estimate_counts_as_the_run(fuse: str) -> None:
    program = sae(*WEIGHTS, fuse=fuse)
    estimate, result = program.estimate(), program.run()
    assert estimate.exact and estimate.stats == result.stats and estimate.config == result.config
    assert [region.config for region in estimate.regions] == [region.config for region in result.regions]
    assert estimate.firings == sum(region.simulation.firings for region in result.regions)
    plain = sae(fuse=fuse)
    for before, after in zip(plain.estimate().regions, estimate.regions, strict=True):
        assert (after.bound.memory < before.bound.memory) == (after.config.bytes > 0)
    for before, after in zip(plain.regions, program.regions, strict=True):
        assert (after.estimate.bytes < before.estimate.bytes) == any(t.resident for t in after.graph.tensors)


def test_elements_wait_for_no_answers_where_all_is_resident() -> None:
    (plain,), (resident,) = (sae(*names).estimate().regions for names in ((), sae().inputs()))
    assert resident.bound.control < plain.bound.control and resident.bytes("read") == 0


def test_more_than_fits_is_refused_with_both_numbers() -> None:
    """By a run, by an estimate and by a sampled run; the configuration of each region has all of the room."""
    program = sae(*WEIGHTS)
    size = sum(program.inputs()[name].nbytes for name in WEIGHTS)
    largest = max(program.inputs()[name].nbytes for name in WEIGHTS)
    machine = ff.load_machine("rda", {"config_bytes": size - 1})
    refused = ff.compiler.compile_source(program.source, program.schedule, machine)
    sample = parse_sample("2%")
    for use in (refused.run, refused.estimate, lambda: refused.run(sample=sample)):
        with pytest.raises(MachineError, match=f"{size:,} bytes .*holds {size - 1:,}"):
            use()
    apart = ff.compiler.compile_source(program.source, sae(*WEIGHTS, fuse="layerwise").schedule, machine)
    assert largest < size - 1 and apart.run().config.bytes == size


@pytest.mark.parametrize(
    ("body", "rows", "resident"),
    [("A[i, k] * W[k, j]", 1600, ["A", "W"]), ("A[i, k] * A[j, k]", 300, ["A"])],
)
def test_a_sampled_run_reads_no_resident_byte(body: str, rows: int, resident: list[str]) -> None:
    """A part of a resident tensor is resident: rows of A are sampled, or, where too many of them would be needed, run as they are."""
    program, rng = (
        parse(f"tensor A[{rows}, 60] csr\ntensor W[60, 20] csr\nT[i, j] = sum(k) {body}\noutput T"),
        np.random.default_rng(0),
    )
    tensors = {t.name: (rng.random(t.shape) * (rng.random(t.shape) < 0.3)).astype(np.float32) for t in program.inputs}
    machine = without_refresh(config_bytes=1 << 20)
    compiled = ff.compile(program, tensors=tensors, schedule=ff.Schedule.lower(resident=resident), machine=machine)
    sampled, exact = compiled.run(sample=ff.Sample(fraction=0.2, shortest=500)), compiled.run()
    assert (sampled.regions[0].sample is not None) == ("W" in resident)
    assert sampled.rows_check is None or sampled.rows_check.passed
    assert sampled.config == exact.config and sampled.config.bytes == sum(compiled.inputs()[name].nbytes for name in resident)
    assert sampled.to_dict()["config"] == sampled.to_dict()["regions"][0]["config"] == exact.to_dict()["config"]
    assert sampled.bytes("read") == exact.stats["bytes"]["read"]
    assert sampled.cycles.estimate == pytest.approx(exact.cycles, rel=0.1)


def test_commands_print_and_write_what_is_loaded(tmp_path: Path) -> None:
    size = sum(sae().inputs()[name].nbytes for name in WEIGHTS)
    cycles = -(-size // 256)
    for command in ("run", "estimate"):
        plain, printed = fuseflow(command, *SMALL), fuseflow(command, *SMALL, *WORDS, "--json", tmp_path / f"{command}.json")
        assert "config" not in plain
        (total,) = (line for line in printed.splitlines() if line.startswith("total"))
        assert total.split()[-2:] == [f"{size:,}", f"{cycles:,}"]
        values = json.loads((tmp_path / f"{command}.json").read_text())
        assert values["config"] == values["regions"][0]["config"] == {"bytes": size, "cycles": cycles}
        assert not set(WEIGHTS) & set(values["bytes"]["by_tensor"])
    against = fuseflow("estimate", *SMALL, *WORDS, "--against", tmp_path / "run.json")
    assert [line.split()[-5:] for line in against.splitlines() if "config bytes" in line] == [
        ["config", "bytes", f"{size:,}", f"{size:,}", "0"]
    ] * 2
    assert "resident: [decoder.weight, encoder.weight]" in fuseflow("run", *SMALL, *WORDS, "--print-schedule")


def test_why_regions_are_apart_is_explained_without_residents() -> None:
    plain, resident = (fuseflow("explain", "fusion", "--wide", *SMALL[:5], "--fuse", "none", *words) for words in ([], WORDS))
    assert "they can be fused" in resident and "resident" not in resident
    assert resident.partition("stored")[0] == plain.partition("stored")[0]
    assert fuseflow("explain", "cycles", *SMALL, *WORDS, "--top", "3")


def test_what_was_saved_is_estimated_as_the_program(tmp_path: Path) -> None:
    """The graphs, the schedule and the page of a directory say what is resident."""
    program = sae(*WEIGHTS)
    program.save(tmp_path / "run", program.run())
    saved = load_saved(tmp_path / "run")
    assert [region.graph for region in saved.regions] == [region.graph for region in program.regions]
    again = Estimator().estimate(saved.regions, saved.source.program, program.source.tensors, program.machine)
    assert again.config == program.estimate().config
    fuseflow("report", tmp_path / "run")
    (page,) = (tmp_path / "run").glob("*.html")
    assert f"loads {again.config.bytes:,} resident bytes" in page.read_text()

"""`auto` on an array: what is chosen fits, and what is simulated runs with its links and is loaded."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from budget_spaces import random_source
from command_line import fuseflow

from fuseflow.array.capacity import tile_use
from fuseflow.array.settings import ArraySettings, read_array
from fuseflow.autoscheduler.array_candidates import candidate_placing
from fuseflow.autoscheduler.autoscheduler import choose_schedule
from fuseflow.errors import ArrayError
from fuseflow.estimate.program import Estimator
from fuseflow.schedule import Schedule
from fuseflow.sim import load_machine

ROOT = Path(__file__).parents[2]
SPMM = [str(ROOT / "docs/example/spmm.ein"), "--tensors", str(ROOT / "docs/example/tensors.yaml")]
RDA = load_machine("rda")
TEXT = """
array:
  grid: {{columns: {columns}, rows: {rows}}}
  tiles: {{pattern: PM, kinds: {{P: PE, M: MEM}}}}
  ports: {{side: north}}
  footprint: onyx
"""


def small(ports: int) -> ArraySettings:
    return read_array(TEXT.format(columns=ports, rows=8), "small.yaml")


def test_regions_are_chosen_that_fit() -> None:
    source, array = random_source(2, 16), small(9)
    estimator = Estimator(assume_unknown=True, array=array)
    choice = choose_schedule(source, Schedule.fuse("auto"), RDA, top=1, estimator=estimator)
    assert all(tile_use(region.graph, array, RDA).fits for region in choice.compiled.regions)
    refused = {trial.name: trial.refused for trial in choice.partitions if trial.refused}
    assert refused["full"].startswith("region `full` needs 10 ports, and array `small` has 9 (PE")
    placing = candidate_placing(array, RDA)
    assert placing is not None
    result = placing.run(choice.compiled)
    (chosen,) = (trial for trial in choice.partitions if trial.chosen)
    assert chosen.cycles == result.cycles + result.loading_cycles > choice.compiled.run().cycles + result.loading_cycles
    assert len(choose_schedule(source, Schedule.fuse("auto"), RDA, top=1).compiled.regions) == 1


def test_an_operator_that_does_not_fit_is_an_error() -> None:
    estimator = Estimator(assume_unknown=True, array=small(4))
    with pytest.raises(ArrayError, match=r"region `T0` needs 9 ports, and array `small` has 4"):
        choose_schedule(random_source(5, 16), Schedule.fuse("auto"), RDA, top=0, estimator=estimator)


def test_orders_are_compared_with_links_and_loading(tmp_path: Path) -> None:
    options = (*SPMM, "--array", "onyx", "--order", "auto", "--json", tmp_path / "run.json", "-q")
    assert fuseflow("run", *options).exit_code == 0
    run = json.loads((tmp_path / "run.json").read_text())
    assert fuseflow("run", *SPMM, "--order", "auto", "--json", tmp_path / "free.json", "-q").exit_code == 0
    free = json.loads((tmp_path / "free.json").read_text())
    cycles, others = ({tuple(t["order"]): t["cycles"] for t in result["auto"]["orders"]} for result in (run, free))
    assert cycles.keys() == others.keys() and all(cycles[order] > others[order] + 64 for order in cycles)


def test_auto_on_an_array_that_is_too_small(tmp_path: Path) -> None:
    (tmp_path / "small.yaml").write_text(TEXT.format(columns=3, rows=3))
    result = fuseflow("run", *SPMM, "--fuse", "auto", "--array", tmp_path / "small.yaml")
    assert result.exit_code == 2 and "8 ports, and array `small` has 6 and 3 and 3\n  hint: a larger array" in result.stderr


def test_simulations_in_processes_are_those_of_this_one(tmp_path: Path) -> None:
    search = ("schedule", *SPMM, "--array", "onyx", "--top", "1", "-q", "--json")
    assert fuseflow(*search, tmp_path / "here.json", "--no-store").exit_code == 0
    for name in ("new", "known"):
        assert fuseflow(*search, tmp_path / f"{name}.json", "--store", tmp_path / "s.sqlite", "--jobs", "1").exit_code == 0
    here, new, known = (json.loads((tmp_path / f"{name}.json").read_text()) for name in ("here", "new", "known"))
    assert here == new == known
    assert any(trial["cycles"] and sum(trial["loading"].values()) for trial in here["trials"])

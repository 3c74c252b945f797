"""The paper's models at small sizes: every granularity and cut computes what the dense interpreter does, and fuses what it says."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import fuseflow as ff
from fuseflow.frontend.model_spec import ModelSpec
from fuseflow.frontend.sources import load
from fuseflow.lower.program import lower

ROOT = Path(__file__).parents[2]
PAPER = ROOT / "models" / "paper"
SCHEDULES = ROOT / "schedules"
GRANULARITIES = ("unfused", "partial", "full")
DATA = {"gcn": "karate", "graphsage": "karate", "sae": None, "gpt": None}
REGIONS = {"gcn": (8, 2, 1), "graphsage": (15, 2, 1), "sae": (5, 2, 1), "gpt": (2 * 18, 2 * 3, 5)}
"""How many regions there are, unfused, partially and fully fused, as the paper counts them (`gpt`: of two decoders)."""


def schedule(model: str, granularity: str) -> ff.Schedule:
    return ff.Schedule.load(SCHEDULES / f"{model}_{granularity}.yaml")


@pytest.mark.parametrize("model", DATA)
@pytest.mark.parametrize("granularity", GRANULARITIES)
def test_every_granularity_is_right(model: str, granularity: str) -> None:
    compiled = ff.compile(
        PAPER / f"{model}.py", data=DATA[model], options={"small": True}, schedule=schedule(model, granularity), machine="ideal"
    )
    regions = [region for region in compiled.regions if region.einsums]
    assert len(regions) == REGIONS[model][GRANULARITIES.index(granularity)]
    result = compiled.run()
    assert result.check is not None and result.check.passed and result.check.reference == "dense interpreter"
    (output,) = result.tensors.values()
    assert np.isfinite(output.values).all() and len(np.unique(output.values)) > 2


@pytest.mark.parametrize("model", ["gcn", "sae"])
def test_stand_ins_for_intermediates(model: str) -> None:
    """Regions read dense stand-ins, and each is checked by itself; the outputs are others than those of the model."""
    real = schedule(model, "unfused")
    dense = real.lower(intermediates="dense")
    results = []
    for chosen in (real, dense):
        compiled = ff.compile(PAPER / f"{model}.py", data=DATA[model], options={"small": True}, schedule=chosen, machine="ideal")
        results.append(compiled.run())
        check = results[-1].check
        assert check is not None and check.passed
        assert ("each region by itself" in check.reference) == (chosen is dense)
    for t in compiled.program.tensors:
        if t.name in compiled.program.defined and t.name not in compiled.program.outputs:
            assert t.format is not None and t.format.all_dense
    (a,), (b,) = (r.tensors.values() for r in results)
    assert not np.array_equal(a.to_dense(), b.to_dense())
    assert "intermediates: dense" in results[1].to_dict()["schedule"]


def test_every_schedule_fits_its_model() -> None:
    """Those of figures (`schedules/paper`) are of the GCN, as the cuts are."""
    files = [file for file in sorted(SCHEDULES.rglob("*.yaml")) if file.parent.name not in ("sweeps", "budget")]
    assert len(files) == 3 * len(DATA) + 27 + 8
    sources = {m: load(ModelSpec(PAPER / f"{m}.py", data=DATA[m], options={"small": True})) for m in DATA}
    for file in files:
        model = file.stem.partition("_")[0] if file.parent == SCHEDULES else "gcn"
        chosen = ff.Schedule.load(file)
        assert chosen.order_policy == "first"
        if file.parent != SCHEDULES:
            _, regions = lower(sources[model].program, chosen, sources[model].tensors)
            found = {region.name: set(region.einsums) for region in regions}
            for name, einsums in chosen.regions:
                assert found[name] == set(einsums)


TWO_BLOCKS = "bigbird:block=64,length=128,features=192"
"""A sequence of two of the blocks that schedules of GPT-3 have, so that its rows and columns are loops."""
BUDGETS = {"medium": {"mul": 64, "port": 256, "fifo": 1 << 20}, "large": {"mul": 1024, "port": 1024, "fifo": 16 << 20}}


@pytest.mark.parametrize("file", sorted((SCHEDULES / "budget").glob("*.yaml")), ids=lambda file: file.stem)
def test_schedules_within_a_budget(file: Path) -> None:
    """The small models occupy less than the real ones, for which these schedules are, and mean what PyTorch or the interpreter says."""
    model, budget = file.stem.split("_")[:2]
    options = {"small": True} | ({"decoders": 1} if model == "gpt" else {})
    data = TWO_BLOCKS if model == "gpt" else DATA[model]
    schedule = ff.Schedule.load(file)
    runs = tuple((target, 2) for target, _ in schedule.splits)  # which divide the dimensions of all small models
    schedule = replace(schedule, splits=runs)
    compiled = ff.compile(PAPER / f"{model}.py", data=data, options=options, schedule=schedule, machine="rda")
    result = compiled.run()
    assert result.check is not None and result.check.passed
    for region in result.regions:
        for component, limit in BUDGETS[budget].items():
            assert getattr(region.resources, component) <= limit, (region.name, component)


def test_the_first_order_reads_what_is_stored_in_its_order() -> None:
    """The one that the published counts of orders leave; the best may be another."""
    source = load(ModelSpec(PAPER / "gcn.py", data="karate"))
    _, (region,) = lower(source.program, schedule("gcn", "full"), source.tensors)
    assert region.fused.order == ("n", "i", "k", "f", "h", "c")
    _, unfused = lower(source.program, schedule("gcn", "unfused"), source.tensors)
    assert [r.fused.order for r in unfused[:2]] == [("i", "k", "f"), ("i", "f", "h")]


def test_full_fusion_costs_features_times_the_sum_of_squared_degrees() -> None:
    """The closed form of the published GCN; the rest is what each edge and node costs besides."""
    compiled = ff.compile(PAPER / "gcn.py", data="synthetic:cora,scale=0.1", schedule=schedule("gcn", "full"), machine="comal")
    a = compiled.inputs()["A"].to_dense()
    squares = int((a.sum(axis=1) ** 2).sum())
    assert compiled.run(check=False).cycles == pytest.approx(1_433 * squares, rel=0.05)


def test_weights_are_those_of_the_published_runs() -> None:
    tensors = load(ModelSpec(PAPER / "gcn.py", data="synthetic:cora,scale=0.2")).tensors
    values = tensors["W1"].values
    assert set(np.unique(values)) <= set(range(1, 255)) and 0.35 < len(values) / (1_433 * 16) < 0.45
    assert tensors["b1"].format.all_dense and (tensors["b1"].values == 0).any()
    other = load(ModelSpec(PAPER / "gcn.py", data="synthetic:cora,scale=0.2", seed=1)).tensors
    assert not np.array_equal(other["b1"].values, tensors["b1"].values)


def test_the_adjacency_is_raw_unless_asked_otherwise() -> None:
    raw, gcn = (load(ModelSpec(PAPER / "gcn.py", data=spec)).tensors["A"] for spec in (None, ":adj=gcn"))
    assert set(raw.values) == {1.0} and raw.stored == 156
    assert gcn.stored == 156 + 34 and gcn.values.max() < 1


def test_sizes_are_options() -> None:
    program = load(
        ModelSpec(PAPER / "gpt.py", data="bigbird:block=2,length=8,features=8", options={"decoders": "1", "heads": "2"})
    ).program
    assert program.declared["d0.O"].shape == (1, 2, 8, 4) and program.outputs == ("d0.x",)
    whole = load(ModelSpec(PAPER / "gpt.py", options={"small": True, "decoders": 12})).program
    assert len(whole.einsums) == 12 * (44 + 4) and whole.outputs == ("d11.x",)
    with pytest.raises(ff.errors.FrontendError, match=r"12 decoders of 3 heads: .* 8 features are shared evenly"):
        load(ModelSpec(PAPER / "gpt.py", data="bigbird:block=2,length=8,features=8", options={"heads": "3"}))
    assert load(ModelSpec(PAPER / "sae.py", options={"small": True, "hidden": 3})).program.declared["We"].shape == (36, 3)

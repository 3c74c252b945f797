"""One point of `real_models.py` in a process of its own: it imports a model, or compiles and runs it, and prints JSON.

    python evaluation/real_model_point.py bert import
    python evaluation/real_model_point.py bert layerwise [--data-dir DIR] [--most-firings 2e10]

`import` measures the second import in the process, with no cache: PyTorch loads much when its tracers are first used. Its memory is the
growth of the peak of resident memory. A granularity with more firings than `--most-firings`, by the estimate, is estimated and not run.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

import click
import psutil
from real_model_list import MODELS, RealModel
from store import DATA_DIR

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

MB = 2**20


def peak_memory() -> int:
    """The largest resident memory since the last reset, in bytes."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))


def reset_peak_memory() -> None:
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")


def measure_import(model: RealModel, data_dir: Path | None) -> dict[str, Any]:
    """Import the model twice, and measure the second time. The first time has no `formats`, as PyTorch counts FLOPs of dense tensors."""
    from fuseflow.frontend.model_spec import ModelSpec
    from fuseflow.frontend.sources import load
    from fuseflow.frontend.trace.constant_folding import flop_counter, program_flops

    module, arguments = model.bring(data_dir)
    with flop_counter() as counter:
        module(*arguments)
    in_program = program_flops(load(ModelSpec(module, arguments)).program)
    module, arguments = model.bring(data_dir)
    reset_peak_memory()
    before, start = psutil.Process().memory_info().rss, time.perf_counter()
    source = load(ModelSpec(module, arguments, formats=model.formats))
    seconds, grown = time.perf_counter() - start, peak_memory() - before
    flops = counter.get_total_flops()
    return {
        "import_seconds": round(seconds, 2),
        "import_mb": max(0, round(grown / MB)),
        "tensors_mb": round(sum(tensor.nbytes for tensor in source.tensors.values()) / MB, 1),
        "einsums": len(source.program.einsums),
        "flops_share": round(in_program / flops, 3) if flops else None,
        "notices": list(source.notices),
    }


def measure_run(model: RealModel, granularity: str, data_dir: Path | None, most_firings: float) -> dict[str, Any]:
    """Compile and run the model, or estimate it where a run is unaffordable."""
    import fuseflow as ff

    module, arguments = model.bring(data_dir)
    if granularity == "auto":
        choice = ff.autoschedule(module, arguments, formats=model.formats)
        compiled, run = choice.compiled, choice.run
    else:
        compiled = ff.compile(module, arguments, formats=model.formats, schedule=ff.Schedule.fuse(granularity))
        run = compiled.run
    firings = sum(region.estimate.firings for region in compiled.regions)
    values = {"regions": len(compiled.regions), "firings": round(firings)}
    if firings > most_firings:
        return {**values, "how": "estimated", "cycles": round(compiled.estimate().cycles)}
    result = run()
    assert result.check is not None
    return {
        **values,
        "how": "exact",
        "cycles": result.cycles,
        "error": result.check.max_rel_error,
        "passed": result.check.passed,
        "simulate_seconds": round(result.seconds.simulate, 2),
    }


@click.command(help=__doc__.partition("\n")[0])
@click.argument("name", type=click.Choice([model.name for model in MODELS]))
@click.argument("measure", type=click.Choice(["import", "none", "layerwise", "full", "auto"]))
@DATA_DIR
@click.option("--most-firings", type=float, default=2e10, show_default=True, help="Of an exact run; what has more is estimated.")
def main(name: str, measure: str, data_dir: Path | None, most_firings: float) -> None:
    import torch

    from fuseflow.errors import FuseFlowError

    torch.set_num_threads(1)
    model = next(model for model in MODELS if model.name == name)
    try:
        imported = measure == "import"
        values = measure_import(model, data_dir) if imported else measure_run(model, measure, data_dir, most_firings)
    except FuseFlowError as error:
        values = {"refused": error.message}
    click.echo(json.dumps(values))


if __name__ == "__main__":
    main()

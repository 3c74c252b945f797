"""The best cut that fits an array in 1, 2 and 4 lanes, with its tiles, ports, cycles and loading, as rows of docs/measured/arrays.md:

python evaluation/array_lanes.py
"""

from __future__ import annotations

from pathlib import Path

from fuseflow.array.settings import load_array
from fuseflow.autoscheduler.budget.placing import TrialPlacing
from fuseflow.autoscheduler.budget.trials import region_loading
from fuseflow.compiler import compile_source
from fuseflow.frontend.model_spec import ModelSpec
from fuseflow.frontend.sources import load
from fuseflow.machine.files import load_machine
from fuseflow.schedule import Schedule

ROOT = Path(__file__).parents[1]
BIGBIRD = "bigbird:block=4,length=16,features=12"
MODELS = {
    "GCN": ModelSpec(ROOT / "models/gcn.py", data="karate"),
    "GraphSAGE": ModelSpec(ROOT / "models/graphsage.py", data="karate"),
    "SAE": ModelSpec(ROOT / "models/sae.py"),
    "attention": ModelSpec(ROOT / "models/gpt_bigbird.py", data=BIGBIRD, options={"part": "attention"}),
    "decoder": ModelSpec(ROOT / "models/gpt_bigbird.py", data=BIGBIRD, options={"part": "decoder"}),
}
LANES = (1, 2, 4)


def main() -> None:
    array, machine = load_array("onyx"), load_machine("rda")
    for name, spec in MODELS.items():
        source = load(spec)
        for lanes in LANES:
            compiled = compile_source(source, Schedule().par(i=lanes), machine, array=array)
            placed = TrialPlacing(array, machine, lambda _, program=compiled: program).regions(compiled.schedule)
            loading = region_loading(compiled, lambda region, placed=placed: placed[region.name].loading_cycles)
            cycles = compiled.run(check=False).cycles
            most = [max(region.tiles[kind] for region in placed.values()) for kind in array.kinds]
            parts = [name, lanes, len(compiled.regions), *most, f"{cycles:,}", f"{sum(loading.values()):,}"]
            print("|", " | ".join(map(str, parts)), "|", flush=True)


if __name__ == "__main__":
    main()

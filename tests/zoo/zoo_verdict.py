"""What fuseflow says of a model of the zoo, at each granularity, beside what PyTorch computes."""

from __future__ import annotations

import re
import time
import traceback
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import torch
from torch.utils import _pytree as pytree
from zoo_hollow import computed_before_import, elements_written, program_elements
from zoo_registry import GRANULARITIES, Model

from fuseflow import Schedule
from fuseflow.compiler import compile_source
from fuseflow.errors import FuseFlowError
from fuseflow.frontend.model_spec import ModelSpec
from fuseflow.frontend.sources import Source, load
from fuseflow.frontend.trace.constant_folding import flop_counter, program_flops
from fuseflow.sim import load_machine

LARGEST_ERROR = 1e-4
LEAST_SHARE = 0.5
"""A program with less of the work of its model is hollow."""
ROOT = Path(__file__).resolve().parents[2]

Row = dict[str, Any]


def row(model: Model) -> Row:
    """The row of a model in the table: its verdict at each granularity, what blocks it, and the share of its FLOPs in the program.

    A verdict is `accepted`, `refused` (an error of fuseflow), `crash` (any other error), or `wrong` (other values than PyTorch). The model
    is imported once: no granularity changes its program. It is hollow if the program has less than half of its FLOPs or of its elements,
    or a tensor that PyTorch computed from its inputs (`zoo_hollow`). `seconds` is the processor time of the import and the first
    compilation. It is no part of the table.
    """
    entry: Row = {"name": model.name, "family": model.family, "fast": model.fast}
    cycles: dict[str, int] = {}
    reasons: dict[str, str] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        computed = _computed(model)
        start = time.process_time()
        imported = _imported(model)
        for fuse in GRANULARITIES[model.family]:
            entry[fuse], reason, details = _verdict(imported, fuse, computed, start) if isinstance(imported, Source) else imported
            if "cycles" in details:
                cycles[fuse] = details.pop("cycles")
            entry = details | entry
            if reason:
                reasons[fuse] = reason
        if isinstance(imported, Source):
            entry |= _hollowness(model, imported, entry, computed)
            if model.family == "dynamic":
                entry["cycles"] = {name: number for name, number in cycles.items() if name != "full"} | _cycles_of_dense(model)
    return entry | ({"reasons": _merged(reasons, len(GRANULARITIES[model.family]))} if reasons else {})


def _merged(reasons: dict[str, str], granularities: int) -> dict[str, str]:
    """The reasons by granularity, or under `all` if all `granularities` have the same."""
    same = len(reasons) == granularities and len(set(reasons.values())) == 1
    return {"all": next(iter(reasons.values()))} if same else reasons


@dataclass(frozen=True, slots=True)
class Computed:
    """What PyTorch computes of a model, in how many FLOPs (0 if its counter counts none, or does not take the model), and how many elements
    its operators write."""

    outputs: list[torch.Tensor]
    flops: int
    elements: int


def _computed(model: Model) -> Computed:
    module, args, keywords = model.bring()
    results = module(*args, **keywords)
    outputs = [leaf.detach() for leaf in pytree.tree_leaves(results) if isinstance(leaf, torch.Tensor)]
    return Computed(outputs, _flops(model), elements_written(model))


def _cycles_of_dense(model: Model) -> dict[str, int]:
    """The cycles of a model at `best` if all of its tensors are stored dense, so that no zero is skipped, where that runs."""
    try:
        dense = _imported(model, {"*": "dense"})
        assert isinstance(dense, Source)
        return {"dense": compile_source(dense, Schedule.fuse("best"), load_machine("rda")).run(check=False).cycles}
    except Exception:
        return {}


def _hollowness(model: Model, imported: Source, entry: Row, computed: Computed) -> Row:
    """Whether a program is hollow, and what says so beside the share of FLOPs, which `entry` has."""
    elements, baked = round(program_elements(imported.program) / computed.elements, 3), computed_before_import(model, imported)
    is_hollow = bool(baked) or elements < LEAST_SHARE or (entry.get("flops_share") or 1) < LEAST_SHARE
    details = ({"elements_share": elements} if elements < LEAST_SHARE else {}) | ({"baked": baked} if baked else {})
    return {"hollow": is_hollow} | details


def _flops(model: Model) -> int:
    module, args, keywords = model.bring()
    try:
        with flop_counter() as counter:
            module(*args, **keywords)
    except (TypeError, RuntimeError):  # FlexAttention, nested tensors and Jacobians are beyond the counter
        torch._dynamo.reset()  # it remembers what failed
        return 0
    return counter.get_total_flops()


Verdict: TypeAlias = tuple[str, str, Row]
"""A verdict, its reason, and what else there is to know."""


def _imported(model: Model, formats: dict[str, str] | None = None) -> Source | Verdict:
    module, args, keywords = model.bring()
    try:
        return load(ModelSpec(module, args, kwargs=keywords, formats=formats))
    except Exception as error:
        return failure(error)


def _verdict(source: Source, fuse: str, computed: Computed, start: float) -> Verdict:
    """The verdict at one granularity, `start` being the processor time at which the import began."""
    try:
        program = compile_source(source, Schedule.fuse(fuse), load_machine("rda"))
        seconds = time.process_time() - start
        share = round(program_flops(program.program) / computed.flops, 3) if computed.flops else None
        result = program.run(check=False)
        outputs = list(result.outputs.values())
    except Exception as error:
        return failure(error)
    details = {"flops_share": share, "seconds": round(seconds, 2), "cycles": result.cycles}
    wrong = difference(outputs, computed.outputs)
    return ("wrong", wrong, details) if wrong else ("accepted", "", details)


def failure(error: Exception) -> Verdict:
    """The verdict on an error: a refusal, or a crash."""
    if isinstance(error, FuseFlowError):
        return "refused", _line(error.message), {}
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return "crash", _line(f"{type(error).__name__} in {Path(frame.filename).name}, {frame.name}: {error}"), {}


def difference(outputs: list[Any], expected: list[torch.Tensor]) -> str:
    """How the outputs of a run differ from those of PyTorch, or '' if they do not. An error is relative to the largest magnitude.

    The program of a model has no dimensions of extent 1, so they are left out of the comparison.
    """
    if len(outputs) != len(expected):
        return f"{len(outputs)} outputs instead of {len(expected)}"
    for place, (output, tensor) in enumerate(zip(outputs, expected, strict=True)):
        wanted = tensor.to_dense().to(torch.float64).squeeze().numpy()
        computed = np.asarray(output if isinstance(output, np.ndarray) else output.toarray(), dtype=np.float64).squeeze()
        if computed.shape != wanted.shape:
            return f"output {place} has shape {computed.shape} instead of {wanted.shape}"
        tolerance = max(LARGEST_ERROR, torch.finfo(tensor.dtype).eps * 2 if tensor.dtype.is_floating_point else 0.0)
        finite = wanted[np.isfinite(wanted)]
        if not np.allclose(computed, wanted, rtol=0, atol=tolerance * np.abs(finite).max(initial=0), equal_nan=True):
            return f"output {place} differs from PyTorch"
    return ""


def _line(text: str) -> str:
    """The first line of a text, without what is of this machine or of this run."""
    first = text.strip().partition("\n")[0]
    first = re.sub(r"0x[0-9a-f]{4,}", "0x...", first.replace(str(ROOT), "."))
    return re.sub(r"/\S*/site-packages/", "", first)

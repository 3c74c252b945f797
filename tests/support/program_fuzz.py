"""Random programs by the chunk: drawn by hypothesis from a seed, checked at all levels, counted; what fails is made smaller and kept."""

from __future__ import annotations

import json
import re
import traceback
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from unittest.mock import patch

import bitmaps
import hypothesis
import keeps
import narrows
import nm_levels
import numpy as np
import repeatable_draws  # noqa: F401 - a seed draws the same in every process
import schedule_changes
import torch_oracle
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.internal.conjecture import engine
from program_files import Kept
from program_levels import Checked, Difference, Run, TooLarge, check, compiled, selected
from program_surfaces import check_surfaces
from random_graphs.coverage import modes
from random_programs import Case, chosen_programs, hard_programs, planned, view_programs, wide_programs
from random_programs.chosen import FEATURES as CHOSEN_FEATURES
from random_programs.chosen import chosen_features
from tiled_programs import check_tiled
from views import FEATURES, features
from written_linalg import check_written

from fuseflow.einsum.nodes import Keep, Program, Reduce, Split, accesses, walk
from fuseflow.errors import FuseFlowError
from fuseflow.fusion.region_program import as_program
from fuseflow.keep_rules import Largest, Threshold
from fuseflow.samml.nodes import Graph, Join, Port, Range, Scan
from fuseflow.samml.writers import LaneWriter
from fuseflow.tensors import DTYPES, Tensor
from fuseflow.tensors.levels import NM

INF = float("inf")
CHUNK = 100
"""Programs that are drawn from one seed."""
SHRINKING = 25
"""Seconds in which a program that differs is made smaller."""

QUOTAS = {
    "three Einsums or more": 0.30,
    "fused across a reduction": 0.20,
    "different patterns joined": 0.10,
    "an empty operand": 0.10,
    "lanes": 0.15,
    "lanes of a stage": 0.10,
    "a result written in lanes": 0.01,
}
"""What a long run must hold, as a share of the programs that compile."""
REFUSALS = 0.05
"""The share of programs that may be refused."""

WIDE_QUOTAS = dict.fromkeys(
    (
        "vectors",
        "a merged dimension",
        "a split dimension",
        "a scalar beside a sparse tensor",
        "an empty operand",
        "a list of coordinates of rank 3",
        "f64",
        "integers",
        "locate never",
        "public primitives",
    ),
    0.10,
)
"""The same of wide programs."""
WIDE_REFUSALS = 0.10
KEEP_QUOTAS = {
    "keep above a threshold": 0.10,
    "keep of a fiber": 0.10,
    "keep of a group": 0.10,
    "keep of a whole result": 0.10,
    "keep that is fused": 0.30,
    **dict.fromkeys(("keep of the greatest", "keep of the least", "marks of what is kept"), 0.10),
    **dict.fromkeys(("fused, keep above a threshold", "fused, keep of a fiber", "fused, keep of a group"), 0.05),
    "a result stored n:m": 0.05,
}
"""The same of programs that keep parts of results."""
NM_QUOTAS = {"an input stored n:m": 0.50}
"""The same of programs with n:m levels."""
VIEW_QUOTAS = {
    **dict.fromkeys(FEATURES, 0.10),
    **{f"fused, {feature}": 0.05 for feature in FEATURES},
    "three Einsums or more": 0.30,
    "fused across a reduction": 0.20,
    "lanes": 0.15,
}
"""The same of programs with what real models have (`views`)."""
NARROW_QUOTAS = {
    **{f"elements of {dtype}": 0.10 for dtype in ("i4", "u4", "i8", "u8", "i16", "f16", "bf16", "e4m3", "e5m2", "e2m1")},
    "a narrow result": 0.30,
    "a narrow result that is fused": 0.10,
}
"""The same of programs with narrow element types."""
HARD_QUOTAS = {
    **dict.fromkeys(("a size of 0", "NaN", "infinities", "values that cancel"), 0.15),
    "three Einsums or more": 0.30,
    "fused across a reduction": 0.20,
    "lanes": 0.15,
}
"""The same of programs with hard values."""
CHOSEN_QUOTAS = {
    **dict.fromkeys(CHOSEN_FEATURES, 0.10),
    **{f"fused, {feature}": 0.05 for feature in CHOSEN_FEATURES},
    **dict.fromkeys(("keep of the greatest", "keep of the least", "marks of what is kept"), 0.10),
    "three Einsums or more": 0.30,
    "fused across a reduction": 0.20,
    "lanes": 0.15,
}
"""The same of programs whose sparsity depends on data."""
DRAWS = {"chosen": chosen_programs, "hard": hard_programs, "views": view_programs, "wide": wide_programs}
"""Programs whose sparsity depends on data, that have hard values, that have views, and wide ones."""
CHANGES = {
    "bitmap": bitmaps.in_program,
    "nm": nm_levels.in_program,
    "keep": keeps.in_program,
    "narrow": narrows.in_program,
    "split": schedule_changes.with_splits,
    "recompute": schedule_changes.with_recomputes,
}
"""What programs get, one after the other: bitmap levels, n:m levels, parts of results that are kept, narrow element types, indices that
are two loops, and Einsums that later regions compute again."""
SPLIT = "an index in two loops"
"""Held by programs with splits."""
RECOMPUTE = "an Einsum that is computed again"
"""Held by programs with copies of Einsums in later regions."""
SURFACES = "everything else that a user asks"
"""The quota of programs that were saved and read again, estimated, explained, and so on (`program_surfaces`)."""


@dataclass
class Tally:
    """What became of the programs of some seeds. Those that are too large to run are not among `programs`. `refused` counts by kind, with
    an example of each; `modes` the programs whose graphs hold a primitive in some way (`random_graphs.coverage`)."""

    programs: int = 0
    compiled: int = 0
    too_large: int = 0
    regions: int = 0
    quotas: Counter[str] = field(default_factory=Counter)
    modes: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    examples: dict[str, str] = field(default_factory=dict)
    differing: list[Kept] = field(default_factory=list)

    def add(self, other: Tally) -> None:
        self.programs += other.programs
        self.compiled += other.compiled
        self.too_large += other.too_large
        self.regions += other.regions
        self.quotas += other.quotas
        self.modes += other.modes
        self.refused += other.refused
        self.examples = other.examples | self.examples
        self.differing += other.differing

    def share(self, quota: str) -> float:
        return self.quotas[quota] / max(1, self.compiled)

    @property
    def refusals(self) -> float:
        return self.refused.total() / max(1, self.programs)


def run(
    seed: int,
    examples: int = CHUNK,
    check: Callable[[Case], Checked] = check,
    smaller: bool = True,
    surfaces: int = 0,
    linalg: bool = False,
    tile: bool = False,
    **kinds: bool,
) -> Tally:
    """The programs of one seed, up to the first that differs, which is made smaller. `surfaces`: one program of so many is checked by
    everything else that a user asks, too; 0 for none. `linalg`: each is also written as scheduled Linalg and read again
    (`written_linalg`). `tile`: each also runs in tiles and with tensors in the scratchpad (`tiled_programs`). `kinds` are those of
    `DRAWS`, in place of all others, and of `CHANGES`."""
    assert kinds.keys() <= {*DRAWS, *CHANGES}, kinds
    tally, failed = Tally(), list[tuple[Case, Exception]]()
    draws = [draw for kind, draw in DRAWS.items() if kinds.get(kind)]
    drawn = draws[0]() if draws else planned(schedule_changes.SIZES) if kinds.get("split") else planned()
    for kind, change in CHANGES.items():
        drawn = drawn.map(change) if kinds.get(kind) else drawn

    def one(case: Case) -> None:
        try:
            checked = check(case)
            asked = surfaces > 0 and (bool(failed) or tally.programs % surfaces == 0)
            if asked:
                check_surfaces(case, checked.schedule)
            if linalg:
                check_written(case, checked.schedule)
            kinds = check_tiled(case, checked.schedule) if tile else ()
        except TooLarge:
            tally.too_large += not failed
        except FuseFlowError as error:
            if not failed:
                count_refusal(tally, case, error)
        except Exception as error:
            if failed and signature(error) != signature(failed[0][1]):
                return  # another fault, met while the first is made smaller
            failed.append((case, error))
            raise
        else:
            if not failed:
                count(tally, case, checked)
                tally.quotas[SURFACES] += asked
                tally.quotas.update(kinds)

    phases = (Phase.generate, Phase.shrink) if smaller else (Phase.generate,)
    quiet = settings(
        max_examples=examples,
        database=None,
        deadline=None,
        phases=phases,
        report_multiple_bugs=False,
        suppress_health_check=list(HealthCheck),
    )
    try:
        # Hypothesis also tries what it drew with parts of it repeated: a third of all programs would be one drawn before.
        unrepeated = patch.object(engine.ConjectureRunner, "generate_mutations_from", lambda self, data: None)
        with unrepeated, patch.object(engine, "MAX_SHRINKING_SECONDS", SHRINKING):
            hypothesis.seed(seed)(quiet(given(drawn)(one)))()
    except Exception:
        if not failed:
            raise  # the generator itself
        case, error = failed[-1]  # hypothesis runs the smallest at last
        tally.programs += 1
        tally.differing.append(Kept(case, seed, explain(error)))
    return tally


def signature(error: Exception) -> tuple[str, str]:
    """What faults of one kind have in common: the level of a difference, the place of any other exception."""
    if isinstance(error, Difference):
        return type(error).__name__, str(error).partition(":")[0].partition("`")[0]
    return type(error).__name__, traceback.extract_tb(error.__traceback__)[-1].name


def explain(error: Exception) -> str:
    """The message of a difference; of any other exception where it was raised, too."""
    if isinstance(error, Difference):
        return str(error)
    frames = traceback.extract_tb(error.__traceback__)[-4:]
    places = "".join(f"\n  {frame.filename.rpartition('fuseflow/')[2]}, {frame.name}: {frame.line}" for frame in frames)
    return f"{type(error).__name__}: {error}{places}"


# Counting --------------------------------------------------------------------------------------------------------------------


def count(tally: Tally, case: Case, checked: Checked) -> None:
    program = case.program
    tally.programs += 1
    tally.compiled += 1
    tally.regions += len(checked.runs)
    holds = {
        "three Einsums or more": len(program.einsums) >= 3,
        "fused across a reduction": any(across_reduction(program, set(run.region.einsums)) for run in checked.runs),
        "different patterns joined": any(joins_patterns(run) for run in checked.runs),
        "an empty operand": any(reads_nothing(run) for run in checked.runs),
        "lanes": any(run.region.places for run in checked.runs),
        "lanes of a stage": any("." in loop for run in checked.runs for place in run.region.places.values() for loop, _ in place),
        "a result written in lanes": any(isinstance(node, LaneWriter) for run in checked.runs for node in run.region.graph.nodes),
        "vectors": checked.schedule.vector > 1 and any(decl.tile for run in checked.runs for decl in run.region.graph.tensors),
        "a merged dimension": any(isinstance(index, Split) for e in program.einsums for index in e.indices),
        "a split dimension": any(isinstance(i, Split) for e in program.einsums for a in accesses(e.body) for i in a.indices),
        "a scalar beside a sparse tensor": any(scalar_beside(run) for run in checked.runs),
        "a list of coordinates of rank 3": any(is_list(tensor) for run in checked.runs for tensor in run.inputs.values()),
        "f64": any(tensor.dtype == np.float64 for tensor in case.tensors.values()),
        "integers": any(tensor.dtype.kind == "i" for name, tensor in case.tensors.items() if is_read(name, checked)),
        "locate never": checked.schedule.locate == "never",
        "an input stored n:m": any(is_grouped(tensor) for name, tensor in case.tensors.items() if is_read(name, checked)),
        SPLIT: bool(checked.schedule.splits),
        RECOMPUTE: bool(checked.schedule.recomputed),
        **hard_held(case),
        **keeps_held(program, checked),
        **features_held(features(case), checked),
        **features_held(chosen_features(program, checked.schedule), checked),
        **narrows_held(program, checked),
        "public primitives": checked.schedule.primitives == "public" and any(is_public(run) for run in checked.runs),
    }
    tally.modes.update({mode for run in checked.runs for mode in modes(run.region.graph)})
    tally.quotas.update(name for name, held in holds.items() if held)


def hard_held(case: Case) -> dict[str, bool]:
    """Which hard values a program reads or computes. The bound of a value is as large as a thousandth of it where 13 digits cancel."""
    found = torch_oracle.evaluate(case.program, case.arrays).values()
    values = [*case.arrays.values(), *(one.array for one in found)]
    lost = ((one.value.error > 1e-12 * one.value.values.abs()) & (one.value.error < INF) for one in found)
    return {
        "a size of 0": any(0 in tensor.shape for tensor in case.tensors.values()),
        "NaN": any(bool(np.isnan(array).any()) for array in values),
        "infinities": any(bool(np.isinf(array).any()) for array in values),
        "values that cancel": any(bool(part.any()) for part in lost),
        "entries that rounding decides": any(bool((one.value.error == INF).any()) for one in found),
    }


def keeps_held(program: Program, checked: Checked) -> dict[str, bool]:
    """Which kinds of `keep` a program has, and whether one is fused with other Einsums."""
    rules = {e.name: e.body for e in program.einsums if isinstance(e.body, Keep)}
    fused = {name for run in checked.runs if len(run.region.einsums) > 1 for name in run.region.einsums if name in rules}
    kinds = {name: _kind_of_keep(keep) for name, keep in rules.items()}
    results = [decl for run in checked.runs for decl in run.region.graph.tensors if decl.name in run.region.graph.outputs]
    return {
        **dict.fromkeys(kinds.values(), True),
        **{f"fused, {kinds[name]}": True for name in fused},
        "keep that is fused": bool(fused),
        **{f"keep of the {keep.rule.by}": True for keep in rules.values() if isinstance(keep.rule, Largest)},
        "marks of what is kept": any(keep.marks for keep in rules.values()),
        "a result stored n:m": any(level.pads for decl in results for level in decl.format.levels),
    }


def _kind_of_keep(keep: Keep) -> str:
    if isinstance(keep.rule, Threshold):
        return "keep above a threshold"
    if keep.kind == "materializing":
        return "keep of a whole result"
    return "keep of a group" if keep.rule.every else "keep of a fiber"


def features_held(having: Mapping[str, set[str]], checked: Checked) -> dict[str, bool]:
    """Which features a program has, by the statements that have them, and whether one of these is fused with others."""
    fused = {name for run in checked.runs if len(run.region.einsums) > 1 for name in run.region.einsums}
    return {
        **{feature: bool(names) for feature, names in having.items()},
        **{f"fused, {feature}": bool(names & fused) for feature, names in having.items()},
    }


def narrows_held(program: Program, checked: Checked) -> dict[str, bool]:
    """Which narrow types a program has, and whether a result of one is read in its own region."""
    types = {t.name: t.dtype for t in program.tensors}
    regions = [run.region.einsums for run in checked.runs]
    read_inside = {n for e in program.einsums for names in regions if e.name in names for n in e.operands if n in names}
    narrow = {name for name in types if DTYPES[types[name]].narrow}
    results = narrow & {e.name for e in program.einsums}
    return {
        **{f"elements of {dtype}": dtype in types.values() for dtype in DTYPES if DTYPES[dtype].narrow},
        "a narrow result": bool(results),
        "a narrow result that is fused": bool(results & read_inside),
    }


def show_counts(tally: Tally) -> str:
    """The counts of a tally in which nothing differs, as JSON."""
    assert not tally.differing
    return json.dumps({name: value for name, value in vars(tally).items() if name != "differing"})


def read_counts(text: str) -> Tally:
    """
    >>> read_counts(show_counts(Tally(programs=3, modes=Counter(["Scan", "Scan"])))).modes["Scan"]
    2
    """
    counts = json.loads(text)
    return Tally(**counts | {name: Counter(counts[name]) for name, empty in vars(Tally()).items() if isinstance(empty, Counter)})


def count_refusal(tally: Tally, case: Case, error: FuseFlowError) -> None:
    kind = kind_of(error)
    tally.programs += 1
    tally.refused[kind] += 1
    tally.examples.setdefault(kind, f"{error}\n{case!r}")


def kind_of(error: FuseFlowError) -> str:
    """The stage and the first words, without names.

    >>> kind_of(FuseFlowError("region `g0` has no legal order: it needs i before k"))
    'error: region has no legal order'
    """
    words = re.sub(r"`[^`]*`|\w+\[[^]]*\]|\b\w+(,\w+)+\b", "", error.message).split(":")[0].split()
    return f"{error.code}: {' '.join(words[:7])}"


def across_reduction(program: Program, region: set[str]) -> bool:
    """Whether a reduction and an Einsum that reads its result are in one region."""
    reduces = {e.name for e in program.einsums if any(isinstance(n, Reduce) for n in walk(e.body))}
    return any(e.name in region and name in region & reduces for e in program.einsums for name in e.operands)


def joins_patterns(run: Run) -> bool:
    """Whether two sides of a join, neither of them every coordinate of a dimension, hold different coordinates."""
    graph, streams = run.region.graph, run.outcome.streams
    for node in graph.nodes:
        if isinstance(node, Join):
            crds = [node.inputs[crd] for crd, _ in node.sides()]
            patterns = {tuple(map(str, streams[p].tokens)) for p in crds if not is_full(graph, p)}
            if len(patterns) > 1:
                return True
    return False


def is_full(graph: Graph, port: Port) -> bool:
    """Whether a coordinate stream counts up a dimension."""
    node = next(n for n in graph.nodes if n.name == port.node)
    if isinstance(node, Scan):
        return graph.declared[node.tensor].format.levels[node.level].full
    return isinstance(node, Range)


def reads_nothing(run: Run) -> bool:
    """Whether an operand has places, and nothing stored in them."""
    return any(tensor.stored == 0 and 0 not in tensor.shape for tensor in run.inputs.values())


def is_read(name: str, checked: Checked) -> bool:
    return any(name in run.inputs for run in checked.runs)


def is_grouped(tensor: Tensor) -> bool:
    return any(isinstance(level, NM) for level in tensor.format.levels)


def scalar_beside(run: Run) -> bool:
    """Whether a region works with a scalar, which is stored or not, and reads a sparse tensor."""
    sparse = any(not tensor.format.all_dense for tensor in run.inputs.values())
    scalars = any(not tensor.shape for tensor in run.inputs.values())
    return sparse and (scalars or not all(e.indices for e in as_program(run.region.fused).einsums))


def is_public(run: Run) -> bool:
    """Whether a region computes something, and the public schema says all of it."""
    return bool(run.region.einsums) and not run.region.private


def is_list(tensor: Tensor) -> bool:
    return len(tensor.shape) == 3 and tensor.format.levels[0].text == "compressed(nonunique)"


MODE_QUOTAS = {
    "hard": HARD_QUOTAS,
    "chosen": CHOSEN_QUOTAS,
    "views": VIEW_QUOTAS,
    "narrow": NARROW_QUOTAS,
    "keep": KEEP_QUOTAS,
    "wide": WIDE_QUOTAS,
}
"""The quotas of programs of a kind, those of the first that is asked for."""


def quotas_of(**kinds: bool) -> dict[str, float]:
    of_mode = next((quotas for kind, quotas in MODE_QUOTAS.items() if kinds.get(kind)), QUOTAS)
    return of_mode | (NM_QUOTAS if kinds.get("nm") and not (kinds.get("hard") or kinds.get("chosen")) else {})


def missed(tally: Tally, **kinds: bool) -> list[str]:
    """The quotas that a run did not reach."""
    shares = {name: (tally.share(name), least) for name, least in quotas_of(**kinds).items()}
    found = [f"{name}: {share:.1%} of at least {least:.0%}" for name, (share, least) in shares.items() if share < least]
    most = WIDE_REFUSALS if any(kinds.get(kind) for kind in (*DRAWS, "keep")) else REFUSALS
    return found + ([f"refused: {tally.refusals:.1%} of at most {most:.0%}"] if tally.refusals > most else [])


def with_orders(kept: Kept) -> Kept:
    """The case with the order and the lanes that it picked written out, if they can be found: a compiler that ranks orders otherwise
    asks for them still."""
    try:
        schedule, *_ = compiled(selected(kept.case))
    except Exception:
        return kept
    return replace(kept, case=replace(kept.case, schedule=schedule, pick=0, deal=0))

"""Programs at every level: PyTorch, the Einsum interpreter, the fused interpreter, the graph on the reference simulator and on the
engine all mean the same. Random ones, and those that once differed."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, Protocol
from unittest.mock import patch

import numpy as np
import program_fuzz
import program_levels
import pytest
import torch
import torch_oracle
from hypothesis import HealthCheck, given, settings
from program_faults import FAULTS, WIDE_FAULTS, Plant, fault
from program_files import Kept, load, save
from program_levels import Difference, check, lowered, ordered, selected
from program_surfaces import check_surfaces
from random_programs import Case, chosen_programs, planned, view_programs, wide_programs
from random_programs.chosen import FEATURES as CHOSEN_FEATURES

from fuseflow import keep_rules, ops
from fuseflow.einsum import selections
from fuseflow.einsum.nodes import Affine, Apply, Expr, Reduce
from fuseflow.einsum.parse import parse
from fuseflow.errors import FusionError, ScheduleError
from fuseflow.lower import reshape_views
from fuseflow.schedule import Schedule
from fuseflow.sim.reference import rule_processes, select
from fuseflow.table import builder
from fuseflow.tensors import Tensor

VIEW_FAULTS: dict[str, Plant] = {}

Change = Callable[[Affine], Affine]


def _of_selections(change: Change) -> AbstractContextManager[Any]:
    """The selections of a program that is compiled are those of other indices. Its interpreter reads as before."""
    real = selections._selection
    return patch.object(selections, "_selection", lambda name, index, *extents: real(name, change(index), *extents))


# Offsets, strides and concatenations -----------------------------------------------------------------------------------------


@fault("an offset is one too large", VIEW_FAULTS)
def large_offset() -> AbstractContextManager[Any]:
    return _of_selections(lambda index: replace(index, offset=index.offset + 1) if index.offset > 0 else index)


@fault("a stride is ignored", VIEW_FAULTS)
def no_stride() -> AbstractContextManager[Any]:
    return _of_selections(lambda index: replace(index, terms=tuple((name, 1) for name, _ in index.terms)))


@fault("a turned index runs forward", VIEW_FAULTS)
def not_turned() -> AbstractContextManager[Any]:
    return _of_selections(lambda index: replace(index, terms=tuple((name, abs(factor)) for name, factor in index.terms)))


@fault("the second part of a concatenation stands one too far", VIEW_FAULTS)
def shifted_part() -> AbstractContextManager[Any]:
    return _of_selections(lambda index: replace(index, offset=index.offset - 1) if index.offset < -1 else index)


@fault("the terms of a window change places", VIEW_FAULTS)
def swapped_terms() -> AbstractContextManager[Any]:
    def swapped(index: Affine) -> Affine:
        factors = [factor for _, factor in reversed(index.terms)]
        return replace(index, terms=tuple((name, factor) for (name, _), factor in zip(index.terms, factors, strict=True)))

    return _of_selections(swapped)


@fault("selections with other offsets are one tensor", VIEW_FAULTS)
def one_selection() -> AbstractContextManager[Any]:
    real = selections._Selections.name

    def name(self: Any, index: Affine, sizes: Mapping[str, int], extent: int) -> str:
        if index.terms:
            same = [key for key in self.by_key if key[0] == tuple(f for _, f in index.terms) and key[3] == extent]
            lengths = tuple(sizes[v] for v, _ in index.terms)
            index = next((replace(index, offset=key[2]) for key in same if key[1] == lengths), index)
        return real(self, index, sizes, extent)

    return patch.object(selections._Selections, "name", name)


@fault("the sum over what is selected moves out of every operator", VIEW_FAULTS)
def sum_moves_out() -> AbstractContextManager[Any]:
    real = selections._Statement.opened

    def opened(self: Any, node: Expr) -> tuple[Expr, tuple[str, ...]]:
        if isinstance(node, Apply) and node.op != "mul":
            parts = [self.opened(arg) for arg in node.args]
            return replace(node, args=tuple(arg for arg, _ in parts)), tuple(v for _, over in parts for v in over)
        if isinstance(node, Reduce) and node.op != "sum":
            body, over = self.opened(node.body)
            return replace(node, body=body), over
        return real(self, node)

    return patch.object(selections._Statement, "opened", opened)


@fault("what is read outside of a tensor is its last entry", VIEW_FAULTS)
def clamped() -> AbstractContextManager[Any]:
    real = selections._gathered

    def gathered(array: Any, axis: int, wanted: Any) -> Any:
        last = array.shape[axis] - 1
        return real(array, axis, np.clip(wanted, 0, last) if last >= 0 else wanted)

    return patch.object(selections, "_gathered", gathered)


@fault("what a selection leaves out counts if it is infinite", VIEW_FAULTS)
def no_annihilator() -> AbstractContextManager[Any]:
    return patch.dict(ops.OPERATORS, mul=replace(ops.OPERATORS["mul"], annihilators=()))


# Maxima by a pattern ---------------------------------------------------------------------------------------------------------


@fault("a maximum over neighbours starts from 0", VIEW_FAULTS)
def zero_maximum() -> AbstractContextManager[Any]:
    real = rule_processes.reducer
    return patch.object(
        rule_processes, "reducer", lambda name: replace(real(name), identity=0.0) if name == "max" else real(name)
    )


@fault("what a pattern lacks counts as 0 in a maximum", VIEW_FAULTS)
def absent_neighbours() -> AbstractContextManager[Any]:
    return patch.object(builder.TableBuilder, "filled", lambda self, value, fill: value)


# The largest entries ---------------------------------------------------------------------------------------------------------


@fault("the smallest entries are kept", VIEW_FAULTS)
def smallest() -> AbstractContextManager[Any]:
    real = keep_rules._ranks
    return patch.object(keep_rules, "_ranks", lambda array, by: ~real(array, by))


@fault("of equal entries the last is kept", VIEW_FAULTS)
def last_of_equal() -> AbstractContextManager[Any]:
    real = keep_rules._ranks
    steps = (
        1 << 20
    )  # Magnitudes of random programs that differ at all differ by more of the smallest steps, and no fiber is as long.
    return patch.object(keep_rules, "_ranks", lambda array, by: real(array, by) // steps * steps + np.arange(array.shape[-1]))


@fault("entries are compared with their sign", VIEW_FAULTS)
def signed() -> AbstractContextManager[Any]:
    real = keep_rules._ranks
    return patch.object(keep_rules, "_ranks", lambda array, by: real(array, "greatest" if by == "magnitude" else by))


@fault("the reference keeps one entry too many", VIEW_FAULTS)
def one_more_kept() -> AbstractContextManager[Any]:
    real = select.keep_largest
    return patch.object(select, "keep_largest", lambda entries, node: real(entries, replace(node, keep=node.keep + 1)))


@fault("groups are not told apart", VIEW_FAULTS)
def no_groups() -> AbstractContextManager[Any]:
    real = select._fill
    return patch.object(select, "_fill", lambda p, every, buffers: real(p, 0, buffers))


SPLIT_FAULTS: dict[str, Plant] = {}


@fault("what is seen in parts begins one value late", SPLIT_FAULTS)
def late_views() -> AbstractContextManager[Any]:
    real = reshape_views.regroup_tensor

    def late(tensor: Any, *args: Any) -> Any:
        seen = real(tensor, *args)
        return replace(seen, values=np.roll(seen.values, 1, axis=0))

    return patch.object(reshape_views, "regroup_tensor", late)


KEPT = sorted((Path(__file__).parents[1] / "data" / "programs").glob("*.yaml"))
SEEDS, MORE_SEEDS, EXAMPLES = range(4), range(4, 12), 25
"""Seeds of every run, and those that are slow; so many programs are drawn from each."""
SOON = range(3, 8)
"""Seeds among whose first programs are some that show the planted faults."""
WIDE_SEEDS, MORE_WIDE_SEEDS, ONE_OF = (0, 1), range(2, 8), 12
"""Seeds of wide programs, those that are slow (the programs of 2 take longest), and how many of them are asked everything else that a
user asks: the first of so many."""


def slow(seeds: Iterable[int]) -> list[object]:
    return [pytest.param(seed, marks=pytest.mark.slow) for seed in seeds]


@pytest.mark.parametrize("path", KEPT, ids=lambda path: path.stem)
def test_programs_that_once_differed(path: Path) -> None:
    """At every level, and at the surfaces where it may differ again. Random wide programs are asked everything."""
    kept = load(path)
    schedule = check(kept.case).schedule
    if kept.surfaces != ():
        check_surfaces(kept.case, schedule, kept.surfaces)


CROSSING = {"full.l": 2, "full.m": 2, "full/T1.sum.n": 2}
"""Lanes of two indices of a region and of a stage in it, in the program of `lanes_are_dealt_below_their_own_coordinates`."""


def crossing() -> tuple[Case, Schedule]:
    (path,) = (path for path in KEPT if path.stem == "lanes_are_dealt_below_their_own_coordinates")
    case = selected(load(path).case)
    return case, ordered(case)[0].par(**CROSSING)


def test_lanes_that_cross_are_refused_in_the_words_of_the_schedule() -> None:
    case, schedule = crossing()
    with pytest.raises(ScheduleError, match=r"the lanes of stages \(`T1\.sum\.n`\) cross other lanes of region `full`") as error:
        lowered(case, schedule)
    assert error.value.hint == "leave out the lanes of one of the indices"


@pytest.mark.xfail(
    strict=True, raises=ScheduleError, reason="a stream of the stage has no alignment with one that both other lanes divide"
)
def test_lanes_that_cross_have_a_graph() -> None:
    lowered(*crossing())


class Fuzzed(Protocol):
    def __call__(self, seed: int, wide: bool = False) -> program_fuzz.Tally: ...


@pytest.fixture(scope="session")
def fuzzed(tmp_path_factory: pytest.TempPathFactory) -> Fuzzed:
    """`fuzzed(seed)` is what became of the programs of a seed. Workers of xdist share it by a file: checking takes seconds."""
    shared = tmp_path_factory.getbasetemp()
    if os.environ.get("PYTEST_XDIST_WORKER"):
        shared = shared.parent

    @cache
    def tally(seed: int, wide: bool = False) -> program_fuzz.Tally:
        path = shared / f"{'wide-' * wide}programs-{seed}.json"
        if path.exists():
            return program_fuzz.read_counts(path.read_text(encoding="utf-8"))
        tally = program_fuzz.run(seed, EXAMPLES, wide=wide, surfaces=ONE_OF if wide else 0)
        if not tally.differing:
            partial = shared / f"{path.stem}.{os.getpid()}"
            partial.write_text(program_fuzz.show_counts(tally), encoding="utf-8")
            partial.replace(path)
        return tally

    return tally


@pytest.mark.parametrize("seed", [*SEEDS, *slow(MORE_SEEDS)])
def test_random_programs(seed: int, fuzzed: Fuzzed) -> None:
    tally = fuzzed(seed)
    assert not tally.differing, f"{tally.differing[0].differs}\n{tally.differing[0].case!r}"
    assert tally.programs == EXAMPLES


@pytest.mark.parametrize("seed", [0, *slow([1])])
def test_random_programs_with_bitmaps(seed: int) -> None:
    tally = program_fuzz.run(seed, EXAMPLES, bitmap=True)
    assert not tally.differing, f"{tally.differing[0].differs}\n{tally.differing[0].case!r}"
    assert {"scan bitmap", "write bitmap"} <= set(tally.modes)


def test_random_programs_with_nm_levels() -> None:
    tally = program_fuzz.run(SEEDS[0], EXAMPLES, nm=True)
    assert not tally.differing, f"{tally.differing[0].differs}\n{tally.differing[0].case!r}"
    assert any(mode.startswith("scan nm(") for mode in tally.modes)


@pytest.mark.parametrize("wide", [False, True])
def test_random_programs_with_narrow_types(wide: bool) -> None:
    tally = program_fuzz.run(SEEDS[0], EXAMPLES, wide=wide, narrow=True)
    assert not tally.differing, f"{tally.differing[0].differs}\n{tally.differing[0].case!r}"
    assert all(tally.quotas[name] for name in program_fuzz.NARROW_QUOTAS)


@pytest.mark.parametrize("wide", [False, True])
def test_random_programs_with_splits(wide: bool) -> None:
    tally = program_fuzz.run(SEEDS[0], EXAMPLES, wide=wide, split=True)
    assert not tally.differing, f"{tally.differing[0].differs}\n{tally.differing[0].case!r}"
    assert tally.quotas[program_fuzz.SPLIT] >= 5


@pytest.mark.parametrize("mode", [{}, {"wide": True}, {"keep": True}], ids=["plain", "wide", "keep"])
def test_random_programs_that_compute_einsums_again(mode: dict[str, bool]) -> None:
    tally = program_fuzz.run(SEEDS[0], EXAMPLES, recompute=True, **mode)
    assert not tally.differing, f"{tally.differing[0].differs}\n{tally.differing[0].case!r}"
    assert tally.quotas[program_fuzz.RECOMPUTE] >= 2


@pytest.mark.parametrize("fault", SPLIT_FAULTS)
def test_a_fault_of_splits_is_found(fault: str) -> None:
    with SPLIT_FAULTS[fault]():
        assert program_fuzz.run(SEEDS[0], EXAMPLES, smaller=False, split=True).differing


@pytest.mark.parametrize("seed", [0, *slow([1])])
def test_random_programs_that_keep_parts_of_results(seed: int) -> None:
    tally = program_fuzz.run(seed, EXAMPLES, keep=True)
    assert not tally.differing, f"{tally.differing[0].differs}\n{tally.differing[0].case!r}"
    assert all(tally.quotas[name] for name in program_fuzz.KEEP_QUOTAS)


def test_random_programs_with_views() -> None:
    tally = program_fuzz.run(SEEDS[0], EXAMPLES, views=True)
    assert not tally.differing, f"{tally.differing[0].differs}\n{tally.differing[0].case!r}"
    assert [name for name in program_fuzz.VIEW_QUOTAS if not tally.quotas[name]] == []


@pytest.mark.parametrize("wide", [False, True])
def test_random_programs_written_as_linalg(wide: bool) -> None:
    tally = program_fuzz.run(SEEDS[0], 10, wide=wide, linalg=True)
    assert not tally.differing, f"{tally.differing[0].differs}\n{tally.differing[0].case!r}"
    assert tally.compiled >= 9


def test_random_programs_with_hard_values() -> None:
    tally = program_fuzz.run(SEEDS[0], EXAMPLES, hard=True)
    assert not tally.differing, f"{tally.differing[0].differs}\n{tally.differing[0].case!r}"
    assert [name for name in program_fuzz.HARD_QUOTAS if not tally.quotas[name]] == []


@pytest.mark.parametrize("seed", [0, *slow([1, 2])])
def test_random_programs_whose_sparsity_depends_on_data(seed: int) -> None:
    tally = program_fuzz.run(seed, EXAMPLES, chosen=True)
    assert not tally.differing, f"{tally.differing[0].differs}\n{tally.differing[0].case!r}"
    assert [name for name in CHOSEN_FEATURES if not tally.quotas[name]] == []


@pytest.mark.slow
def test_quotas_of_programs_whose_sparsity_depends_on_data() -> None:
    total = program_fuzz.Tally()
    for seed in range(10):
        total.add(program_fuzz.run(seed, chosen=True))
    assert not total.differing and program_fuzz.missed(total, chosen=True) == []


def test_a_small_entry_that_is_wrong_beside_a_large_one_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Twice an entry that is less than a billionth of the largest: only its own bound finds it."""
    right = program_levels.assemble

    def wrong(*args: Any) -> Tensor:
        tensor = right(*args)
        values = tensor.values.astype(np.float64)
        small = np.abs(values) < 1e-10 * np.abs(values[np.isfinite(values)]).max(initial=0.0)
        return replace(tensor, values=np.where(small, 2 * values, values).astype(tensor.values.dtype))

    monkeypatch.setattr(program_levels, "assemble", wrong)
    assert program_fuzz.run(SEEDS[0], 4 * EXAMPLES, smaller=False, hard=True).differing


@pytest.mark.parametrize("fault", ["a stride is ignored", "of equal entries the last is kept"])
def test_a_fault_that_only_views_show_is_found(fault: str) -> None:
    with VIEW_FAULTS[fault]():
        (kept,) = program_fuzz.run(SOON[0], EXAMPLES, smaller=False, views=True).differing
    assert "interpreter" in kept.differs or "graph of region" in kept.differs or "selections" in kept.differs, kept.differs


@pytest.mark.parametrize("seed", [*WIDE_SEEDS, *slow(MORE_WIDE_SEEDS)])
def test_random_wide_programs(seed: int, fuzzed: Fuzzed) -> None:
    tally = fuzzed(seed, wide=True)
    assert not tally.differing, f"{tally.differing[0].differs}\n{tally.differing[0].case!r}"
    assert tally.programs == EXAMPLES


def test_quotas_of_wide_programs(fuzzed: Fuzzed) -> None:
    total = program_fuzz.Tally()
    for seed in WIDE_SEEDS:
        total.add(fuzzed(seed, wide=True))
    assert program_fuzz.missed(total, wide=True) == []
    assert total.quotas[program_fuzz.SURFACES] >= len(WIDE_SEEDS)


def test_quotas(fuzzed: Fuzzed) -> None:
    total = program_fuzz.Tally()
    for seed in SEEDS:
        total.add(fuzzed(seed))
    assert program_fuzz.missed(total) == []


@settings(max_examples=30, suppress_health_check=list(HealthCheck))
@given(planned() | wide_programs() | view_programs() | chosen_programs())
def test_a_kept_program_is_the_same(tmp_path_factory: pytest.TempPathFactory, case: Case) -> None:
    path = tmp_path_factory.mktemp("kept") / "program.yaml"
    save(Kept(case, 7, "a line\nand another", ("estimate", "auto")), path)
    again = load(path)
    assert (again.case.program, again.case.schedule, again.seed) == (case.program, case.schedule, 7)
    assert again.surfaces == ("estimate", "auto")
    assert again.case.machine == case.machine
    assert again.differs == "a line\nand another\n"
    for name, tensor in case.tensors.items():
        loaded = again.case.tensors[name]
        assert (loaded.format, loaded.fill, loaded.dtype) == (tensor.format, tensor.fill, tensor.dtype)
        np.testing.assert_array_equal(loaded.coordinates(), tensor.coordinates())
        np.testing.assert_array_equal(loaded.values, tensor.values)


def test_a_seed_draws_the_same_programs() -> None:
    drawn: list[list[str]] = [[], []]

    def note(case: Case, into: list[str]) -> program_fuzz.Checked:
        into.append(repr(case))
        return program_fuzz.Checked(case.schedule, ())

    for into in drawn:
        program_fuzz.run(3, 20, lambda case, into=into: note(case, into))
    assert drawn[0] == drawn[1] and len(drawn[0]) == 20


def test_a_difference_is_made_smaller_and_told() -> None:
    def wrong(case: Case) -> program_fuzz.Checked:
        if len(case.program.einsums) > 1:
            raise Difference("more than one")
        return program_fuzz.Checked(case.schedule, ())

    (kept,) = program_fuzz.run(5, 50, wrong).differing
    assert len(kept.case.program.einsums) == 2 and kept.differs == "more than one" and kept.seed == 5


@pytest.mark.parametrize("fault", ["a union is lowered as an intersection", "streams below a join are not aligned (L5)"])
def test_a_planted_fault_is_found(fault: str) -> None:
    with FAULTS[fault]():
        assert any(program_fuzz.run(seed, program_fuzz.CHUNK, smaller=False).differing for seed in SOON)


@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULTS | WIDE_FAULTS | VIEW_FAULTS)
def test_every_planted_fault_is_found(fault: str, draws: Callable[[int], range]) -> None:
    """Faults that a run does not show are looked for in wide programs, which are asked everything else, too, and faults of offsets,
    selections and the like in programs with views."""
    wide, views = fault in WIDE_FAULTS, fault in VIEW_FAULTS
    with (FAULTS | WIDE_FAULTS | VIEW_FAULTS)[fault]():
        for seed in draws(40):
            tally = program_fuzz.run(seed, program_fuzz.CHUNK, smaller=False, wide=wide, views=views, surfaces=int(wide))
            if tally.differing:
                return
    pytest.fail(f"not found in {len(draws(40))} times {program_fuzz.CHUNK} programs")


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ("a tensor that is seen in other dimensions is turned around", "region"),
        ("the estimate counts one value too many that is written", "estimate counted"),
        ("a critical path leaves its shortest step out", "explain cycles: steps of"),
        ("a fibertree is read with its values turned around", "saved: graph.bin"),
        ("`auto` says that it fuses nothing, whatever it chose", "auto: its schedule"),
    ],
)
def test_a_fault_that_only_wide_programs_show_is_found(fault: str, message: str) -> None:
    with WIDE_FAULTS[fault]():
        tallies = (program_fuzz.run(seed, EXAMPLES, smaller=False, wide=True, surfaces=1) for seed in (1, 0, 3))
        differing = next(tally.differing for tally in tallies if tally.differing)
    assert message in differing[0].differs


def test_what_a_program_may_be_refused_for_is_known() -> None:
    error = FusionError("region `g0` has no legal order: it needs i before k, k before i")
    assert program_fuzz.kind_of(error) == "fusion: region has no legal order"


WANTED = [
    *("Scan", "Range", "Locate", "Join", "Align", "Repeat", "Load", "Alu", "Reduce", "Accumulate", "Drop", "Permute"),
    *("join intersect 2", "join union 2", "join left 2", "join union 3", "align val 1", "align crd 1", "accumulate order 2"),
    *("scan singleton", "scan compressed(nonunique)", "load fill -inf", "load fill 1", "drop value 1", "drop empty 2"),
    *("reduce sum", "reduce max", "reduce min", "reduce prod", "accumulate sum 1", "accumulate max 1"),
]


def test_the_programs_reach_every_primitive(fuzzed: Fuzzed) -> None:
    seen = Counter[str]()
    for seed in SEEDS:
        seen += fuzzed(seed).modes
    assert [mode for mode in WANTED if not seen[mode]] == []


ORACLE = """
tensor x[] f64
tensor c[] f64
a = sin(x) * sin(x)
b = 1 - cos(x) * cos(x)
Y = {}
output Y
"""


@pytest.mark.parametrize(
    ("text", "low", "high"),
    [
        ("a[] == b[]", 1, np.inf),
        ("1 / (a[] - b[])", 1, np.inf),
        ("log(a[] - b[])", 1, np.inf),
        ("where(a[] - b[], 1, 2)", 1, np.inf),
        ("1 / (-(c[] - c[]))", 1, np.inf),
        ("1 / (c[] - c[])", 0, 0),
        ("a[] < 2", 0, 0),
        ("c[] * c[] + 0.5", 0, 0),
        ("a[] - b[]", 1e-17, 1e-14),
        ("exp(a[])", 1e-17, 1e-14),
    ],
)
def test_the_oracle_knows_what_rounding_decides(text: str, low: float, high: float) -> None:
    """a and b are the same number up to rounding, c is exact."""
    found = torch_oracle.evaluate(parse(ORACLE.format(text)), {"x": 0.5, "c": 4.0})["Y"]
    assert low <= found.value.error.item() <= high


X = torch.arange(1.0, 13.0, dtype=torch.float64).reshape(6, 2)
Z = torch.tensor([[3.0, -5.0, 5.0, 0.0], [1.0, 1.0, 1.0, -2.0]], dtype=torch.float64)
S = torch.nn.functional.one_hot(torch.tensor([4, 0, 4]), 6).double()
VIEWS = """
tensor X[6, 2] f64
tensor M[3, 2] f64
tensor N[2, 2] f64
tensor Z[2, 4] f64
tensor S[3, 6] f64
tensor W[3] f64
tensor Y{} f64
Y[i, j] = {}
output Y
"""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("X[2*i + 1, j]", X[1::2]),
        ("X[5 - i, j]", X.flip(0)),
        ("X[3, j] + 0 * X[i, j]", X[3].expand(6, 2)),
        ("X[i - 1, j]", torch.nn.functional.pad(X, (0, 0, 1, 0))),
        ("X[i + 0, j] + X[i - 6, j]", torch.cat((X, X))),
        ("sum(r) W[r] * X[2*i + r - 1, j]", torch.nn.functional.pad(X, (0, 0, 1, 0)).unfold(0, 3, 2).sum(-1)),
        ("max(r) W[r] * X[2*i + r, j]", torch.nn.functional.max_pool1d(X.T[None], 3, 2)[0].T),
        ("sum(k) S[i, k] * X[k, j]", X[[4, 0, 4]]),
        ("sum(k) S[k, i] * M[k, j]", torch.zeros(6, 2, dtype=torch.float64).index_add(0, torch.tensor([4, 0, 4]), X[:3])),
        ("max(k) where(Z[k, i] == 0, -inf, N[k, j])", torch.where(Z.T[..., None] == 0, -torch.inf, X[:2]).amax(1)),
        ("keep(1 over j) X[i, j]", torch.zeros_like(X).scatter(1, X.topk(1).indices, X.topk(1).values)),
        ("keep(2 over j) Z[i, j]", torch.tensor([[0.0, -5.0, 5.0, 0.0], [1.0, 0.0, 0.0, -2.0]])),
    ],
)
def test_the_oracle_reads_views_as_operators_of_pytorch_do(text: str, expected: torch.Tensor) -> None:
    """The indices of the program say where an entry is; the operators of PyTorch on the right are what models call for that."""
    arrays = {"X": X.numpy(), "M": X[:3].numpy(), "N": X[:2].numpy(), "Z": Z.numpy(), "S": S.numpy(), "W": np.ones(3)}
    program = parse(VIEWS.format([*expected.shape], text))
    np.testing.assert_array_equal(torch_oracle.evaluate(program, arrays)["Y"].array, expected.numpy())

"""A program that states its schedule, written as Linalg, is compiled as it was."""

from collections.abc import Callable
from pathlib import Path

import pytest

import fuseflow as ff
from fuseflow.einsum.parse import parse
from fuseflow.errors import FrontendError, FusionError
from fuseflow.lower.schedule_annotations import unstated_sections
from fuseflow.run import scheduled_linalg

TWO_LAYERS = """\
tensor A[8, 8] csr
tensor X[8, 4]
tensor W[4, 4]
T1[i, j] = sum(k) A[i, k] * X[k, j]
T2[i, j] = sum(k) T1[i, k] * W[k, j]
T3[i, j] = relu(T2[i, j])
T4[i, j] = sum(k) A[i, k] * T3[k, j]
output T4
"""
SOFTMAX = """\
tensor A[6, 6] csr
m[i] = max(j) A[i, j]
E[i, j] = exp(A[i, j] - m[i])
S[i] = sum(j) E[i, j]
Y[i, j] = E[i, j] / S[i]
output Y
"""
SCHEDULES = {
    "default": ff.Schedule(),
    "none": ff.Schedule.fuse("none"),
    "full": ff.Schedule.fuse("full"),
    "regions": ff.Schedule.region("first", "T1", "T2").region("layer.two", "T3", "T4").fuse("first", "layer.two"),
    "orders": ff.Schedule.fuse("none").order("T1", "k,j,i").order("T2", "i,j,k").lower(copies=True),
    "a region in an order": ff.Schedule.region("g", "T1", "T2").fuse("g").order("g", "i,j,k,l"),
    "a format": ff.Schedule.fuse("none").format("T1", "csr").format("W", "(dense, dense) order (1, 0)"),
    "an association": ff.Schedule.associate("T2", "A (X W)"),
}


def graphs(compiled: ff.Compiled) -> list[tuple[str, str]]:
    return [(r.name, ",".join(r.fused.order)) for r in compiled.regions] + [("graphs", str(compiled.emit("samml")))]


@pytest.mark.parametrize("schedule", SCHEDULES.values(), ids=SCHEDULES)
def test_regions_orders_and_graphs_are_the_same(schedule: ff.Schedule, tmp_path: Path) -> None:
    compiled = ff.compile(parse(TWO_LAYERS), schedule=schedule)
    again = reread(compiled, tmp_path)
    assert graphs(again) == graphs(compiled)
    assert again.emit("linalg") == compiled.emit("linalg")


@pytest.mark.parametrize("fuse", ["none", "full"])
def test_a_softmax_is_the_same(fuse: str, tmp_path: Path) -> None:
    compiled = ff.compile(parse(SOFTMAX), schedule=ff.Schedule.fuse(fuse))
    assert graphs(reread(compiled, tmp_path)) == graphs(compiled)


def reread(compiled: ff.Compiled, folder: Path, text: str | None = None) -> ff.Compiled:
    file = folder / "m.mlir"
    file.write_text(str(compiled.emit("linalg")) if text is None else text)
    return ff.compile(file)


def test_an_order_in_the_text_is_changed_by_hand(tmp_path: Path) -> None:
    """The maps of an operation that stands alone say its order: with two dimensions exchanged in all of them it runs otherwise."""
    compiled = ff.compile(parse("tensor A[4, 5]\ntensor B[5, 6]\ny[i, j] = sum(k) A[i, k] * B[k, j]\noutput y"))
    text = str(compiled.emit("linalg"))
    order = compiled.regions[0].fused.order
    assert f"affine_map<({', '.join(order)})" in text
    moved = (order[1], order[0], order[2])
    names, kinds = (
        text.replace(f"({', '.join(order)}) ->", f"({', '.join(moved)}) ->"),
        dict.fromkeys("ij", '"parallel"') | {"k": '"reduction"'},
    )
    names = names.replace(f"[{', '.join(kinds[v] for v in order)}]", f"[{', '.join(kinds[v] for v in moved)}]")
    quoted = lambda loops: "[" + ", ".join(f'"{v}"' for v in loops) + "]"  # noqa: E731
    assert reread(compiled, tmp_path, names.replace(quoted(order), quoted(moved))).regions[0].fused.order == moved


def test_an_order_of_a_region_that_its_maps_contradict_is_refused(tmp_path: Path) -> None:
    compiled = ff.compile(parse(TWO_LAYERS), schedule=SCHEDULES["a region in an order"])
    text = str(compiled.emit("linalg"))
    assert 'samml.order = ["i", "j", "k", "l"]' in text
    with pytest.raises(FusionError, match="and region `g` states") as error:
        reread(compiled, tmp_path, text.replace('samml.order = ["i", "j", "k", "l"]', 'samml.order = ["j", "i", "k", "l"]'))
    assert error.value.span is not None


def test_a_region_that_would_come_back_as_another_graph_is_refused_with_its_line(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = ff.compile(parse(TWO_LAYERS, "p.ein"), schedule=ff.Schedule.fuse("none").order("T1", "k,j,i").lower(copies=True))
    monkeypatch.setattr(scheduled_linalg, "with_stated_schedule", lambda program, *_: program)
    with pytest.raises(FrontendError, match="what is read would be compiled to another graph") as error:
        compiled.emit("linalg")
    assert str(error.value.span) == "p.ein:4:1"


@pytest.mark.parametrize("change", [lambda regions: [*regions, regions[-1]], lambda regions: regions[:-1]], ids=["more", "fewer"])
def test_other_numbers_of_regions_are_refused(
    change: Callable[[list[object]], list[object]], monkeypatch: pytest.MonkeyPatch
) -> None:
    compiled = ff.compile(parse(TWO_LAYERS, "p.ein"), schedule=ff.Schedule.fuse("none"))
    lowered = scheduled_linalg.lower_for
    monkeypatch.setattr(scheduled_linalg, "lower_for", lambda *args: (None, change(list(lowered(*args)[1]))))
    with pytest.raises(FrontendError, match="region `T4` has no form in Linalg"):
        compiled.emit("linalg")


def test_what_a_text_does_not_say_is_named() -> None:
    schedule = ff.Schedule.fuse("full").order("full", "i,j").format("A", "csr").par(i=2).lower(locate="never")
    assert set(unstated_sections(schedule)) == {"par", "locate"}
    assert unstated_sections(ff.Schedule.fuse("none")) == ()

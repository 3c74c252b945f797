"""The picture of the README: one GCN cut into regions in three ways, and the cycles that each way takes.

    python evaluation/overview.py --plot docs/overview.svg

The model is `models/gcn.py` on the karate club, the machine the default one; every number is of a simulation.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

import fuseflow as ff

MODEL = Path(__file__).parents[1] / "models" / "gcn.py"
CUTS = {
    "none": "every operator is a region of its own: all intermediates go through memory",
    "layer1": "the operators of layer 1 are one region: its intermediates stay on chip",
    "layerwise": "each layer is one region: layer 2 computes again what it does not store",
}
WIDTH, LEFT, TOP, STEP, ROW = 920, 20, 92, 84, 116
BAR_LEFT, BAR_WIDTH = LEFT + 8 * STEP + 20, 190
INK, FAINT, MEMORY = "#1f2430", "#5b6372", "#b4541a"
COLOURS = {"alone": ("#eef1f6", "#9aa5b8"), "fused": ("#d7ebe2", "#2f7d5b")}


@dataclass(frozen=True, slots=True)
class Box:
    """One region: the operators that it fuses, in the order of the program, and its cycles."""

    operators: tuple[str, ...]
    cycles: int


def operators(einsums: Sequence[str]) -> tuple[str, ...]:
    """The operators of PyTorch that Einsums come from: `layer1.matmul` is `matmul`, all of `log_softmax.max`, ... are `log_softmax`."""
    names = (name.split(".", 1)[1] if name.startswith("layer") else name.split(".", 1)[0] for name in einsums)
    return tuple(dict.fromkeys(names))


def measured(fuse: str) -> list[Box]:
    result = ff.compile(str(MODEL), data="karate", schedule=ff.Schedule.fuse(fuse)).run()
    assert result.check is not None and result.check.passed
    return [Box(operators(region.einsums), region.cycles) for region in result.regions]


def picture(ways: dict[str, list[Box]]) -> str:
    """The picture as SVG: a row for each way of cutting, a box for each region, a bar for the cycles of the whole."""
    height = TOP + ROW * len(ways)
    longest = max(sum(box.cycles for box in boxes) for boxes in ways.values())
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" '
        'font-family="Helvetica, Arial, sans-serif" role="img">',
        "<title>One GCN, cut into regions in three ways, with the cycles that each takes</title>",
        f'<rect width="{WIDTH}" height="{height}" rx="8" fill="#ffffff"/>',
        text(LEFT, 32, "One model, three ways to fuse it", 18, INK, "bold"),
        text(LEFT, 54, "A two-layer GCN on the karate club. A box is a region, which runs as one dataflow graph.", 13, FAINT),
        text(LEFT, 74, "Numbers are cycles. Between two regions, the intermediate goes out to memory and comes back:", 13, FAINT),
        memory_path(LEFT + 582, 76),
        text(BAR_LEFT, 74, "cycles of the whole model", 13, FAINT),
    ]
    for number, (fuse, boxes) in enumerate(ways.items()):
        lines += way(fuse, boxes, TOP + ROW * number, longest)
    return "\n".join([*lines, "</svg>"]) + "\n"


def way(fuse: str, boxes: Sequence[Box], top: int, longest: int) -> Iterator[str]:
    yield text(LEFT, top + 22, f"--fuse {fuse}", 14, INK, "bold", "monospace")
    yield text(LEFT + 16 + 9 * len(f"--fuse {fuse}"), top + 22, CUTS[fuse], 12, FAINT)
    left = LEFT
    for number, box in enumerate(boxes):
        yield from region(box, left, top + 38)
        left += STEP * len(box.operators)
        if number < len(boxes) - 1:
            yield memory_path(left - 12, top + 58)
    total = sum(box.cycles for box in boxes)
    length = round(BAR_WIDTH * total / longest)
    yield f'<rect x="{BAR_LEFT}" y="{top + 44}" width="{length}" height="24" rx="3" fill="{COLOURS["fused"][1]}"/>'
    yield text(BAR_LEFT, top + 86, f"{total:,}", 14, INK, "bold")


def region(box: Box, left: int, top: int) -> Iterator[str]:
    fill, edge = COLOURS["fused" if len(box.operators) > 1 else "alone"]
    width = STEP * len(box.operators) - 12
    yield f'<rect x="{left}" y="{top}" width="{width}" height="40" rx="6" fill="{fill}" stroke="{edge}" stroke-width="1.5"/>'
    for number, name in enumerate(box.operators):
        middle = left + STEP * number + (STEP - 12) // 2
        yield text(middle, top + 24, name.replace("_2", ""), 11, INK, anchor="middle")
        if number:
            yield arrow(left + STEP * number - 11, left + STEP * number - 1, top + 20, edge)
    yield text(left + width // 2, top + 58, f"{box.cycles:,}", 12, FAINT, anchor="middle")


def memory_path(left: int, bottom: int) -> str:
    return f'<path d="M{left} {bottom} h4 v-24 h4 v24 h4" fill="none" stroke="{MEMORY}" stroke-width="1.5"/>'


def arrow(start: int, end: int, y: int, colour: str) -> str:
    return f'<path d="M{start} {y} H{end} m-4 -3 l4 3 l-4 3" fill="none" stroke="{colour}" stroke-width="1.5"/>'


def text(
    x: int, y: int, words: str, size: int, colour: str, weight: str = "normal", family: str = "", anchor: str = "start"
) -> str:
    font = f' font-family="{family}"' if family else ""
    return (
        f'<text x="{x}" y="{y}" font-size="{size}" fill="{colour}" font-weight="{weight}" text-anchor="{anchor}"{font}>'
        f"{escape(words)}</text>"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--plot", type=Path, required=True, metavar="FILE", help="where the SVG is written")
    arguments = parser.parse_args()
    arguments.plot.write_text(picture({fuse: measured(fuse) for fuse in CUTS}), encoding="utf-8")


if __name__ == "__main__":
    main()

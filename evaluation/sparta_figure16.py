"""After Figure 16 of SparTA: a product whose operand has blocks of 32x32 and scattered elements, in one format, and in two parts.

    python evaluation/figures.py sparta_figure16 --run [--only '256/*']     # complete the rows, two minutes in all

A and B are N x N. B has 30, 20 or 10 % of its blocks of 32x32, and 1 % of its elements beside; i is in blocks of 32. A plan with the forms
32x32 and elements, weighed on the machine, finds the two parts. `in sequence` runs them one after the other, as SparTA does. Its speedup
over 32x32 alone is what the paper printed, for kernels of a GPU. `together` runs both at a time, in one statement.

Together has two units for products, and each single format has one. With two lanes 4x4 has two as well, and takes fewer cycles than the two
parts do at 30 and 20 %, and on `rda` with N = 256 at 10 %, too. A unit of 256 multiply-accumulates is as efficient on 4x4 as on 32x32,
which no GPU is.

In `together, bytes` the blocks are `i8` and multiplied by A in `i8`, with the scales of both as a factor. The elements stay `f32`.
At 10 % they take as long as the blocks did, so that nothing is gained on `ideal` with N = 256.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any, cast

from claims import Check, as_published, cell, markdown, published, ratio, together, within
from frame import Data, Figure, Options
from pictures import legend, look
from sparta_products import complete_points, cycles, key_of, operands, planned, product_text
from store import rows

STORE = "sparta_figure16"
SIZES, MACHINES, SHARES = (256, 1024), ("ideal", "rda"), (0.3, 0.2, 0.1)
SINGLE = ("32x32", "elements", "4x4")
WAYS = (*SINGLE, "4x4, two lanes", "in sequence", "together", "together, bytes")
PUBLISHED = {share: published(STORE)[f"{share:.0%}"] for share in SHARES}
"""The speedup over 32x32 alone that the paper prints, by the share of blocks."""
RECORDED = {
    (256, "ideal"): {
        "32x32": (65_776, 65_776, 65_776),
        "elements": (161_401, 112_839, 56_013),
        "4x4": (26_444, 21_404, 15_100),
        "4x4, two lanes": (13_327, 10_807, 7_655),
        "in sequence": (25_494, 20_151, 13_498),
        "together": (19_790, 13_644, 7_001),
    },
    (256, "rda"): {
        "32x32": (66_918, 66_918, 66_918),
        "elements": (178_649, 125_504, 62_979),
        "4x4": (30_390, 25_908, 20_116),
        "together": (24_285, 21_171, 18_803),
    },
    (1024, "ideal"): {
        "32x32": (4_195_600, 4_195_600, 4_195_600),
        "elements": (10_326_219, 7_017_483, 3_677_323),
        "4x4": (1_699_980, 1_344_076, 986_316),
        "in sequence": (1_526_008, 1_141_819, 754_777),
        "together": (1_259_536, 841_744, 419_856),
    },
    (1024, "rda"): {
        "32x32": (4_198_207, 4_198_207, 4_198_207),
        "elements": (11_377_781, 7_748_022, 4_062_815),
        "4x4": (1_857_930, 1_472_415, 1_082_328),
        "together": (1_338_352, 911_809, 514_437),
    },
}
"""Cycles by the shares of blocks, as other code than that of the package recorded them when plans were designed."""


def run(options: Options) -> None:
    """Complete the rows, one line when each point is done."""
    complete_points(STORE, product(SIZES, MACHINES, SHARES, WAYS), measured, options)


def measured(size: int, machine: str, share: float, way: str) -> dict[str, int]:
    a, b = operands(_mask(size, share))
    forms = way.split(",")[:1] if way.startswith(SINGLE) else ("32x32", "elements")
    program, arrays = planned(machine, size, (a, b), forms)
    if way == "in sequence":
        return {"cycles": _in_sequence(machine, size, {**arrays, "A": a, "A1": a})}
    if way == "together, bytes":
        return {"cycles": _in_bytes(machine, size, a, arrays["B1"], arrays["B2"])}
    return {"cycles": cycles(machine, program, arrays, lanes=2 if way.endswith("two lanes") else 1)}


def _mask(size: int, share: float) -> Any:
    """Where B has entries: in this share of the blocks, and in 1 % of all places."""
    import numpy as np

    rng, blocks = np.random.default_rng(0), (size // 32) ** 2
    kept = np.zeros(blocks, dtype=bool)
    kept[rng.permutation(blocks)[: round(share * blocks)]] = True
    return np.kron(kept.reshape(size // 32, -1), np.ones((32, 32), dtype=bool)) | (rng.random((size, size)) < 0.01)


def _in_sequence(machine: str, size: int, arrays: dict[str, Any]) -> int:
    from fuseflow.einsum.parse import parse

    blocks = parse(product_text("A", "dense block 32x32", "B1", "csr block 32x1", size))
    elements = parse(product_text("A1", "dense block 32x1", "B2", "csr", size))
    return sum(cycles(machine, part, {t.name: arrays[t.name] for t in part.inputs}) for part in (blocks, elements))


def _in_bytes(machine: str, size: int, a: Any, blocks: Any, elements: Any) -> int:
    """The cycles of both parts, with the blocks and what they are multiplied by in integers."""
    import numpy as np

    from fuseflow.einsum.parse import parse
    from fuseflow.plan.quantization import Scale
    from fuseflow.tensors import Format, pack

    scales = [Scale.of(float(np.abs(array).max()), "i8") for array in (a, blocks)]
    narrow = [scale.integers(pack(x, Format.dense(2))).to_dense() for scale, x in zip(scales, (a, blocks), strict=True)]
    program = parse(f"""
    tensor A[{size}, {size}] dense block 32x32 i8
    tensor B1[{size}, {size}] csr block 32x1 i8
    tensor A1[{size}, {size}] dense block 32x1
    tensor B2[{size}, {size}] csr
    Y[i, j] = (sum(k) A[i, k] * B1[k, j]) * {scales[0].step * scales[1].step} + (sum(l) A1[i, l] * B2[l, j])
    output Y
    """)
    return cycles(machine, program, {"A": narrow[0], "B1": narrow[1], "A1": a, "B2": elements})


def collect() -> Data:
    return {key: row["cycles"] for key, row in sorted(rows(STORE).items())}


def _speedup(data: Data, size: int, machine: str, share: float, way: str) -> float | None:
    """How many times fewer cycles a way takes than 32x32 alone."""
    return ratio(data.get(key_of(size, machine, share, "32x32")), data.get(key_of(size, machine, share, way)))


def table(data: Data) -> str:
    heads = ["N", "machine", "blocks", *WAYS, "32x32 / in sequence", "published", "32x32 / together"]
    lines = []
    for size, machine, share in product(SIZES, MACHINES, SHARES):
        cycles = [cell(data.get(key_of(size, machine, share, way)), ",") for way in WAYS]
        sequence, both = (cell(_speedup(data, size, machine, share, way), ".1f") for way in ("in sequence", "together"))
        lines.append([str(size), f"`{machine}`", f"{share:.0%}", *cycles, sequence, f"{PUBLISHED[share]}", both])
    return markdown(heads, lines, 2)


def checks(data: Data) -> list[Check]:
    return [
        together(
            "32x32 over in sequence, 1024 on `ideal`",
            (as_published(f"{s:.0%}", _speedup(data, 1024, "ideal", s, "in sequence"), PUBLISHED[s]) for s in SHARES),
        ),
        *(_recorded(data, size, machine) for size, machine in RECORDED),
        *(
            together(f"two parts together take fewer cycles than each single format, {size} on `{machine}`", best)
            for size, machine in RECORDED
            for best in [[_best(data, size, machine, share, SINGLE) for share in SHARES]]
        ),
        *(
            together(f"and than 4x4 on two units, as they have, {size} on `{machine}`", best)
            for size, machine in RECORDED
            for best in [[_best(data, size, machine, share, ("4x4, two lanes",)) for share in SHARES]]
        ),
        *(
            together(f"blocks of bytes take fewer cycles than blocks of floats, {size} on `{machine}`", narrow)
            for size, machine in RECORDED
            for narrow in [[_bytes(data, size, machine, share) for share in SHARES[:2]]]
        ),
    ]


def _recorded(data: Data, size: int, machine: str) -> Check:
    """Whether all cycles are near those of the design."""
    before = RECORDED[size, machine]
    cells = [(way, share, cycles) for way in before for share, cycles in zip(SHARES, before[way], strict=True)]
    shares = [ratio(data.get(key_of(size, machine, share, way)), cycles) for way, share, cycles in cells]
    found = [share for share in shares if share is not None]
    what = f"cycles within 5 % of the {len(cells)} recorded, {size} on `{machine}`"
    if len(found) < len(shares):
        return Check(what, "not run", None)
    return within(what, max((share - 1 for share in found), key=abs) * 100, -5, 5)


def _best(data: Data, size: int, machine: str, share: float, ways: Sequence[str]) -> Check:
    """Whether both parts together take fewer cycles than each of some other ways."""
    numbers = [data.get(key_of(size, machine, share, way)) for way in (*ways, "together")]
    if None in numbers:
        return Check(f"{share:.0%}", "not run", None)
    *single, both = cast("list[int]", numbers)
    return Check(f"{share:.0%}", f"{both:,} < {min(single):,}", both < min(single))


def _bytes(data: Data, size: int, machine: str, share: float) -> Check:
    narrow, whole = (data.get(key_of(size, machine, share, way)) for way in ("together, bytes", "together"))
    if narrow is None or whole is None:
        return Check(f"{share:.0%}", "not run", None)
    return Check(f"{share:.0%}", f"{narrow:,} < {whole:,}", narrow < whole)


def draw(data: Data, figure: Any) -> None:
    for plot, (size, machine) in zip(figure.subplots(1, 4), product(SIZES, MACHINES), strict=True):
        for n, way in enumerate(WAYS):
            there = [(f"{s:.0%}", data[key_of(size, machine, s, way)]) for s in SHARES if key_of(size, machine, s, way) in data]
            if there:
                plot.plot(*zip(*there, strict=True), label=way, **look(n, len(WAYS)))
        plot.set(xlabel="blocks of 32x32 kept", ylabel="cycles", yscale="log", title=f"N = {size}, {machine}")
    legend(figure)


FIGURE = Figure(STORE, "After Figure 16 of SparTA: two parts", (STORE,), collect, table, checks, draw, run, size=(16, 4))

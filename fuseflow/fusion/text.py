"""The text forms of a fused region and of its partial-order graph."""

from __future__ import annotations

from fuseflow.einsum import text as einsum_text
from fuseflow.fusion.region import FusedRegion
from fuseflow.fusion.region_program import as_program


def show(region: FusedRegion) -> str:
    """Return the region as Einsums in its own indices, with its order and the reductions merged with an index of their consumer."""
    lines = [f"# region {region.name}: {', '.join(region.einsums)}"]
    lines += [f"# order {', '.join(region.order)}"] if region.order else []
    lines += [f"# {reduction} is complete before loop {index}" for reduction, index in region.merges]
    return "\n".join(lines) + "\n" + einsum_text.show(as_program(region))


def show_order(region: FusedRegion) -> str:
    """Return the partial-order graph: the meaning of every index, every edge with its reason, and the chosen order."""
    lines = [f"region {region.name}", f"order {','.join(region.order)}" if region.order else "order not chosen"]
    for v in region.indices:
        uses = ", ".join(str(view) for view in region.views if v in view.indices)
        blocks = f" in blocks of {region.blocks[v]}" if v in region.blocks else ""
        lines.append(f"  {v} = 0..{region.sizes[v] - 1}{blocks}  in {uses or 'no stored tensor'}")
    lines += [f"  {u} before {v}: {why}" for u, v, why in order_edges(region)] or ["  any order"]
    return "\n".join(lines) + "\n"


def order_edges(region: FusedRegion) -> list[tuple[str, str, str]]:
    """Return the partial-order graph as (above, below, why), in the order of the region's indices."""
    position = {v: p for p, v in enumerate(region.indices)}
    edges: list[tuple[str, str, str]] = list(region.constraints.edges(data="why"))
    return sorted(edges, key=lambda e: (position[e[0]], position[e[1]]))

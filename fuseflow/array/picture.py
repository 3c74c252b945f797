"""Pictures of placed regions: an SVG with the tiles of an array by kind, the routes between them, and the longest path.

Coordinates are those of sites, and a factor makes tiles of them that can be seen. Where all of a region would take more than `MOST_BYTES`,
the picture leaves out one part after the other, in the order of `PARTS`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from html import escape

from fuseflow.array.grid import Grid, Site
from fuseflow.array.placed_region import PlacedRegion
from fuseflow.array.routing import Link
from fuseflow.errors import visible

MOST_BYTES = 200_000
"""The most bytes of a picture."""
PARTS = ("free tiles", "streams of links", "nodes of tiles", "links")
"""What a picture may lack, the first one first."""
COLORS = ("#0072b2", "#e69f00", "#009e73", "#56b4e9", "#d55e00", "#b8a800", "#8c6bb1", "#7f7f7f")
"""The colors of kinds, in their order; people who see few colors can tell them apart."""
LEAST_WIDTH, MOST_PITCH, LEAST_PITCH = 720, 32, 4
"""The least width of a picture, and the most and least of a tile, in pixels."""
STYLE = """
svg{background:#fff;color:#222;font:13px sans-serif;--free:.14;--long:#d6007f}
@media(prefers-color-scheme:dark){svg{background:#15171c;color:#ddd;--free:.25;--long:#ff4fb4}}
text{fill:currentColor}.tile{stroke-width:.66;stroke-linecap:square;fill:none}.free{stroke-opacity:var(--free)}
.link{stroke:currentColor;stroke-opacity:.6;fill:none}.long{stroke:var(--long);fill:none;stroke-width:.13;stroke-linejoin:round}
text.long,circle.long{fill:var(--long);stroke:none}.link:hover,.tile:hover{stroke-opacity:1;stroke:var(--long)}
"""


def picture(placed: PlacedRegion, busy: Mapping[str, float] | None = None) -> str:
    """Return the SVG of a placed region, of at most `MOST_BYTES` bytes. `busy` has the share of a run in which a node works, by its name:
    its tiles are as opaque."""
    for left_out in range(len(PARTS) + 1):
        text = "".join(_pieces(placed, busy or {}, PARTS[left_out:]))
        if len(text.encode()) <= MOST_BYTES:
            break
    return text


def _pieces(placed: PlacedRegion, busy: Mapping[str, float], parts: Collection[str]) -> Iterator[str]:
    grid, name = Grid.of(placed.array), _text(placed.graph.name)
    pitch = max(LEAST_PITCH, min(MOST_PITCH, 1024 // grid.columns))
    width, height = max(LEAST_WIDTH, grid.columns * pitch + 16), grid.rows * pitch + 76
    colors = "".join(f".k{k}{{stroke:{COLORS[k % len(COLORS)]}}}" for k, _ in enumerate(placed.array.kinds))
    yield f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img">'
    yield f"<title>{name} on {_text(placed.array.name)}</title><style>{STYLE}{colors}</style>\n"
    yield from _legend(placed)
    yield f'<g transform="translate({8 + pitch / 2:g} {68 + pitch / 2:g}) scale({pitch})">\n'
    if "free tiles" in parts:
        yield from _free_tiles(placed, grid)
    yield from _used_tiles(placed, busy, "nodes of tiles" in parts)
    if "links" in parts:
        yield from _links(placed, "streams of links" in parts)
    yield from _longest(placed)
    yield "</g></svg>\n"


def _legend(placed: PlacedRegion) -> Iterator[str]:
    """Yield two lines of text: the tiles of each kind, and the lengths with the longest path."""
    x, have = 8, placed.array.available
    for k, kind in enumerate(placed.array.kinds):
        label = f"{kind} {placed.tiles[kind]} of {have[kind]}"
        yield f'<path class="tile k{k}" style="stroke-width:12" d="M{x + 6} 18h0"/><text x="{x + 18}" y="22">{label}</text>\n'
        x += 34 + 8 * len(label)
    routing = placed.routing
    lengths = f"wirelength {placed.placement.wirelength}, at most {routing.tracks} nets on a link of {placed.array.tracks} tracks"
    yield f'<text x="8" y="42">{lengths}</text>\n'
    yield f'<text class="long" x="8" y="60">{_longest_text(placed)}</text>\n'


def _longest_text(placed: PlacedRegion) -> str:
    """Return a line about the longest path."""
    longest, cells = placed.longest, placed.netlist.cells
    if longest is None:
        return "no nets"
    ends = f"{cells[longest.net.source].name} (ring) to {cells[longest.sink].name} (dot)"
    return _text(f"longest path: {longest.hops} hops of {longest.net.name(cells)}, from {ends}")


def _free_tiles(placed: PlacedRegion, grid: Grid) -> Iterator[str]:
    taken = set(placed.placement.sites)
    for k, kind in enumerate(placed.array.kinds):
        yield _tiles(f"tile free k{k}", (site for site in grid.sites[kind] if site not in taken))


def _used_tiles(placed: PlacedRegion, busy: Mapping[str, float], named: bool) -> Iterator[str]:
    """Yield the tiles of cells, each by itself with its node, or those of a kind together."""
    number = {kind: k for k, kind in enumerate(placed.array.kinds)}
    cells = list(zip(placed.netlist.cells, placed.placement.sites, strict=True))
    if not named:
        for kind, k in number.items():
            yield _tiles(f"tile k{k}", (site for cell, site in cells if cell.kind == kind))
        return
    for cell, site in cells:
        share = busy.get(cell.name.partition("@")[0])
        about = f"{cell.name} ({cell.kind})" + ("" if share is None else f", busy {share:.0%}")
        style = "" if share is None else f' style="stroke-opacity:{0.4 + 0.6 * min(1.0, max(0.0, share)):.2f}"'
        yield _tiles(f"tile k{number[cell.kind]}", [site], about, style)


def _tiles(kind: str, sites: Iterable[Site], title: str = "", style: str = "") -> str:
    path = "".join(f"M{x} {y}h0" for x, y in sites)
    return _path(kind, path, title, style) if path else ""


def _links(placed: PlacedRegion, named: bool) -> Iterator[str]:
    """Yield the links, as wide as the tracks that they use: each by itself with its streams, or those of a width together."""
    tracks, use = placed.array.tracks, placed.routing.use
    if not named:
        of_width: dict[int, list[Link]] = defaultdict(list)
        for link, count in use.items():
            of_width[count].append(link)
        for count, links in sorted(of_width.items()):
            yield _path("link", "".join(map(_segment, links)), "", _width(count, tracks))
        return
    streams: dict[Link, list[str]] = defaultdict(list)
    for net, route in zip(placed.netlist.nets, placed.routing.routes, strict=True):
        for link in route.links:
            streams[link].append(net.name(placed.netlist.cells))
    for link, names in streams.items():
        title = f"{', '.join(names)} ({len(names)} of {tracks} tracks)"
        yield _path("link", _segment(link), title, _width(len(names), tracks))


def _width(count: int, tracks: int) -> str:
    return f' style="stroke-width:{0.05 + 0.25 * count / tracks:.2f}"'


def _segment(link: Link) -> str:
    """Return the path of a link, a little to the right of the way, so that two ways between tiles are two lines."""
    (x, y), (x1, y1) = link
    across = 0.16
    return f"M{x + across * (y - y1):g} {y + across * (x1 - x):g}{f'h{x1 - x}' if y == y1 else f'v{y1 - y}'}"


def _longest(placed: PlacedRegion) -> Iterator[str]:
    """Yield the longest path, with a ring at its source and a dot at its sink."""
    if placed.longest is None:
        return
    (x, y), *rest = placed.longest.sites
    title = f"<title>{_longest_text(placed)}</title>"
    yield f'<path class="long" d="M{x} {y}L{" ".join(f"{a} {b}" for a, b in rest)}">{title}</path>\n' if rest else ""
    yield f'<circle style="fill:none;stroke:var(--long);stroke-width:.13" cx="{x}" cy="{y}" r=".4"/>\n'
    end_x, end_y = placed.longest.sites[-1]
    yield f'<circle class="long" cx="{end_x}" cy="{end_y}" r=".24"/>\n'


def _path(kind: str, path: str, title: str, style: str) -> str:
    inside = f"<title>{_text(title)}</title>" if title else ""
    return f'<path class="{kind}"{style} d="{path}">{inside}</path>\n'


def _text(text: str) -> str:
    return escape(visible(text))

"""Productions that make and change loops: scans, joins, repeats, levels made of others."""

from __future__ import annotations

from collections.abc import Collection

from fuseflow.samml import nodes as n
from fuseflow.samml.stream_alignment import StreamShape

from .builder import Builder, Known
from .data import Source
from .values import any_source, at_values, load_of, sequential


def scan(b: Builder) -> bool:
    ref = b.pick(lambda k: scannable(b, k))
    return ref is not None and bool(scan_of(b, ref))


def spine(b: Builder) -> bool:
    """All levels that are left of a tensor, and its values."""
    ref = b.pick(lambda k: scannable(b, k))
    while ref is not None and scannable(b, ref):
        found = scan_of(b, ref)
        if not found:
            return False
        ref = found[1]
    if ref is None or ref.position is None:
        return False
    load_of(b, ref, b.sources[ref.position.tensor])
    return True


def meet(b: Builder) -> bool:
    """Two or three tensors iterated together: their references stand side by side, their fibers are joined."""
    first = b.pick(lambda k: scannable(b, k))
    if first is None:
        return False
    refs = [first, *(k for k in b.at[first.shape] if scannable(b, k) and k.position != first.position)]
    if first.shape.parent is None:
        refs += [b.root, b.root]
    elif (outside := b.pick(lambda k: scannable(b, k), b.at.get(first.shape.parent, ()))) and b.fits(b.count[first.shape]):
        refs += b.add(n.Repeat, [outside, first])
    sides = list[list[Known]]()
    for ref in refs[: b.rng.choice((2, 2, 3))]:
        sides.append(scan_of(b, ref, {side[0].shape.origin[1] for side in sides}))
        if not sides[-1]:
            return False
    kind = b.rng.choice(("union", "union", "intersect", "left"))
    return _join(b, kind, [side[0].shape for side in sides], [side[1:] for side in sides])


def range_(b: Builder) -> bool:
    ref, size = b.pick(lambda k: k.kind == "ref", nullable=0.3), b.size()
    if ref is None or not b.fits(b.count[ref.shape] * size):
        return False
    b.add(n.Range, [ref], size, made=[(size, b.count[ref.shape] * size)])
    return True


def locate_outermost(b: Builder) -> bool:
    source = any_source(b, lambda s: bool(s.decl.shape) and s.decl.format.levels[0].full)
    crd = source and b.pick(lambda k: k.bound is not None and k.bound <= source.size(0))
    if not source or not crd:
        return False
    b.add(n.Locate, [crd], source.decl.name, 0)
    return True


def locate(b: Builder) -> bool:
    """Coordinates beside references, or below them: then these are repeated first."""
    ref = b.pick(lambda k: scannable(b, k))
    if ref is None or ref.position is None:
        return False
    level = ref.position.level

    def fits(s: Source) -> bool:
        return len(s.decl.shape) > level and s.decl.format.levels[level].full

    source = b.sources[ref.position.tensor] if ref.position.tensor else any_source(b, fits)
    if source is None or not fits(source):
        return False
    size = source.size(level)
    outer = b.crd(ref.shape.parent)
    if outer is not None and b.bound[outer.shape] <= size and b.chance(0.4):
        repeated = b.add(
            n.Repeat, [outer, ref], extra=[(outer.bound, None)]
        )  # the coordinates of the loop around, now of kind ref
        b.add(n.Locate, [*repeated, ref], source.decl.name, level)
        return True
    near = [*b.at[ref.shape], *(k for shape in b.below.get(ref.shape, ()) for k in b.at[shape])]
    crd = b.pick(lambda k: k.bound is not None and k.bound <= size, near)
    if crd is None or not b.fits(b.count[crd.shape]):
        return False
    if crd.shape is not ref.shape:
        (ref,) = b.add(n.Repeat, [ref, crd])
    b.add(n.Locate, [crd, ref], source.decl.name, level)
    return True


def locate_absent(b: Builder) -> bool:
    """Coordinates of the loop around that a join may hide, alone or beside references to the root, the parents of an outermost level."""
    crd = b.pick(lambda k: k.kind == "crd" and b.crd(k.shape.parent))
    around = crd and b.crd(crd.shape.parent)
    if not crd or not around or not b.fits(2 * b.count[crd.shape]):
        return False
    bound = b.bound[around.shape]
    source = any_source(b, lambda s: bool(s.decl.shape) and s.decl.format.levels[0].full and bound <= s.size(0))
    if source is None:
        return False
    repeated = b.add(n.Repeat, [around, crd], extra=[(bound, None)])
    other = b.rng.choice(b.below[around.shape])
    if not _join(b, b.rng.choice(("union", "left")), [other, crd.shape], [[], repeated]):
        return False
    hidden = b.pool[-1]
    chain = b.chain(hidden.shape, hidden.depth) if b.chance(0.6) and b.fits(hidden.depth * b.count[hidden.shape]) else None
    ref = b.root
    for signal in chain or ():
        (ref,) = b.add(n.Repeat, [ref, signal])
    b.add(n.Locate, [hidden, ref] if chain else [hidden], source.decl.name, 0)
    return True


def join(b: Builder) -> bool:
    """One to four sides below one stream, each with up to three payloads: any that are aligned with its coordinates."""
    if not b.below:
        return False
    weights = [4.0 ** len(sides) for sides in b.below.values()]
    (below,) = b.rng.choices(list(b.below.values()), weights)
    count = b.rng.choices((1, 2, 3, 4), (1, 12, 4, 3))[0]
    sides = b.rng.sample(below, min(count, len(below)))
    sides += b.rng.choices(below, k=count - len(sides))
    payloads = []
    for side in sides:
        fitting = [k for k in b.at[side] if k.kind != "crd"]
        payloads.append(b.rng.choices(fitting, k=b.rng.choices((0, 1, 2, 3), (2, 5, 3, 1))[0]) if fitting else [])
    return _join(b, b.rng.choice(("intersect", "union", "union", "left")), sides, payloads)


def _join(b: Builder, kind: str, sides: list[StreamShape], payloads: list[list[Known]]) -> bool:
    bounds, counts = [b.bound[s] for s in sides], [b.count[s] for s in sides]
    above = sides[0].parent
    assert above is not None
    match kind:
        case "intersect":
            bound, count = min(bounds), min(counts)
        case "union":
            bound, count = max(bounds), min(sum(counts), max(bounds) * b.count[above])
        case _:
            bound, count = bounds[0], counts[0]
    if not b.fits(count * (1 + sum(map(len, payloads)))):
        return False
    inputs: list[Known] = []
    for side, carried in zip(sides, payloads, strict=True):
        crd = b.crd(side)
        assert crd is not None
        inputs += [crd, *carried]
    extra = [(None, None), *((k.bound, k.limit) for carried in payloads for k in carried)]
    b.add(n.Join, inputs, kind, tuple(map(len, payloads)), made=[(bound, count)], extra=extra)
    return True


def align(b: Builder) -> bool:
    """A stream, and the coordinates that it stands at, carried to other coordinates of a level above it."""
    values = b.chance(0.5)  # seldom else: most streams are of references
    x = b.pick(lambda k: k.depth >= 2 and (k.kind == "val" or not values), nullable=0.4)
    if x is None:
        return False
    levels = b.rng.randint(1, x.depth - 1)
    old = b.crd(x.shape.ancestor(levels))
    new = old and old.shape.parent and b.crd(b.rng.choice(b.below[old.shape.parent]))
    if not old or not new:
        return False
    ratio = b.count[new.shape] / max(b.count[old.shape], 1.0)
    carried = [x]
    at: StreamShape | None = x.shape
    while at is not old.shape and at is not None:
        carried += [crd] if (crd := b.crd(at)) else []
        at = at.parent
    if not b.fits(len(carried) * b.count[x.shape] * max(ratio, 1.0)):
        return False
    for k in reversed(carried):  # outermost first: a shape hangs below one that is known
        made = [(b.bound.get(k.shape), b.count[k.shape] * ratio)]
        b.add(n.Align, [old, new, k], made=made, extra=[(k.bound, k.limit)])
    return True


def repeat(b: Builder) -> bool:
    """Any stream below another of the pool is a signal, `N`s count too."""
    signal = b.pick(lambda k: k.shape.parent in b.at)
    if signal is None or signal.shape.parent is None or not b.fits(b.count[signal.shape]):
        return False
    x = b.pick(lambda k: k.kind == "crd" or b.chance(0.7), b.at[signal.shape.parent])
    return x is not None and bool(b.add(n.Repeat, [x, signal], extra=[(x.bound, x.limit)]))


def spread(b: Builder) -> bool:
    """One stream repeated in every loop below it on the way to another."""
    deep = b.pick(lambda k: k.depth >= 2)
    chain = b.chain(deep.shape, b.rng.randint(2, deep.depth)) if deep else None
    if not chain or not b.fits(2 * b.count[chain[-1].shape]):
        return False
    x = b.pick(lambda k: True, b.at.get(chain[0].shape.parent or chain[0].shape, ()))
    for signal in chain if x else ():
        (x,) = b.add(n.Repeat, [x, signal], extra=[(x.bound, x.limit)])  # type: ignore[list-item, union-attr]
    return x is not None


def tower(b: Builder) -> bool:
    """Many loops of one or two coordinates: stops of high levels."""
    ref = b.pick(lambda k: k.kind == "ref" and k.depth < 4)
    if ref is None:
        return False
    for _ in range(b.rng.randint(5, 13)):
        size = b.rng.choice((1, 1, 1, 1, 2))
        count = b.count[ref.shape] * size
        if not b.fits(4 * count):
            break
        (crd,) = b.add(n.Range, [ref], size, made=[(size, count)])
        (ref,) = b.add(n.Repeat, [ref, crd], extra=[(ref.bound, None)])
    return True


def flatten(b: Builder) -> bool:
    inner = b.pick(lambda k: k.kind == "crd" and k.depth >= 2 and b.bound[k.shape] > 0)
    outer = inner and b.crd(inner.shape.parent)
    if not inner or not outer:
        return False
    size = b.bound[inner.shape] + b.rng.choice((0, 0, 2))
    b.add(n.Flatten, [outer, inner], size, made=[(b.bound[outer.shape] * size, b.count[inner.shape])])
    return True


def split(b: Builder) -> bool:
    crd = b.pick(lambda k: k.kind == "crd")
    if crd is None:
        return False
    size, bound, count = b.rng.randint(1, 4), b.bound[crd.shape], b.count[crd.shape]
    b.add(n.SplitLevel, [crd], size, made=[(-(-bound // size), count / min(size, 2)), (min(size, bound), count)])
    return True


def scannable(b: Builder, k: Known) -> bool:
    return k.position is not None and not at_values(b, k)


def scan_of(b: Builder, ref: Known, others: Collection[object] = ()) -> list[Known]:
    """Scan the level that references index; nothing if it is too large. Of the root's, that of a tensor not among `others`."""
    assert ref.position is not None
    inside = ref.position.tensor
    source = b.sources[inside] if inside else any_source(b, lambda s: bool(s.decl.shape) and s.decl.name not in others)
    if source is None:
        return []
    level = ref.position.level
    count = b.count[ref.shape] * source.fiber(level)
    made = [(source.size(level), count)]
    return b.add(n.Scan, [ref], source.decl.name, level, sequential(b, ref), made=made) if b.fits(count) else []

"""The rules of counted streams: which lists each primitive makes from the lists of its inputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import assert_never

import numpy as np

from fuseflow.estimate.counted.accumulator_unions import union_fibers
from fuseflow.estimate.counted.deduplication import distinct_tuples, group_positions
from fuseflow.estimate.counted.fork_merge import fork_nest, merge_nests
from fuseflow.estimate.counted.matching import merge_fibers
from fuseflow.estimate.counted.memo import CountMemo, Uncountable
from fuseflow.estimate.counted.nest_refinement import ElementMap, NumberColumns, apply_map, common_refinement, map_numbers
from fuseflow.estimate.counted.patterns import Pattern, Piece, outermost_level, scanned_fibers, without_empty_lists
from fuseflow.estimate.counted.stream_trie import (
    EMPTY,
    CountedStream,
    ElementCounts,
    ElementNumbers,
    FiberLevel,
    FiberNest,
    Ints,
    PerFiber,
    below_links,
    by_element,
    full_level,
    normalize_labels,
    take,
)
from fuseflow.samml import nodes as n


@dataclass(frozen=True, slots=True)
class NodeStreams:
    """The streams that a node makes, its comparisons (`steps`) if it merges, and how many coordinates it reads if it scans or
    keeps a level."""

    streams: tuple[CountedStream, ...]
    steps: ElementCounts | None = None
    read: int = 0


@dataclass(frozen=True, slots=True)
class StreamRules:
    """The rules for the streams of a graph.

    `patterns` has the patterns of the tensors that it reads, and `types` the types of its streams. `wanted` are the streams of
    coordinates whose values are needed (`wanted_coordinates`). With a `piece`, the outermost levels have only the coordinates
    from its first number up to but without its second one.
    """

    memo: CountMemo
    patterns: Mapping[str, Pattern]
    types: Mapping[n.Port, n.StreamType]
    wanted: frozenset[n.Port]
    piece: Piece | None = None

    def make(self, node: n.Primitive, inputs: Sequence[CountedStream]) -> NodeStreams:
        """Count the outputs of a node. Raises `Uncountable` if that takes too many elements, or if a tensor has no pattern."""
        match node:
            case n.Root():
                return NodeStreams((CountedStream(),))
            case n.Scan():
                return self._scan(node, inputs[0])
            case n.Range():
                return NodeStreams((self._range(node, inputs[0]),))
            case n.Locate():
                return self._locate(node, inputs)
            case n.Join():
                return self._join(node, inputs)
            case n.Align():
                return self._align(inputs)
            case n.Repeat():
                return NodeStreams((self._repeat(node, inputs),))
            case n.Pointwise():
                return NodeStreams((CountedStream(min(inputs, key=_distinct_fibers).nest),))
            case n.Reduce():
                assert inputs[0].nest is not None
                return NodeStreams((CountedStream(inputs[0].nest.above),))
            case n.Accumulate():
                return NodeStreams(self._accumulate(node, inputs))
            case n.Permute():
                return NodeStreams(self._permute(node, inputs))
            case n.Drop():
                return NodeStreams(self.memo.once("drop", _memo_key(inputs), lambda: self._drop(inputs)))
            case n.Select():
                return NodeStreams(self._select(node, inputs))
            case n.Flatten():
                return NodeStreams(
                    (self.memo.once(("flatten", node.size), _memo_key(inputs), lambda: self._flatten(node, inputs[1])),)
                )
            case n.SplitLevel():
                return NodeStreams(self.memo.once(("split", node.size), _memo_key(inputs), lambda: self._split(node, inputs[0])))
            case n.Fork():
                return NodeStreams(self._fork(node, inputs[0]))
            case n.Link():
                return NodeStreams((inputs[0],))
            case n.Merge():
                return NodeStreams((self._merge(node, inputs),))
            case n.TensorWriter():
                return NodeStreams(())
            case unknown:
                assert_never(unknown)

    def _pattern(self, tensor: str) -> Pattern:
        if tensor not in self.patterns:
            raise Uncountable
        return self.patterns[tensor]

    def _together(self, *streams: CountedStream) -> tuple[FiberNest | None, tuple[ElementMap, ...]]:
        return common_refinement(self.memo, [stream.nest for stream in streams])

    def _below(self, ref: CountedStream, labels: ElementNumbers | None, level: FiberLevel) -> FiberNest:
        """Return a nest one level deeper than `ref`: below each reference is the fiber of `level` that its label names."""

        def build() -> FiberNest:
            return FiberNest(ref.nest, _zeros(ref.nest) if labels is None else labels, level)

        return self.memo.once("scan", (ref.nest, labels, level), build)

    def _scan(self, node: n.Scan, ref: CountedStream) -> NodeStreams:
        fibers = scanned_fibers(self.memo, ref, self._pattern(node.tensor), node.level, self.piece)
        nest, words = self._below(ref, fibers.labels, fibers.level), fibers.words
        read = nest.elements if words is None else int(nest.times @ words)
        return NodeStreams((CountedStream(nest), CountedStream(nest, fibers.below)), read=read)

    def _range(self, node: n.Range, ref: CountedStream) -> CountedStream:
        """Count a range. It emits all coordinates below an `N`, too."""
        level = full_level(node.size)
        if ref.nest is None:
            level = self.memo.once(("outermost", node.size), (), lambda: outermost_level(level, self.piece))
        return CountedStream(self._below(ref, None, level))

    def _locate(self, node: n.Locate, inputs: Sequence[CountedStream]) -> NodeStreams:
        pattern = self._pattern(node.tensor)
        level, below = pattern.levels[node.level], pattern.below[node.level]
        located = self.memo.once("locate", (below, level, *_memo_key(inputs)), lambda: self._located(node, inputs, level, below))
        reads = node.level == 0 and (self.piece is None or self.piece[0] == 0)  # a level that is kept is read by the first piece
        return NodeStreams((located,), read=level.elements if reads else 0)

    def _located(self, node: n.Locate, inputs: Sequence[CountedStream], level: FiberLevel, below: Ints | None) -> CountedStream:
        nest, maps = self._together(*inputs)
        labels = [None if s.labels is None else map_numbers(s.labels, map) for s, map in zip(inputs, maps, strict=True)]
        is_decided = below is not None or not level.complete
        if not is_decided and all(each is None for each in labels):
            return CountedStream(nest)
        zeros = _zeros(nest)
        crds = map_numbers(self._values(node.inputs[0], inputs[0]), maps[0]) if is_decided else zeros
        numbers = NumberColumns.of([crds, *(zeros if each is None else each for each in labels)])
        crd, *of_labels = numbers.columns
        absent = np.logical_or.reduce([label < 0 for label in of_labels])
        fibers_below = np.zeros(len(crd), dtype=np.int64)
        if is_decided:
            at = np.where(absent, EMPTY, level.find(of_labels[1] if len(inputs) == 2 else np.zeros_like(crd), crd))
            fibers_below = np.minimum(at, 0) if below is None else take(below, at)
        return CountedStream(nest, normalize_labels(numbers.numbers(np.where(absent, EMPTY, fibers_below))))

    def _values(self, port: n.Port, stream: CountedStream) -> ElementNumbers:
        """Return the coordinates on a stream: the ones in its lists, or its labels if it repeats coordinates."""
        if self.types[port].kind == "crd":
            assert stream.nest is not None
            return stream.nest.level.crd
        return _zeros(stream.nest) if stream.labels is None else stream.labels

    def _repeat(self, node: n.Repeat, inputs: Sequence[CountedStream]) -> CountedStream:
        x, signal = inputs
        assert signal.nest is not None
        labels = self._values(node.inputs[0], x) if node.inputs[0] in self.wanted else x.labels
        if labels is None:
            return CountedStream(signal.nest)
        nest = signal.nest
        return self.memo.once("repeat", (x.nest, labels, nest), lambda: self._labelled(x.nest, labels, nest))

    def _labelled(self, x: FiberNest | None, labels: ElementNumbers, signal: FiberNest) -> CountedStream:
        """Return the lists of the signal, distinguished by the label of the element that is repeated in them."""
        above, (from_x, from_signal) = common_refinement(self.memo, [x, signal.above])
        numbers = NumberColumns.of([map_numbers(labels, from_x), map_numbers(signal.links, from_signal)])
        (values, fibers), which = distinct_tuples(numbers.columns)
        self.memo.afford(int(take(signal.level.lengths, fibers, 0).sum()))
        is_whole = len(fibers) == signal.level.fibers and (fibers == np.arange(len(fibers))).all()
        level = signal.level if is_whole else signal.level.copies(fibers)
        nest = (
            signal
            if is_whole and above is signal.above and from_signal is None
            else FiberNest(above, numbers.numbers(which), level)
        )
        return CountedStream(nest, normalize_labels(PerFiber(level, values)))

    def _join(self, node: n.Join, inputs: Sequence[CountedStream]) -> NodeStreams:
        def count() -> NodeStreams:
            sides, labels = [], []
            for crd, payloads in node.sides():
                nest, maps = self._together(inputs[crd], *(inputs[p] for p in payloads))
                assert nest is not None
                sides.append(nest)
                of = [inputs[p].labels for p in payloads]
                labels.append([None if each is None else map_numbers(each, map) for each, map in zip(of, maps[1:], strict=True)])
            above, maps = common_refinement(self.memo, [nest.above for nest in sides])
            links = NumberColumns.of([map_numbers(nest.links, map) for nest, map in zip(sides, maps, strict=True)])
            fibers, which = distinct_tuples(links.columns)
            merged = merge_fibers(self.memo, node.kind, [nest.level for nest in sides], fibers)
            nest = FiberNest(above, links.numbers(which), merged.level)
            out = [CountedStream(nest)]
            for at, of in zip(merged.picks, labels, strict=True):
                moved = [np.minimum(at, 0) if each is None else take(by_element(each), at) for each in of]  # None: all are 0
                out += [CountedStream(nest, normalize_labels(each)) for each in moved]
            return NodeStreams(tuple(out), ElementCounts(above, links.numbers(merged.steps[which])))

        return self.memo.once(("join", node.kind, node.payloads), _memo_key(inputs), count)

    def _align(self, inputs: Sequence[CountedStream]) -> NodeStreams:
        def count() -> NodeStreams:
            old, new, x = (stream.nest for stream in inputs)
            assert old is not None and new is not None and x is not None
            roots = x.chain[: old.depth]
            nest, (_, from_x) = common_refinement(self.memo, [old, roots[-1]])
            assert nest is not None
            above, (from_old, from_new) = common_refinement(self.memo, [nest.above, new.above])
            links = NumberColumns.of([map_numbers(new.links, from_new), map_numbers(nest.links, from_old)])
            fibers, which = distinct_tuples(links.columns)
            merged = merge_fibers(self.memo, "left", [new.level, nest.level], fibers)
            matches = merged.picks[1]
            first, *deeper = x.chain[old.depth :]
            below = apply_map(first.link, from_x)
            link = take(below, matches)
            aligned = FiberNest(FiberNest(above, links.numbers(which), merged.level), link, first.level)
            for nest_below in deeper:
                aligned = FiberNest(aligned, nest_below.links, nest_below.level)
            steps = ElementCounts(above, links.numbers(merged.steps[which]))
            return NodeStreams((CountedStream(aligned, inputs[2].labels),), steps)

        return self.memo.once("align", _memo_key(inputs), count)

    def _accumulate(self, node: n.Accumulate, inputs: Sequence[CountedStream]) -> tuple[CountedStream, ...]:
        inner = inputs[-2].nest
        assert inner is not None

        def count() -> tuple[CountedStream, ...]:
            *_, reduced = inner.chain[: inner.depth - node.order]
            nests = inner.chain[reduced.depth :]
            merged = union_fibers(self.memo, nests, *_members(reduced.level, nests[0].links), reduced.level.fibers)
            nest = FiberNest(reduced.above, below_links(merged.fiber, reduced.links, EMPTY), merged.levels[0])
            out = [CountedStream(nest)]
            for level, links in zip(merged.levels[1:], merged.links, strict=True):
                nest = FiberNest(nest, links, level)
                out.append(CountedStream(nest))
            return (*out, out[-1])

        return self.memo.once(("accumulate", node.order), (inner,), count)

    def _permute(self, node: n.Permute, inputs: Sequence[CountedStream]) -> tuple[CountedStream, ...]:
        inner = inputs[-2].nest
        assert inner is not None

        def count() -> tuple[CountedStream, ...]:
            nests = inner.chain[inner.depth - len(node.order) :]
            row, columns = self._entries(nests)
            columns = [columns[k] for k in node.order]
            sizes = [nests[k].level.size for k in node.order]
            order = np.lexsort((*reversed(columns), row))
            return _nested_streams(nests[0], row[order], [column[order] for column in columns], sizes)

        return self.memo.once(("permute", node.order), (inner,), count)

    def _select(self, node: n.Select, inputs: Sequence[CountedStream]) -> tuple[CountedStream, ...]:
        """Count a select. How many entries stay of each fiber or group is exact. Which they are is not known: the first are taken."""
        inner = inputs[-2].nest
        assert inner is not None

        def count() -> tuple[CountedStream, ...]:
            nests = inner.chain[inner.depth - node.levels :]
            row, columns = self._entries(nests)
            group = row * (nests[0].level.size // node.every + 1) + columns[0] // node.every if node.every else row
            first = np.ones(len(group), dtype=bool)
            first[1:] = np.diff(group) != 0
            starts = np.flatnonzero(first)
            stays = np.arange(len(group)) - starts[np.cumsum(first) - 1] < node.keep if len(group) else first
            sizes = [nest.level.size for nest in nests]
            return _nested_streams(nests[0], row[stays], [column[stays] for column in columns], sizes)

        return self.memo.once(("select", node.keep, node.every, node.levels), (inner,), count)

    def _entries(self, nests: Sequence[FiberNest]) -> tuple[Ints, list[Ints]]:
        """Return for each entry its fiber of the outermost of these levels, and its coordinates, one column for each level."""
        row, columns = np.arange(nests[0].level.fibers), list[Ints]()
        at = row
        for nest in nests:
            fibers = at if nest is nests[0] else nest.link[at]
            self.memo.afford(int(take(nest.level.lengths, fibers, 0).sum()))
            owner, at = nest.level.expanded(fibers)
            row, columns = row[owner], [*(column[owner] for column in columns), nest.level.crd[at]]
        return row, columns

    def _drop(self, inputs: Sequence[CountedStream]) -> tuple[CountedStream, ...]:
        """Count a drop. Only `N` is dropped: which other values are zero is not known."""
        crds = len(inputs) - 1
        nest, (_, map) = self._together(inputs[-2], inputs[-1])
        assert nest is not None
        label = None if inputs[-1].label is None else apply_map(inputs[-1].label, map)
        if label is not None and not (kept := label >= 0).all():
            level, label = nest.level, label[kept]
            level = FiberLevel(group_positions(level.owner[kept], level.fibers), level.crd[kept], level.size)
            nest = FiberNest(nest.above, nest.links, level)
        nest = without_empty_lists(nest, range(nest.depth - crds, nest.depth - 1))
        streams = tuple(CountedStream(fiber_nest) for fiber_nest in nest.chain[nest.depth - crds :])
        return (*streams, CountedStream(nest, label))

    def _flatten(self, node: n.Flatten, crd: CountedStream) -> CountedStream:
        inner = crd.nest
        assert inner is not None and inner.above is not None
        outer = inner.above
        row, at = inner.level.expanded(inner.link)
        crds = outer.level.crd[row] * node.size + inner.level.crd[at]
        level = FiberLevel(group_positions(outer.level.owner[row], outer.level.fibers), crds, outer.level.size * node.size)
        return CountedStream(FiberNest(outer.above, outer.links, level))

    def _split(self, node: n.SplitLevel, crd: CountedStream) -> tuple[CountedStream, CountedStream]:
        nest = crd.nest
        assert nest is not None
        outer, inner = np.divmod(nest.level.crd, node.size)
        sizes = [-(-nest.level.size // node.size), node.size]
        first, second, _ = _nested_streams(nest, nest.level.owner, [outer, inner], sizes)
        return first, second

    def _fork(self, node: n.Fork, x: CountedStream) -> tuple[CountedStream, ...]:
        nest = x.nest
        if nest is None:
            label = np.zeros(1, dtype=np.int64) if x.label is None else x.label
            return (CountedStream(None, normalize_labels(label)), *[CountedStream(None, None)] * (node.lanes - 1))
        lanes = self.memo.once(("fork", node.lanes), (nest,), lambda: fork_nest(self.memo, nest, node.lanes))
        return tuple(CountedStream(lane, None if x.label is None else normalize_labels(x.label[at])) for lane, at in lanes)

    def _merge(self, node: n.Merge, inputs: Sequence[CountedStream]) -> CountedStream:
        def count() -> CountedStream:
            nests = [stream.nest for stream in inputs if stream.nest is not None]
            return CountedStream(*merge_nests(self.memo, nests, [stream.label for stream in inputs], node.levels))

        return self.memo.once(("merge", node.levels), _memo_key(inputs), count)


def wanted_coordinates(graph: n.Graph, patterns: Mapping[str, Pattern]) -> frozenset[n.Port]:
    """Return the streams whose coordinates decide which fiber is located. A level whose fibers are full and equal needs none."""
    wanted: set[n.Port] = set()
    for node in reversed(graph.nodes):
        if isinstance(node, n.Locate) and node.tensor in patterns and _depends_on_coordinate(patterns[node.tensor], node.level):
            wanted.add(node.inputs[0])
        else:
            wanted |= {
                node.inputs[j] for k, carried in enumerate(node.carries()) if n.Port(node.name, k) in wanted for j in carried
            }
    return frozenset(wanted)


def _depends_on_coordinate(pattern: Pattern, level: int) -> bool:
    """Return whether the fiber that is located in a level depends on the coordinate."""
    return pattern.below[level] is not None or not pattern.levels[level].complete


def _memo_key(inputs: Sequence[CountedStream]) -> tuple[object, ...]:
    return tuple(part for stream in inputs for part in (stream.nest, stream.labels))


def _distinct_fibers(stream: CountedStream) -> int:
    return sum(nest.level.fibers for nest in stream.nest.chain) if stream.nest else 0


def _zeros(nest: FiberNest | None) -> ElementNumbers:
    """Return 0 for each element of a stream."""
    return np.zeros(1, dtype=np.int64) if nest is None else PerFiber(nest.level, np.zeros(nest.level.fibers, dtype=np.int64))


def _members(level: FiberLevel, links: ElementNumbers) -> tuple[Ints, Ints]:
    """Return groups and members for `union_fibers`: for each fiber of a level that is not empty, the fibers below its elements.
    None of them is missing, and some may come several times."""
    if isinstance(links, PerFiber):
        filled = np.flatnonzero(level.lengths)
        return filled, links.numbers[filled]
    return level.owner, links


def _nested_streams(lists: FiberNest, row: Ints, columns: Sequence[Ints], sizes: Sequence[int]) -> tuple[CountedStream, ...]:
    """Return nested streams in place of the innermost lists of a stream. `columns` has coordinates of all entries for each depth.

    The entries are ordered by `row`, which is the fiber of `lists` that they replace, and then by the columns. Equal neighbours
    become one element.
    """
    nest, above = lists.above, lists.level.fibers
    links: ElementNumbers = lists.links
    out = []
    for k, (column, size) in enumerate(zip(columns, sizes, strict=True)):
        first = np.ones(len(column), dtype=bool)
        first[1:] = (np.diff(row) != 0) | (np.diff(column) != 0)
        if k == len(columns) - 1:
            first[:] = True
        nest = FiberNest(nest, links, FiberLevel(group_positions(row[first], above), column[first], size))
        out.append(CountedStream(nest))
        row, above = np.cumsum(first) - 1, int(first.sum())
        links = np.arange(above)
    return (*out, out[-1])

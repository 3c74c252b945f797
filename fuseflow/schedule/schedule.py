"""The schedule: what is fused, in which loop order, stored how, on how many lanes. It is one value, however it was expressed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar

from fuseflow.byte_sizes import byte_text
from fuseflow.errors import ScheduleError, Span
from fuseflow.filesystem import read_text
from fuseflow.plan.plan import Plan
from fuseflow.plan.reader import PlanReader
from fuseflow.schedule import file as yaml
from fuseflow.schedule.entries import (
    Entries,
    block_sizes,
    block_text,
    buffer_size,
    chain_text,
    depth_text,
    fifo_depth,
    format_entries,
    fuse_names,
    lane_count,
    lanes_text,
    loop_order,
    member_names,
    parse_assignments,
    preload_ports,
    preload_text,
    setting_value,
    sorted_entries,
    split_depth_policy,
    split_order_policy,
    split_size,
    split_text,
    tensor_names,
    vector_width,
)
from fuseflow.schedule.settings import KEYWORDS, SETTINGS
from fuseflow.tensors.blocks import Block
from fuseflow.yaml_text import write_yaml

P = ParamSpec("P")
T = TypeVar("T")


class _fluent(Generic[P]):
    """A method that also starts a schedule: `Schedule.fuse("layer1")` is `Schedule().fuse("layer1")`."""

    def __init__(self, function: Callable[Concatenate[Schedule, P], Schedule]) -> None:
        self.function = function
        self.__doc__ = function.__doc__

    def __get__(self, schedule: Schedule | None, owner: type[Schedule]) -> Callable[P, Schedule]:
        return lambda *args, **kwargs: self.function(owner() if schedule is None else schedule, *args, **kwargs)


@dataclass(frozen=True, slots=True)
class Schedule:
    """The decisions of the user about a program; everything else is chosen by the compiler.

    >>> print(Schedule.fuse("layer1").order("layer1", "i,k,j").format("adj", "csr").par(i=4), end="")
    fuse: [layer1]
    order:
      layer1: [i, k, j]
    format: {adj: csr}
    par: {i: 4}

    The fields are canonical (sorted, each name once), so schedules that say the same are equal and print the same. Raises `ScheduleError`
    where a field contradicts itself; names are compared with a program when it is compiled.
    """

    fuse_regions: tuple[str, ...] = ("best",)
    """What is fused: one of `none`, `layerwise`, `full`, `best` and `auto`, or the names of modules, Einsums and `regions`."""
    regions: Entries[tuple[str, ...]] = ()
    """Named regions, with the Einsums and modules of each."""
    orders: Entries[tuple[str, ...]] = ()
    """The loop orders of regions or of single Einsums, outermost index first."""
    formats: Entries[str] = ()
    """The storage formats of tensors, by name or by a pattern of names (`*.weight`). Patterns come first: of these the last one counts."""
    blocks: Entries[Block] = ()
    """The blocks in which tensors are stored: their size along each of the dimensions."""
    splits: Entries[int] = ()
    """The indices that are two loops in their region, as `T1.i`: the inner one runs over so many coordinates."""
    vector: int = 1
    """The number of elements of a dense innermost dimension that go through a stream together."""
    parallel: Entries[int] = ()
    """The lanes over which an index is dealt: in every region that has it, or, written `layer1.i`, in one region, which wins. Written
    `layer1/T1.i`, they are those of one stage, the nest which computes `T1` in that region, and win over both.
    """
    depths: Entries[int] = ()
    """The slots of FIFOs: of all FIFOs of a region, or, written `layer1/mul.1`, of that of one input of a node, which wins."""
    associations: Entries[str] = ()
    """The order in which the products that end in a result are computed, as in `A (X W)`. Rounding changes with it."""
    buffers: Entries[int] = ()
    """The bytes of the reuse buffer of each port that reads a tensor from memory."""
    preloads: Entries[int] = ()
    """The ports that read a tensor once, in order, for all nodes that read it."""
    iteration: str = "factored"
    """The iteration: with `factored`, a reduction runs in loops of its own; `global` is one iteration space for a whole region, the
    baseline.
    """
    copies: bool = True
    """Whether a tensor may be copied in another storage order where a region would otherwise have no loop order."""
    locate: str = "auto"
    """How dense levels are read: they are located (`always`), scanned and joined where the order allows it (`never`), or what costs less
    (`auto`).
    """
    rescan: str = "auto"
    """Whether an outermost compressed level is scanned again in every loop around it (`every`), or kept where coordinates are looked up
    in it (`never`). With `auto` it is kept, except for machines with the rules of the public simulator, and in public primitives.
    """
    repeat: str = "value"
    """What is repeated in a loop that an operand lacks: its `value`, as late as possible, or its `reference`, before it is loaded."""
    writers: str = "auto"
    """Who writes a dense result that lanes compute: one writer, in which the lanes are merged (`once`); one in each lane (`lanes`), which
    writes the implicit value where the result has no entry; or `auto`: one in each lane where the result has all entries of a row or none,
    but one writer in public primitives and for a machine that has the times of the public simulator.
    """
    primitives: str = "auto"
    """What graphs are made of: our `own` primitives; those of the `public` schema, in every region that they can say; or `auto`: public
    ones for a machine that has the times of the public simulator, else our own.
    """
    order_policy: str = "best"
    """The legal order that a region gets without one of its own: the `best`-ranked; the `first`, nearest to the program; or `auto`."""
    depth_policy: str = "machine"
    """The depth of a FIFO without one of its own: that of the `machine`; or `auto`, as many slots as the estimate finds it to need."""
    intermediates: str = "real"
    """What a region reads of the results of others: the `real` ones, or `dense` random stand-ins of which 60% are zero, stored."""
    drop_zeros: tuple[str, ...] = ()
    """Results that are stored without the entries equal to their implicit value."""
    plan: Plan = field(default_factory=Plan)
    """The constant operands that are divided into parts, each stored in the way that suits it."""
    resident: tuple[str, ...] = ()
    """Inputs that lie in the configuration of the accelerator, and are read there without a request to the memory."""
    places: Mapping[tuple[str, str, object], Span] = field(default_factory=dict, compare=False, repr=False)
    """The places of the entries of a file, by section, name and value, so that a value that replaces another has no place."""

    def __post_init__(self) -> None:
        fields: dict[str, Any] = {
            "fuse_regions": fuse_names(self.fuse_regions),
            "regions": sorted_entries("region", self.regions, member_names),
            "orders": sorted_entries("order of", self.orders, loop_order),
            "formats": format_entries(self.formats),
            "blocks": sorted_entries("block of", self.blocks, block_sizes),
            "splits": sorted_entries("split of", self.splits, split_size),
            "vector": vector_width(self.vector),
            "parallel": sorted_entries("lanes of", self.parallel, lane_count),
            "depths": sorted_entries("depth of", self.depths, fifo_depth),
            "associations": sorted_entries("association of", self.associations, chain_text),
            "buffers": sorted_entries("buffer of", self.buffers, buffer_size),
            "preloads": sorted_entries("preload of", self.preloads, preload_ports),
            "drop_zeros": tensor_names("drop zeros of", self.drop_zeros),
            "resident": tensor_names("resident", self.resident),
        } | {setting: setting_value(setting, getattr(self, setting)) for setting in SETTINGS}
        for name, value in fields.items():
            object.__setattr__(self, name, value)

    @property
    def open(self) -> bool:
        """Whether the schedule leaves something to `fuseflow.autoschedule`, so that it cannot be compiled."""
        return self.fuse_regions == ("auto",) or self.order_policy == "auto" or self.plan.auto

    @property
    def leaves_cut(self) -> bool:
        """Whether its regions are those that are expected to take the fewest cycles: nobody says what is fused, or `fuse: best` is said."""
        return self.fuse_regions == ("best",)

    @property
    def grows_regions(self) -> bool:
        """Whether nobody has named its regions: they grow as large as `layerwise` or `full` says, and may be divided."""
        return self.fuse_regions in (("layerwise",), ("full",))

    @_fluent
    def fuse(self, *names: str) -> Schedule:
        """Fuse these regions, in addition to those named before. The words `none`, `layerwise`, `full`, `best` and `auto` replace what was
        said before."""
        if not names:
            return self
        present = () if set(names) & set(KEYWORDS) else tuple(n for n in self.fuse_regions if n not in KEYWORDS)
        return replace(self, fuse_regions=present + names)

    @_fluent
    def region(self, name: str, *members: str) -> Schedule:
        """Call these Einsums and modules a region; `fuse(name)` fuses them."""
        return replace(self, regions=_with(self.regions, name, members))

    @_fluent
    def order(self, target: str, indices: str | Sequence[str]) -> Schedule:
        """Set the loop order of a region or an Einsum, outermost index first: `order("layer1", "i,k,j")`."""
        words = indices.split(",") if isinstance(indices, str) else indices
        return replace(self, orders=_with(self.orders, target, tuple(words)))

    @_fluent
    def format(self, tensor: str, text: str) -> Schedule:
        """Store the tensor in this format: `format("adj", "csr")`, `format("x", "(dense, compressed) order (1, 0)")`.
        A pattern speaks of all inputs that it matches and the format is for: `format("*.weight", "csr")`. Exact names, and later patterns,
        count more.
        """
        return replace(self, formats=_with(self.formats, tensor, text))

    @_fluent
    def block(self, tensor: str, *sizes: int) -> Schedule:
        """Store the tensor in blocks of this size along each dimension: `block("adj", 16, 16)`. Whatever shares a dimension with it is in
        blocks too."""
        return replace(self, blocks=_with(self.blocks, tensor, sizes))

    @_fluent
    def split(self, target: str, size: int) -> Schedule:
        """Make an index of an Einsum two loops, in its region, of which the inner one has this size: `split("T1.i", 16)`. The loops are
        called `i0` and `i1`. Lanes of `i0` take runs of rows then. No value is stored elsewhere."""
        return replace(self, splits=_with(self.splits, target, size))

    @_fluent
    def par(self, /, **lanes: int) -> Schedule:
        """Deal each of these indices over so many lanes: `par(i=4)`; in one region: `par(**{"layer1.i": 4})`; in one stage of it:
        `par(**{"layer1/T1.i": 8})`."""
        return replace(self, parallel=tuple((dict(self.parallel) | lanes).items()))

    @_fluent
    def depth(self, name: str, slots: int) -> Schedule:
        """Give all FIFOs of a region so many slots: `depth("layer1", 128)`; or one of them: `depth("layer1/mul.1", 4096)`."""
        return replace(self, depths=_with(self.depths, name, slots))

    @_fluent
    def associate(self, result: str, chain: str) -> Schedule:
        """Compute the products that end in a result in this order, pair by pair: `associate("T1", "A (X W)")`. Rounding changes with it."""
        return replace(self, associations=_with(self.associations, result, chain))

    @_fluent
    def buffer(self, tensor: str, size: int | str) -> Schedule:
        """Give each port that reads a tensor a reuse buffer: `buffer("W1", "72KB")`. Lines that are in it are not read again."""
        return replace(self, buffers=_with(self.buffers, tensor, buffer_size(tensor, size)))

    @_fluent
    def preload(self, tensor: str, ports: int) -> Schedule:
        """Read a tensor once, in order, by so many ports, into a memory of each node that reads it: `preload("W1", 8)`."""
        return replace(self, preloads=_with(self.preloads, tensor, ports))

    @_fluent
    def lower(
        self,
        *,
        iteration: str | None = None,
        copies: bool | None = None,
        vector: int | None = None,
        locate: str | None = None,
        rescan: str | None = None,
        repeat: str | None = None,
        writers: str | None = None,
        primitives: str | None = None,
        order_policy: str | None = None,
        depth_policy: str | None = None,
        intermediates: str | None = None,
        drop_zeros: Sequence[str] = (),
        resident: Sequence[str] = (),
    ) -> Schedule:
        """Set how all regions are lowered; what is left out stays: `lower(iteration="global", copies=False)`."""
        settings = {"iteration": iteration, "locate": locate, "rescan": rescan, "repeat": repeat, "primitives": primitives}
        new_settings = {
            **settings,
            "writers": writers,
            "copies": copies,
            "vector": vector,
            "order_policy": order_policy,
            "depth_policy": depth_policy,
            "intermediates": intermediates,
        }
        changed: dict[str, Any] = {name: value for name, value in new_settings.items() if value is not None}
        return replace(self, drop_zeros=(*self.drop_zeros, *drop_zeros), resident=(*self.resident, *resident), **changed)

    @classmethod
    def from_flags(
        cls,
        fuse: Sequence[str] = (),
        orders: Sequence[str] = (),
        formats: Sequence[str] = (),
        par: Sequence[str] = (),
        blocks: Sequence[str] = (),
        base: Schedule | None = None,
        plan: Plan | None = None,
        depths: Sequence[str] = (),
        associations: Sequence[str] = (),
        buffers: Sequence[str] = (),
        preloads: Sequence[str] = (),
        splits: Sequence[str] = (),
        **lowering: Any,
    ) -> Schedule:
        """Return the schedule of the flags `--fuse`, `--order E=i,k,j`, `--format T=csr`, `--block T=16x16`, `--par i=4`, `--depth R=128`,
        `--associate "T=A (X W)"`, `--buffer T=64KB`, `--preload T=8` and `--split T.i=16`, each repeatable, of `--plan`, and of those that
        `lower` takes. They add to `base` and win over it. `--order first` and `--order best` are the policy for all other regions, and
        `--depth auto` that for all other FIFOs. Raises `UsageError` for a malformed flag.
        """
        start = cls() if base is None else base
        policy, orders = split_order_policy(orders)
        if policy is not None:
            lowering["order_policy"] = policy
        depth_policy, depths = split_depth_policy(depths)
        if depth_policy is not None:
            lowering["depth_policy"] = depth_policy
        lanes = {index: lanes_text(index, text) for index, text in parse_assignments("--par", par, "i=4").items()}
        sizes = {tensor: block_text(tensor, text) for tensor, text in parse_assignments("--block", blocks, "adj=16x16").items()}
        parts = {target: split_text(target, text) for target, text in parse_assignments("--split", splits, "T.i=16").items()}
        sizes_of_buffers = {t: buffer_size(t, text) for t, text in parse_assignments("--buffer", buffers, "W1=64KB").items()}
        ports_of_preloads = {t: preload_text(t, text) for t, text in parse_assignments("--preload", preloads, "W1=8").items()}
        slots = {name: depth_text(name, text) for name, text in parse_assignments("--depth", depths, "layer1=128").items()}
        return replace(
            start,
            fuse_regions=tuple(fuse) or start.fuse_regions,
            orders=_merged(
                start.orders, {e: tuple(o.split(",")) for e, o in parse_assignments("--order", orders, "T=i,k,j").items()}
            ),
            formats=_merged(start.formats, parse_assignments("--format", formats, "adj=csr")),
            blocks=_merged(start.blocks, sizes),
            splits=_merged(start.splits, parts),
            parallel=_merged(start.parallel, lanes),
            depths=_merged(start.depths, slots),
            associations=_merged(start.associations, parse_assignments("--associate", associations, '"T1=A (X W)"')),
            buffers=_merged(start.buffers, sizes_of_buffers),
            preloads=_merged(start.preloads, ports_of_preloads),
            plan=start.plan if plan is None else plan,
        ).lower(**lowering)

    @classmethod
    def from_yaml(cls, text: str, file: str = "<schedule>") -> Schedule:
        """Read what `to_yaml` prints. Named regions without a `fuse` section are all fused. Raises `ScheduleError` with the place of a
        mistake.
        """
        return cls.from_document(yaml.read_schedule(text, file))

    @classmethod
    def from_document(cls, document: yaml.ScheduleDocument) -> Schedule:
        """Return the schedule of a part of a YAML text, as `from_yaml` does of a whole text."""
        sections, schedule = document.sections, cls()
        for name, members in sections.regions.items():
            with document.blame("regions", name):
                schedule = schedule.region(name, *members)
        with document.blame("fuse"):
            schedule = (
                schedule.fuse(*sections.regions)
                if sections.fuse is None
                else replace(schedule, fuse_regions=tuple(sections.fuse))
            )
        for target, indices in sections.order.items():
            with document.blame("order", target):
                schedule = schedule.order(target, indices)
        for tensor, format in sections.format.items():
            with document.blame("format", tensor):
                schedule = schedule.format(tensor, format)
        for tensor, sizes in sections.block.items():
            with document.blame("block", tensor):
                schedule = schedule.block(tensor, *sizes)
        for target, part in sections.split.items():
            with document.blame("split", target):
                schedule = schedule.split(target, part)
        for index, lanes in sections.par.items():
            with document.blame("par", index):
                schedule = schedule.par(**{index: lanes})
        for name, slots in sections.depth.items():
            with document.blame("depth", name):
                schedule = schedule.depth(name, slots)
        for result, chain in sections.associate.items():
            with document.blame("associate", result):
                schedule = schedule.associate(result, chain)
        for tensor, size in sections.buffer.items():
            with document.blame("buffer", tensor):
                schedule = schedule.buffer(tensor, size)
        for tensor, ports in sections.preload.items():
            with document.blame("preload", tensor):
                schedule = schedule.preload(tensor, ports)
        schedule = replace(schedule, plan=Plan.from_rows(PlanReader(document.text, (*document.base, "plan")), sections.plan))
        for setting in SETTINGS:
            with document.blame(setting):
                schedule = schedule.lower(**{setting: getattr(sections, setting)})
        with document.blame("vector"):
            schedule = schedule.lower(vector=sections.vector)
        with document.blame("drop_zeros"):
            schedule = schedule.lower(copies=sections.copies, drop_zeros=sections.drop_zeros or ())
        with document.blame("resident"):
            schedule = schedule.lower(resident=sections.resident or ())
        listed = {"fuse": sections.fuse, "drop_zeros": sections.drop_zeros, "resident": sections.resident}
        position = {(section, name): n for section, names in listed.items() for n, name in enumerate(names or ())}
        paths = {e: (e[0], position.get(e[:2], 0)) if e[0] in listed else e[:2] for e in schedule._entries()}
        return replace(schedule, places={entry: document.place(*path) for entry, path in paths.items()})

    @classmethod
    def load(cls, path: str | Path) -> Schedule:
        """Read a schedule file. Raise `FileError` or `ScheduleError` for one that cannot be read, or has nothing in it."""
        text = read_text(path, "the schedule")
        if not text.strip():
            raise ScheduleError(
                f"the schedule `{path}` is empty", hint="leave `--schedule` out, or write `{}` for a schedule that says nothing"
            )
        return cls.from_yaml(text, str(path))

    def place(self, section: str, name: str) -> Span | None:
        """Return the place of an entry (`order`, `T`), if it is from a file."""
        return next((self.places.get(entry) for entry in self._entries() if entry[:2] == (section, name)), None)

    def _entries(self) -> Iterator[tuple[str, str, object]]:
        """Yield every entry as (section, name, value)."""
        yield from (("fuse", name, name) for name in self.fuse_regions)
        yield from (("drop_zeros", name, name) for name in self.drop_zeros)
        yield from (("resident", name, name) for name in self.resident)
        sections = {
            "regions": self.regions,
            "order": self.orders,
            "format": self.formats,
            "block": self.blocks,
            "split": self.splits,
            "par": self.parallel,
            "depth": self.depths,
            "associate": self.associations,
            "buffer": self.buffers,
            "preload": self.preloads,
        }
        for section, pairs in sections.items():
            yield from ((section, name, value) for name, value in pairs)

    def to_yaml(self) -> str:
        """Return the schedule as YAML text, without the settings that have their default."""
        sections: dict[str, Any] = {
            "fuse": list(self.fuse_regions),
            "regions": {name: list(members) for name, members in self.regions},
            "order": {target: list(indices) for target, indices in self.orders},
            "format": dict(self.formats),
            "block": {tensor: list(sizes) for tensor, sizes in self.blocks},
            "split": dict(self.splits),
            "vector": self.vector if self.vector > 1 else None,
            "par": dict(self.parallel),
            "depth": dict(self.depths),
            "associate": dict(self.associations),
            "buffer": {tensor: byte_text(size) for tensor, size in self.buffers},
            "preload": dict(self.preloads),
            "plan": self.plan.to_rows(),
        }
        settings = {setting: value for setting, values in SETTINGS.items() if (value := getattr(self, setting)) != values[0]}
        sections |= {**settings, **({} if self.copies else {"copies": False})}
        sections |= {"drop_zeros": list(self.drop_zeros), "resident": list(self.resident)}
        return write_yaml({name: section for name, section in sections.items() if section or section is False})

    def __str__(self) -> str:
        return self.to_yaml()


def _merged(base: Entries[T], additions: dict[str, T]) -> Entries[T]:
    return (*((name, value) for name, value in base if name not in additions), *additions.items())


def _with(pairs: Entries[T], name: str, value: T) -> Entries[T]:
    return _merged(pairs, {name: value})

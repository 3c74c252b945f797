"""The schedule: what is fused, in which loop order, how it is stored, and on how many lanes. It is one value, however it was expressed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from keyword import iskeyword
from pathlib import Path
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, TypedDict, Unpack

from fuseflow.errors import ScheduleError, Span, refuse_unknown
from fuseflow.filesystem import read_text
from fuseflow.plan.plan import Plan, PlanReader
from fuseflow.schedule.section import KEYWORDS, Entries, Names
from fuseflow.schedule.sections import BY_FIELD, BY_KEY, SECTIONS
from fuseflow.tensors.blocks import Block
from fuseflow.yaml_text import write_yaml

if TYPE_CHECKING:
    from fuseflow.schedule.file import ScheduleDocument

P = ParamSpec("P")


class Lowering(TypedDict, total=False):
    """The settings of `Schedule.lower`, by the names of the fields."""

    iteration: str | None
    copies: bool | None
    vector: int | None
    locate: str | None
    rescan: str | None
    repeat: str | None
    writers: str | None
    primitives: str | None
    order_policy: str | None
    depth_policy: str | None
    intermediates: str | None
    drop_zeros: Sequence[str]
    resident: Sequence[str]


_METHODS = {
    "fuse_regions": "fuse", "regions": "region", "orders": "order", "formats": "format", "blocks": "block", "splits": "split",
    "tiles": "tile", "parallel": "par", "depths": "depth", "associations": "associate", "buffers": "buffer", "preloads": "preload",
    "memories": "memory", "recomputed": "recompute",
}  # fmt: skip
"""The method that sets a field of a schedule. Fields without one are settings of `lower`."""


def call_text(name: str, /, *args: Any, **kwargs: Any) -> str:
    """Return the text of a call. Keyword arguments that are no identifiers stand in a dictionary.

    >>> print(call_text("par", 1, **{"i": 4, "layer1.k": 2}))
    par(1, i=4, **{'layer1.k': 2})
    """
    plain = [f"{key}={value!r}" for key, value in kwargs.items() if key.isidentifier() and not iskeyword(key)]
    other = {key: value for key, value in kwargs.items() if not key.isidentifier() or iskeyword(key)}
    return f"{name}({', '.join([*map(repr, args), *plain, *([f'**{other!r}'] if other else [])])})"


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

    Its `repr` is an expression of it:

    >>> Schedule.fuse("layer1").par(i=4)
    ff.Schedule.fuse('layer1').par(i=4)

    The fields are canonical (sorted, each name once), so schedules that say the same are equal and print the same. Raises `ScheduleError`
    where a field contradicts itself; names are compared with a program when it is compiled.
    """

    fuse_regions: tuple[str, ...] = ("best",)
    """The fusion: one of `none`, `layerwise`, `full`, `best` and `auto`, or the names of modules, Einsums and `regions`."""
    regions: Entries[tuple[str, ...]] = ()
    """Named regions, with the Einsums and modules of each."""
    orders: Entries[tuple[str, ...]] = ()
    """The loop orders of regions or of single Einsums, outermost index first."""
    formats: Entries[str] = ()
    """The storage formats of tensors, by name or by a pattern of names (`*.weight`). Patterns come first, and of these the last
    one that matches is taken."""
    blocks: Entries[Block] = ()
    """The blocks in which tensors are stored: their size along each of the dimensions."""
    splits: Entries[int] = ()
    """The indices that are two loops in their region, as `T1.i`: the value is the number of coordinates of the inner loop."""
    tiles: Entries[int] = ()
    """The tiles of indices, as numbers of coordinates: a region runs for one tile of an index after the other. They hold in every
    region that has the index, or, written `layer1.i`, in one region, which takes precedence."""
    vector: int = 1
    """The number of elements of a dense innermost dimension that go through a stream together."""
    parallel: Entries[int] = ()
    """The lanes over which an index is dealt: in every region that has it, or, written `layer1.i`, in one region, which takes
    precedence. Written `layer1/T1.i`, they are the lanes of one stage, the nest which computes `T1` in that region, and take
    precedence over both."""
    depths: Entries[int] = ()
    """The slots of FIFOs: of all FIFOs of a region, or, written `layer1/mul.1`, of the FIFO of one input of a node, which takes
    precedence."""
    associations: Entries[str] = ()
    """The order in which the products that end in a result are computed, as in `A (X W)`. Their rounding depends on it."""
    buffers: Entries[int] = ()
    """The bytes of the reuse buffer of each port that reads a tensor from memory."""
    preloads: Entries[int] = ()
    """The number of ports that read a tensor once, in order, for all nodes that read it."""
    memories: Entries[str] = ()
    """The memory on the chip in which a tensor lies: `scratchpad`."""
    plan: Plan = field(default_factory=Plan)
    """The constant operands that are stored in parts, each in a suitable format."""
    iteration: str = "factored"
    """The iteration: with `factored`, a reduction runs in separate loops; `global` is one iteration space for a whole region, the
    baseline."""
    locate: str = "auto"
    """How dense levels are read: they are located (`always`), scanned and joined where the order allows it (`never`), or
    whichever costs less (`auto`).
    """
    rescan: str = "auto"
    """Whether an outermost compressed level is scanned again in every loop around it (`every`), or kept where coordinates are looked up
    in it (`never`). With `auto` it is kept, except for machines with the rules of the public simulator, and in public primitives.
    """
    repeat: str = "value"
    """The stream repeated in a loop that an operand lacks: its `value`, as late as possible, or its `reference`, before the load."""
    writers: str = "auto"
    """Who writes a dense result that lanes compute: one writer, in which the lanes are merged (`once`); one in each lane (`lanes`), which
    writes the implicit value where the result has no entry; or `auto`: one in each lane where the result has all entries of a row or none,
    but one writer in public primitives and for a machine that has the times of the public simulator.
    """
    primitives: str = "auto"
    """The primitives of graphs: our `own`; the `public` schema's, in every region that has a public form; or `auto`: public ones
    for a machine that has the times of the public simulator, else our own.
    """
    order_policy: str = "best"
    """The legal order of a region without a stated one: the `best`-ranked; the `first`, nearest to the program; or `auto`."""
    depth_policy: str = "machine"
    """The depth of a FIFO that is not in `depths`: the depth of the `machine`; or `auto`, the slots that it needs by the
    estimate."""
    intermediates: str = "real"
    """The results of other regions that a region reads: the `real` ones, or `dense` random stand-ins with 60% of zeros, stored."""
    copies: bool = True
    """Whether a tensor may be copied in another storage order where a region would otherwise have no loop order."""
    drop_zeros: tuple[str, ...] = ()
    """Results that are stored without the entries equal to their implicit value."""
    recomputed: tuple[str, ...] = ()
    """Einsums, by name or by a pattern of names, that every later region which reads them computes again, so that they are not stored."""
    resident: tuple[str, ...] = ()
    """Inputs that are part of the configuration of the accelerator, and are read there without a request to the memory."""
    places: Mapping[tuple[str, str, object], Span] = field(default_factory=dict, compare=False, repr=False)
    """The locations of the entries of a file, by section, name and value, so that a value that replaces another has no
    location."""

    def __post_init__(self) -> None:
        for name, section in BY_FIELD.items():
            object.__setattr__(self, name, section.checked(getattr(self, name)))

    @property
    def open(self) -> bool:
        """Whether the schedule leaves a choice to `fuseflow.autoschedule`, so that it cannot be compiled."""
        return self.fuse_regions == ("auto",) or self.order_policy == "auto" or self.plan.auto

    @property
    def leaves_cut(self) -> bool:
        """Whether the compiler chooses the regions with the fewest expected cycles: the user sets no fusion, or `fuse: best`."""
        return self.fuse_regions == ("best",)

    @property
    def grows_regions(self) -> bool:
        """Whether the user names no regions: these are as large as `layerwise` or `full` says, and may be divided."""
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
        return self._with("regions", {name: members})

    @_fluent
    def order(self, target: str, indices: str | Sequence[str]) -> Schedule:
        """Set the loop order of a region or an Einsum, outermost index first: `order("layer1", "i,k,j")`."""
        words = indices.split(",") if isinstance(indices, str) else indices
        return self._with("order", {target: words})

    @_fluent
    def format(self, tensor: str, text: str) -> Schedule:
        """Store the tensor in this format: `format("adj", "csr")`, `format("x", "(dense, compressed) order (1, 0)")`.
        A pattern speaks of all inputs that it matches and the format is for: `format("*.weight", "csr")`. Exact names, and later patterns,
        count more.
        """
        return self._with("format", {tensor: text})

    @_fluent
    def block(self, tensor: str, *sizes: int) -> Schedule:
        """Store the tensor in blocks of this size along each dimension: `block("adj", 16, 16)`. Whatever shares a dimension with it is in
        blocks too."""
        return self._with("block", {tensor: sizes})

    @_fluent
    def split(self, target: str, size: int) -> Schedule:
        """Make an index of an Einsum two loops, in its region, and the inner one has this size: `split("T1.i", 16)`. The loops
        are called `i0` and `i1`. Lanes of `i0` take runs of rows then. No value is stored elsewhere."""
        return self._with("split", {target: size})

    @_fluent
    def tile(self, /, **sizes: int) -> Schedule:
        """Run regions in tiles of an index, of 1,024 coordinates in `tile(i=1024)`; in one region: `tile(**{"layer1.i": 1024})`."""
        return self._with("tile", sizes)

    @_fluent
    def par(self, /, **lanes: int) -> Schedule:
        """Deal each of these indices over its number of lanes: `par(i=4)`; in one region: `par(**{"layer1.i": 4})`; in one stage
        of it: `par(**{"layer1/T1.i": 8})`."""
        return self._with("par", lanes)

    @_fluent
    def depth(self, name: str, slots: int) -> Schedule:
        """Give all FIFOs of a region this number of slots: `depth("layer1", 128)`; or one FIFO: `depth("layer1/mul.1", 4096)`."""
        return self._with("depth", {name: slots})

    @_fluent
    def associate(self, result: str, chain: str) -> Schedule:
        """Compute the products that end in a result in this order, pair by pair: `associate("T1", "A (X W)")`. Rounding changes with it."""
        return self._with("associate", {result: chain})

    @_fluent
    def buffer(self, tensor: str, size: int | str) -> Schedule:
        """Give each port that reads a tensor a reuse buffer: `buffer("W1", "72KB")`. Lines that are in it are not read again."""
        return self._with("buffer", {tensor: size})

    @_fluent
    def preload(self, tensor: str, ports: int) -> Schedule:
        """Read a tensor once, in order, by this number of ports, into a memory of each node that reads it: `preload("W1", 8)`."""
        return self._with("preload", {tensor: ports})

    @_fluent
    def memory(self, tensor: str, name: str = "scratchpad") -> Schedule:
        """Place a tensor in a memory on the chip, which is the scratchpad: `memory("W1", "scratchpad")`."""
        return self._with("place", {tensor: name})

    @_fluent
    def recompute(self, *names: str) -> Schedule:
        """Compute these Einsums again in every later region that reads them, instead of storing them: `recompute("relu")`."""
        return self._with("recompute", names)

    @_fluent
    def lower(self, **settings: Unpack[Lowering]) -> Schedule:
        """Set how all regions are lowered; other settings stay: `lower(iteration="global", copies=False)`."""
        for key, value in settings.items():
            refuse_unknown("Schedule.lower", [key], Lowering.__annotations__)
            self = self if value is None else self._with(key, value)
        return self

    def _with(self, key: str, more: Any) -> Schedule:
        """Return the schedule with `more` added to the section of this key."""
        section = BY_KEY[key]
        changed = {section.attribute: section.added(getattr(self, section.attribute), more)}
        return replace(self, **changed)

    @classmethod
    def from_flags(
        cls,
        fuse: Sequence[str] = (),
        orders: Sequence[str] = (),
        formats: Sequence[str] = (),
        par: Sequence[str] = (),
        blocks: Sequence[str] = (),
        base: Schedule | None = None,
        plan: Plan | Path | None = None,
        **flags: Any,
    ) -> Schedule:
        """Return the schedule of the flags `--fuse`, `--order E=i,k,j`, `--format T=csr`, `--par i=4` and `--block T=16x16`, each
        repeatable, of `--plan`, and of all others, by the key of their section or the name of their field: `depths=["R=128"]`,
        `locate="never"`. They add to `base` and win over it. `--order first` and `--order best` are the policy for all other regions, and
        `--depth auto` that for all other FIFOs. Raises `UsageError` for a malformed flag.
        """
        schedule = cls() if base is None else base
        given = {"fuse": fuse, "orders": orders, "formats": formats, "par": par, "blocks": blocks, "plan": plan, **flags}
        for name, value in given.items():
            section = BY_KEY.get(name) or BY_FIELD.get(name)
            if section is None:
                refuse_unknown("Schedule.from_flags", [name], (*BY_KEY, *BY_FIELD))
            elif value not in (None, (), []):
                for key, more in section.read(value).items():
                    schedule = schedule._with(key, more)
        return schedule

    @classmethod
    def from_yaml(cls, text: str, file: str = "<schedule>") -> Schedule:
        """Read what `to_yaml` prints. Named regions without a `fuse` section are all fused. Raises `ScheduleError` with the place of a
        mistake.
        """
        from fuseflow.schedule.file import read_schedule  # takes long to load, and a schedule without a file does without

        return cls.from_document(read_schedule(text, file))

    @classmethod
    def from_document(cls, document: ScheduleDocument) -> Schedule:
        """Return the schedule in an entry of a YAML text, as `from_yaml` does for a whole text."""
        contents, schedule = dict(document.sections), cls()
        if "plan" in document.sections.model_fields_set:
            contents["plan"] = Plan.from_rows(PlanReader(document.text, (*document.base, "plan")), contents["plan"])
        for section in SECTIONS:
            for path, more in section.pieces(contents[section.key]):
                with document.text.blame(*document.base, section.key, *path):
                    schedule = schedule._with(section.key, more)
        if contents["fuse"] is None:
            schedule = schedule.fuse(*contents["regions"])
        listed = {section.key: contents[section.key] or () for section in SECTIONS if isinstance(section, Names)}
        position = {(key, name): n for key, names in listed.items() for n, name in enumerate(names)}
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
        """Return the location of an entry (such as `order`, `T`), None if it is not from a file."""
        return next((self.places.get(entry) for entry in self._entries() if entry[:2] == (section, name)), None)

    def _entries(self) -> Iterator[tuple[str, str, object]]:
        """Yield every entry as (section, name, value)."""
        for section in SECTIONS:
            yield from ((section.key, *entry) for entry in section.entries(getattr(self, section.attribute)))

    def to_yaml(self) -> str:
        """Return the schedule as YAML text, in the order of the fields, without the settings that have their default."""
        names = [each.name for each in fields(self) if each.name in BY_FIELD]
        written = {BY_FIELD[name].key: BY_FIELD[name].written(getattr(self, name)) for name in names}
        return write_yaml({key: section for key, section in written.items() if section or section is False})

    def __str__(self) -> str:
        return self.to_yaml()

    def __repr__(self) -> str:
        """Return an expression of this schedule, for a program that says `import fuseflow as ff`."""
        if self.plan:  # which no method says
            return f"ff.Schedule.from_yaml({self.to_yaml()!r})"
        return "ff.Schedule" + (".".join(("", *self._calls())) or "()")

    def _calls(self) -> Iterator[str]:
        """Yield the calls of methods that make this schedule of the default one."""
        lowering = dict[str, Any]()
        for each in fields(self):
            name, value = each.name, getattr(self, each.name)
            if name not in BY_FIELD or name == "plan" or value in ((), each.default):
                continue
            match name:
                case "fuse_regions" | "recomputed":
                    yield call_text(_METHODS[name], *value)
                case "tiles" | "parallel":
                    yield call_text(_METHODS[name], **dict(value))
                case "regions" | "blocks":
                    yield from (call_text(_METHODS[name], key, *of) for key, of in value)
                case "orders":
                    yield from (call_text(_METHODS[name], key, ",".join(of) or ()) for key, of in value)
                case _ if name in _METHODS:
                    yield from (call_text(_METHODS[name], *entry) for entry in value)
                case _:
                    lowering[name] = value
        if lowering:
            yield call_text("lower", **lowering)

"""A sweep file in YAML, and the points of its design space: every model with its data, on every machine, under every schedule."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Annotated, Any, TypeAlias

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PlainValidator, ValidationError
from pydantic_core import PydanticCustomError

from fuseflow.errors import FuseFlowError, SweepError, did_you_mean
from fuseflow.filesystem import read_text
from fuseflow.frontend.data import FILE_READERS, require_known
from fuseflow.frontend.datasets.spec_options import names_file, split_spec
from fuseflow.frontend.factory import Factory
from fuseflow.machine.files import load_machine, with_settings
from fuseflow.machine.machine import Machine
from fuseflow.sampling.sample_request import parse_sample
from fuseflow.schedule import Schedule
from fuseflow.schedule.file import Sections, read_document
from fuseflow.sweep.point import Point, Scalar, content_digest
from fuseflow.yaml_text import YamlText, read_yaml

OBJECTIVES = ("cycles", "bytes", "flops")
"""The values by which points are compared."""
MODES = ("estimate", "sample", "simulate", "prune")
"""The ways to measure points. `sample` samples them, and `prune` estimates all of them and simulates the points with the best estimates."""


ScheduleSections = Mapping[str, Any]
"""The sections of a schedule (`schedule.file.Sections`), or some of them."""


def _as_list(value: Any) -> Any:
    """Return a list as it is, and any other value as a list of one."""
    return value if isinstance(value, list) else [value]


def _machine_entry(value: Any) -> Any:
    """Return an entry of `machine`: a name, or, in a program, a machine itself."""
    if isinstance(value, Machine) or (isinstance(value, str) and value):
        return value
    raise PydanticCustomError("machine", "must be the name of a machine, or a file")


MachineEntry: TypeAlias = Annotated[
    str | Machine, PlainValidator(_machine_entry, json_schema_input_type=Annotated[str, Field(min_length=1)])
]


OneOrMany = BeforeValidator(_as_list)
NonEmptyNames = Annotated[list[Annotated[str, Field(min_length=1)]], OneOrMany, Field(min_length=1)]
Seed = Annotated[int, Field(ge=0, lt=2**32)]


class TrainingContent(BaseModel):
    """An entry of `train`: a loss and an optimizer as `--loss` and `--optimizer` take them, and whether there are gradients."""

    model_config = ConfigDict(extra="forbid", strict=True)

    loss: str | None = None
    optimizer: str | None = None
    gradients: bool = False


def _train_entry(value: Any) -> Any:
    """Return true as an entry that says nothing, false as None, and any other value as it is."""
    return ({} if value else None) if isinstance(value, bool) else value


TrainEntry = Annotated[TrainingContent | None, BeforeValidator(_train_entry)]


class SweepContent(BaseModel):
    """The content of a sweep file, as it is written."""

    model_config = ConfigDict(extra="forbid", strict=True)

    model: NonEmptyNames
    data: NonEmptyNames | None = None
    data_dir: str | None = None
    tensors: NonEmptyNames | None = None
    options: Annotated[list[dict[str, Scalar]], OneOrMany, Field(min_length=1)] = [{}]
    seed: Annotated[list[Seed], OneOrMany, Field(min_length=1)] = [0]
    sparsity: Annotated[list[str | dict[str, str]], OneOrMany, Field(min_length=1)] = [{}]
    propagate: Annotated[list[bool], OneOrMany, Field(min_length=1)] = [False]
    train: Annotated[list[TrainEntry], OneOrMany, Field(min_length=1)] = [None]
    machine: Annotated[list[MachineEntry], OneOrMany, Field(min_length=1)] = ["rda"]
    set: Annotated[list[dict[str, Scalar]], OneOrMany, Field(min_length=1)] = [{}]
    schedules: Annotated[list[str | dict[str, Any]], Field(min_length=1)] = [{}]
    vary: dict[str, Annotated[list[Any], Field(min_length=1)]] = {}
    mode: str = "estimate"
    top: Annotated[int, Field(ge=1)] = 10
    objective: str = "cycles"
    limit: Annotated[float, Field(gt=0)] | None = None
    check: bool = True
    sample: Annotated[str, Field(min_length=1)] = "error=1%"


@dataclass(frozen=True, slots=True)
class SweepFile:
    """A sweep file that was read.

    `schedules` and `vary` hold sections of schedules by the label that tables show for them.
    """

    path: Path
    content: SweepContent
    text: YamlText
    schedules: Mapping[str, ScheduleSections]
    vary: Mapping[str, Mapping[str, ScheduleSections]]

    @property
    def folder(self) -> Path:
        """The folder of the file, to which its paths are relative."""
        return self.path.absolute().parent


def read_sweep(path: Path) -> SweepFile:
    """Read a sweep file. Raises a `FuseFlowError` with the line and column of an error in it."""
    return _sweep_file(path, read_yaml(read_text(path, "the sweep"), str(path), SweepError))


def _sweep_file(path: Path, text: YamlText) -> SweepFile:
    """Return the sweep in a text, whose paths are relative to the folder of `path`."""
    try:
        content = SweepContent.model_validate({} if text.content is None else text.content)
    except ValidationError as error:
        raise text.explain(error, SweepContent.model_fields, "a sweep file", SweepError) from error
    _check_choice(text, "mode", content.mode, MODES)
    _check_choice(text, "objective", content.objective, OBJECTIVES)
    if "top" in content.model_fields_set and content.mode != "prune":
        raise SweepError("`top` is for `mode: prune`", hint="leave it out", span=text.place("top"))
    if "sample" in content.model_fields_set and content.mode != "sample":
        raise SweepError("`sample` is for `mode: sample`", hint="leave it out", span=text.place("sample"))
    with text.blame("sample"):
        parse_sample(content.sample)
    schedules = _schedules(text, content, path.absolute().parent)
    return SweepFile(path, content, text, schedules, _axes(text, content, schedules))


def _check_choice(text: YamlText, key: str, value: str, among: tuple[str, ...]) -> None:
    if value not in among:
        raise SweepError(f"`{key}: {value}` is none of {', '.join(among)}", hint=did_you_mean(value, among), span=text.place(key))


def _schedules(text: YamlText, content: SweepContent, folder: Path) -> dict[str, ScheduleSections]:
    sections_by_name: dict[str, ScheduleSections] = {}
    for n, entry in enumerate(content.schedules):
        at = ("schedules", n)
        if isinstance(entry, str):
            path = folder / entry
            inside = read_yaml(read_text(path, "the schedule"), str(path), SweepError)
            name, sections = path.stem, _sections({} if inside.content is None else inside.content, inside)
        else:
            sections_label = " ".join(f"{key}:{label(value)}" for key, value in entry.items()) or "default"
            name = entry.get("name", sections_label)
            sections = _sections({key: value for key, value in entry.items() if key != "name"}, text, at)
        if not isinstance(name, str) or name in sections_by_name:
            problem = f"two schedules are called `{name}`" if isinstance(name, str) else f"`name: {name}` is no name"
            raise SweepError(problem, hint="give each a `name` of its own", span=text.place(*at))
        sections_by_name[name] = sections
    return sections_by_name


def _sections(content: Any, text: YamlText, at: tuple[int | str, ...] = ()) -> ScheduleSections:
    """Return the sections of the schedule at the path `at` of a text, in a form that can be merged. Raises an error with its place."""
    parsed = read_document(content, text, at)
    Schedule.from_document(parsed)
    return parsed.sections.model_dump(exclude_unset=True)


def _axes(
    text: YamlText, content: SweepContent, schedules: Mapping[str, ScheduleSections]
) -> dict[str, dict[str, ScheduleSections]]:
    axes: dict[str, dict[str, ScheduleSections]] = {}
    for key, values in content.vary.items():
        if key not in Sections.model_fields:
            hint = did_you_mean(key, Sections.model_fields)
            if key in SweepContent.model_fields:
                hint = f"`{key}` stands beside `vary`, and may be a list there"
            raise SweepError(f"a schedule has no `{key}` to vary", hint=hint, span=text.place("vary", key))
        axes[key] = {}
        for n, value in enumerate(values):
            try:
                sections = _sections({key: value}, YamlText(value, text.file, None))
            except FuseFlowError as error:
                error.span = text.place("vary", key, n)
                raise
            _check_conflict(text, key, sections, schedules)
            axes[key].setdefault(label(value), sections)
    return axes


def _check_conflict(text: YamlText, key: str, sections: ScheduleSections, schedules: Mapping[str, ScheduleSections]) -> None:
    """Raise `SweepError` if a value on the axis `key`, with these `sections`, would replace a section of one of the schedules."""
    for name, base in schedules.items():
        for section, value in sections.items():
            stated = base.get(section)
            both = set(stated) & set(value) if isinstance(stated, dict) and isinstance(value, dict) else stated is not None
            if both:
                names = f" of {', '.join(f'`{k}`' for k in sorted(both))}" if isinstance(both, set) else ""
                problem = f"the schedule `{name}` says `{section}`{names}, which varies"
                raise SweepError(problem, hint="say it in one of them", span=text.place("vary", key))


def label(value: Any) -> str:
    """Return a value as tables and `--where` show it.

    >>> label({"i": 4, "k": 2}), label(["layer1", "layer2"]), label({}), label({"layer1": ["i", "k"]})
    ('i=4,k=2', 'layer1,layer2', '-', 'layer1=i,k')
    """
    if isinstance(value, Mapping):
        return ",".join(f"{key}={label(inner)}" for key, inner in value.items()) or "-"
    if isinstance(value, list | tuple):
        return ",".join(map(label, value)) or "-"
    if isinstance(value, bool):
        return str(value).lower()
    return "-" if value is None else ",".join(part.strip() for part in str(value).split(","))


@dataclass(frozen=True, slots=True)
class LabeledPoint:
    """A point with its label on every axis. The labels are the columns of a table."""

    labels: Mapping[str, str]
    point: Point

    def name(self, axes: Sequence[str]) -> str:
        """Return the labels of some axes as text, such as `fuse=full par=i=4`."""
        return " ".join(f"{axis}={self.labels[axis]}" for axis in axes)


def _plain(value: Any) -> Any:
    """Return a value of a program as a sweep file would have it. A machine stays a value: it need not be in a file."""
    match value:
        case Schedule():
            sections = read_yaml(value.to_yaml(), "<schedule>", SweepError).content
            return {key: section for key, section in sections.items() if key != "fuse" or not value.leaves_cut}  # which may vary
        case Mapping():
            return {key: _plain(inner) for key, inner in value.items()}
        case list() | tuple():
            return [_plain(inner) for inner in value]
        case Path():
            return str(value)
    return value


@dataclass(frozen=True, slots=True)
class DesignSpace:
    """All points of a sweep, in the order of its file, with the last axis varying fastest.

    Equal points stand once, under the labels of the first. `axes` are the axes with more than one value. `combinations` is the number of
    points with equal ones counted repeatedly.

    >>> import fuseflow as ff
    >>> space = ff.DesignSpace.of({"model": "docs/example/spmm.ein", "vary": {"fuse": ["none", "full"], "par": [{}, {"i": 2}]}})
    >>> len(space), space.axes
    (4, ('fuse', 'par'))
    """

    file: SweepFile = field(repr=False)
    points: tuple[LabeledPoint, ...]
    axes: tuple[str, ...]
    combinations: int

    @classmethod
    def of(cls, sweep: str | Path | Mapping[str, Any] | DesignSpace) -> DesignSpace:
        """Return the design space of a sweep file in YAML, or of a mapping with the keys and values of such a file.

        In a mapping, a schedule may be a `Schedule`, a machine a `Machine`, and paths are relative to the current directory. Raises a
        `FuseFlowError` for an unknown key, with the nearest right one, and for a model, data or a machine that is missing.
        """
        match sweep:
            case DesignSpace():
                return sweep
            case str() | Path():
                return build_space(read_sweep(Path(sweep)))
            case Mapping():
                return build_space(_sweep_file(Path("sweep"), YamlText(_plain(sweep), "<sweep>", None)))
        raise SweepError(f"a {type(sweep).__name__} is no sweep", hint="give the path of a YAML file, or a mapping with its keys")

    def __len__(self) -> int:
        return len(self.points)


def schedules(
    base: ScheduleSections, vary: Mapping[str, Mapping[str, ScheduleSections]]
) -> Iterator[tuple[dict[str, str], Schedule]]:
    """Yield a schedule for every combination of the values that vary, with its labels.

    >>> axes = {"fuse": {"none": {"fuse": ["none"]}, "full": {"fuse": ["full"]}}}
    >>> [(labels, schedule.fuse_regions) for labels, schedule in schedules({"copies": False}, axes)]
    [({'fuse': 'none'}, ('none',)), ({'fuse': 'full'}, ('full',))]
    """
    for values in product(*(axis.items() for axis in vary.values())):
        sections = dict(base)
        for _, more in values:
            sections = _merge_sections(sections, more)
        labels = {axis: name for axis, (name, _) in zip(vary, values, strict=True)}
        yield labels, Schedule.from_document(read_document(sections, YamlText(sections, "<schedule>", None)))


def _merge_sections(sections: ScheduleSections, more: ScheduleSections) -> dict[str, Any]:
    """Return sections of a schedule with `more`: a mapping in both is merged, and any other value of `more` replaces the old one."""
    merged = dict(sections)
    for key, value in more.items():
        merged[key] = {**merged[key], **value} if isinstance(value, dict) and isinstance(merged.get(key), dict) else value
    return merged


def build_space(file: SweepFile) -> DesignSpace:
    """Return the points of a sweep file. Raises a `FuseFlowError` with its place for a model, data or machine that is missing."""
    machines, sources = list(_machines(file)), list(_sources(file))
    labeled_schedules: list[tuple[dict[str, str], str]] = []
    for name, base in file.schedules.items():
        with file.text.blame("schedules"):
            labeled_schedules += [
                ({"schedule": name} | labels, schedule.to_yaml()) for labels, schedule in schedules(base, file.vary)
            ]
    points: dict[str, LabeledPoint] = {}
    for (source_labels, source_fields), (machine_labels, machine), (schedule_labels, schedule) in product(
        sources, machines, labeled_schedules
    ):
        point = Point(schedule=schedule, machine=machine, check=file.content.check, sample=file.content.sample, **source_fields)
        points.setdefault(point.key("simulate"), LabeledPoint({**source_labels, **machine_labels, **schedule_labels}, point))
    distinct = tuple(points.values())
    axes = [axis for axis in distinct[0].labels if len({place.labels[axis] for place in distinct}) > 1]
    return DesignSpace(file, distinct, tuple(axes), len(sources) * len(machines) * len(labeled_schedules))


def _machines(file: SweepFile) -> Iterator[tuple[dict[str, str], dict[str, Any]]]:
    """Yield every machine with every change of its settings, as labels and as all its settings."""
    values = {machine.name: machine for machine in file.content.machine if isinstance(machine, Machine)}
    for n, name in enumerate(file.content.machine):
        if isinstance(name, Machine):
            machine = name
            if values[machine.name] != machine:
                hint = '`machine.model_copy(update={"name": "other"})` has another name'
                raise SweepError(f"two machines are called `{machine.name}`", hint=hint)
        else:
            path = file.folder / name
            with file.text.blame("machine", n):
                machine = load_machine(path if path.is_file() else name)
        for k, settings in enumerate(file.content.set):
            with file.text.blame("set", k, *settings):
                changed = with_settings(machine, settings)
            yield (
                {"machine": machine.name if isinstance(name, Machine) else Path(name).stem, "set": label(settings)},
                changed.model_dump(),
            )


def _sources(file: SweepFile) -> Iterator[tuple[dict[str, str], dict[str, Any]]]:
    """Yield every model with its data, options, seed and sparsity, as labels and as the fields of a point."""
    settings, digests = file.content, dict[tuple[str, str | None, str | None], str]()
    data_names: list[str | None] = [*settings.data] if settings.data else [None]
    tensor_files: list[str | None] = [*settings.tensors] if settings.tensors else [None]
    sparsities = [_sparsity(file, n) for n in range(len(settings.sparsity))]
    stems = [_stem(model) for model in settings.model]
    for n, model in enumerate(settings.model):
        for options, seed, (sparsity_label, sparsity), propagate, train, data, tensors in product(
            settings.options, settings.seed, sparsities, settings.propagate, settings.train, data_names, tensor_files
        ):
            _check_settings(file, n, model, data, tensors, options, sparsity, train is not None)
            paths = {
                "model": str(file.folder / model),
                "tensors": None if tensors is None else str(file.folder / tensors),
                "data_dir": str(file.folder / settings.data_dir) if settings.data_dir and _reads_files(data) else None,
            }
            asked = data and _located(file, data)
            key = (model, tensors, data)
            if key not in digests:
                files = [None if p is None else Path(p) for p in paths.values()]
                with file.text.blame("model", n):
                    digests[key] = content_digest(files[0], files[1], asked, files[2])  # type: ignore[arg-type]
            data_label = data or (Path(tensors).stem if tensors else "default")
            labels = {
                "model": stems[n] if stems.count(stems[n]) == 1 else model,  # with its folder if another one has its name
                "data": data_label,
                "options": label(options),
                "seed": str(seed),
                "sparsity": sparsity_label,
                "propagate": str(propagate).lower(),
            }
            labels |= {} if settings.train == [None] else {"train": _train_label(train)}
            fields = {"content": digests[key], "data": asked, "options": options, "seed": seed, "training": _training(train)}
            yield labels, {**paths, **fields, "sparsity": sparsity, "propagate": propagate}


def _train_label(train: TrainingContent | None) -> str:
    said = {} if train is None else train.model_dump(exclude_defaults=True)
    return label(said) if said else str(train is not None).lower()


def _training(train: TrainingContent | None) -> dict[str, str | bool | None] | None:
    """Return an entry of `train` as the field of a point."""
    return None if train is None else train.model_dump()


def _sparsity(file: SweepFile, n: int) -> tuple[str, str]:
    """Return an entry of `sparsity` as a label and as the YAML of a spec. It is a rule as `--sparsify` takes it, the name of a file with a
    spec, or a mapping from patterns of weights to rules; `dense` and an empty mapping are no sparsity."""
    entry = file.content.sparsity[n]
    if entry in ({}, "dense"):
        return "dense", ""
    from fuseflow.sparsity.spec import SparseSpec, parse_sparsify, read_spec  # sweeps of dense models do without

    with file.text.blame("sparsity", n):
        if isinstance(entry, str) and "=" not in entry:
            files = [Path(other) for other in file.content.sparsity if isinstance(other, str) and "=" not in other]
            unique = [path.stem for path in files].count(Path(entry).stem) == 1
            return Path(entry).stem if unique else entry, read_spec(file.folder / entry).to_yaml()
        texts = [entry] if isinstance(entry, str) else [f"{pattern}={rule}" for pattern, rule in entry.items()]
        return " ".join(texts), sum((parse_sparsify(text) for text in texts), SparseSpec()).to_yaml()


def _stem(model: str) -> str:
    factory = Factory.parse(model)
    return Path(model).stem if factory is None else factory.stem


def _check_settings(
    file: SweepFile,
    n: int,
    model: str,
    data: str | None,
    tensors: str | None,
    options: Mapping[str, Scalar],
    sparsity: str,
    trains: bool,
) -> None:
    """Raise an error for a setting that the model would ignore, and for an unknown name, before anything runs."""
    factory = Factory.parse(model)
    if factory is None and Path(model).suffix not in (".ein", ".mlir"):
        hint = "give a .py model file, `file.py:function`, an .ein program or an .mlir module"
        raise SweepError(f"cannot read `{model}` as a model", hint=hint, span=file.text.place("model", n))
    if factory is not None and factory.module:
        hint = f"write a file that says `from {factory.module} import {factory.function} as build`, and name that"
        message = f"a sweep keeps results by the content of files, and cannot tell when `{model}` changes"
        raise SweepError(message, hint=hint, span=file.text.place("model", n))
    is_python = factory is not None
    ignored = (
        {
            "data": data,
            "data_dir": file.content.data_dir,
            "options": options or None,
            "sparsity": sparsity or None,
            "train": trains or None,
        }
        if not is_python
        else {"tensors": tensors}
    )
    for key, value in ignored.items():
        if value is not None:
            hint = f"its inputs are given by `{'data' if is_python else 'tensors'}`"
            if key == "sparsity":
                hint = "a PyTorch model is made sparse; a tensor of a program is stored so with `format` in `schedules`"
            if key == "train":
                hint = "a PyTorch model is trained"
            raise SweepError(f"`{model}` takes no `{key}`", hint=hint, span=file.text.place(key))
    if file.content.data_dir is not None and not any(map(_reads_files, file.content.data or ())):
        hint = f"name data that are read from files: {', '.join(FILE_READERS)}"
        raise SweepError("`data_dir`: none of the data reads files", hint=hint, span=file.text.place("data_dir"))
    if data:
        with file.text.blame("data"):
            require_known(split_spec(_located(file, data))[0])
    if tensors is None and not is_python and file.content.mode != "estimate":
        raise SweepError(f"`{model}` has no data to simulate", hint="add `tensors: FILE.yaml`", span=file.text.place("mode"))


def _located(file: SweepFile, data: str) -> str:
    """Return a data spec in which the name of a file is relative to the current directory, not to that of the sweep."""
    return str(file.folder / data) if names_file(split_spec(data)[0]) else data


def _reads_files(data: str | None) -> bool:
    return (data or "").partition(":")[0] in FILE_READERS

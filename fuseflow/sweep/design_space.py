"""The points of the design space of a sweep: every model with its data, on every machine, under every schedule."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any

from fuseflow.errors import SweepError
from fuseflow.frontend.data import FILE_READERS, require_known
from fuseflow.frontend.datasets.spec_options import names_file, split_spec
from fuseflow.frontend.factory import Factory
from fuseflow.machine.files import load_machine, with_settings
from fuseflow.machine.machine import Machine
from fuseflow.schedule import Schedule
from fuseflow.schedule.file import read_document
from fuseflow.sweep.point import Point, Scalar, content_digest
from fuseflow.sweep.sweep_file import ScheduleSections, SweepFile, TrainingContent, label, parsed_sweep, read_sweep
from fuseflow.yaml_text import YamlText, read_yaml


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
                return build_space(parsed_sweep(Path("sweep"), YamlText(_plain(sweep), "<sweep>", None)))
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
            fields = {
                "content": digests[key],
                "data": asked,
                "options": options,
                "seed": seed,
                "training": train and train.model_dump(),
            }
            yield labels, {**paths, **fields, "sparsity": sparsity, "propagate": propagate}


def _train_label(train: TrainingContent | None) -> str:
    said = {} if train is None else train.model_dump(exclude_defaults=True)
    return label(said) if said else str(train is not None).lower()


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

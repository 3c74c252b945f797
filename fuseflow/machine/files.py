"""Machines are read from YAML: those that ship with the package, the user's own files, and single settings on top. An unknown key
is an error. A file may name a machine as its `base`, and then has only the settings that differ from it. The base is `rda` where a file
has a memory that takes time, and says nothing of FIFOs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from fuseflow.errors import FuseFlowError, MachineError, Span, did_you_mean
from fuseflow.filesystem import read_text
from fuseflow.machine.machine import Lanes, Machine, UnitCycles, UnitIntervals
from fuseflow.memory.scratchpad_settings import Scratchpad, scratchpad_settings
from fuseflow.memory.settings import MEMORY_KINDS, OWN_TABLE
from fuseflow.memory.table_files import preset_names
from fuseflow.yaml_text import read_yaml, shipped_names, shipped_text, shortened

Setting = int | float | str | bool | None
"""A setting of a machine is a YAML scalar."""


def machine_names() -> tuple[str, ...]:
    """Return the names of the machines that ship with the package, sorted."""
    return shipped_names("fuseflow.machine", "machines")


def named_machines() -> tuple[str, ...]:
    """Return all names of machines: of those that ship with the package, and of memories, each of which is `rda` at that memory."""
    return (*machine_names(), *preset_names())


def machine_summaries() -> dict[str, str]:
    """Return a summary of each machine that ships with the package, by its name: the first comment of its file."""
    return {name: _shipped_text(name).partition("\n")[0].removeprefix("# ") for name in machine_names()}


def load_machine(machine: str | Path | Machine, settings: Mapping[str, Setting] | None = None) -> Machine:
    """Return a machine that ships with the package, by its name, or `rda` with a preset of a memory, by the preset's name, or a
    machine from a YAML file, or the machine itself; with `settings`, the values at dotted keys such as `latency.add`, in cycles.

    Raises `MachineError` for an unknown machine, an unknown key or an impossible value, with the nearest right name, and `FileError`
    for a file that cannot be read.

    >>> import fuseflow as ff
    >>> machine = ff.load_machine("rda", {"fifo_depth": 16, "latency.add": 2})
    >>> machine.latency.of("add")
    2
    >>> ff.load_machine(machine, {"memory": "hbm2"}).memory.model
    'hbm2'
    """
    if isinstance(machine, Machine):
        return with_settings(machine, settings or {})
    name, path = str(machine), Path(machine)
    if name in machine_names():
        loaded = _shipped(name)
    elif name in preset_names():
        loaded = read_machine(f"name: {name}\nbase: {USUAL}\nmemory: {name}\n", name)
    elif path.suffix not in (".yaml", ".yml") and not path.is_file():
        raise MachineError(f"unknown machine `{name}`", hint=did_you_mean(name, named_machines()))
    else:
        loaded = read_machine(read_text(path, "the machine"), name)
    return with_settings(loaded, settings) if settings else loaded


@cache
def _shipped(name: str) -> Machine:
    """Return a machine that ships with the package. Its file does not change, and is read once."""
    return read_machine(_shipped_text(name), f"{name}.yaml")


def _shipped_text(name: str) -> str:
    return shipped_text("fuseflow.machine", "machines", name)


USUAL = "rda"
"""The base of machines that name little more than a memory."""
UNIT_TABLES: Mapping[str, type[UnitCycles]] = {"latency": UnitCycles, "interval": UnitIntervals}
"""The keys that hold cycles by kind of unit."""
MEMORY_KEYS = ("memory", "memory.model")
"""The keys that choose the model of the memory."""
SCRATCHPAD = "scratchpad"
"""The key of the scratchpad, which may be its bytes alone."""


NEEDED: Mapping[str, str] = {
    "name": f"or write a base, from which the file differs: `base: {USUAL}`",
    "scratchpad.bytes": "write `scratchpad: {bytes: 1MB, ...}`, or `scratchpad: 1MB`",
    "memory.queue.read": "write both, `queue: {read: 32, write: 32}`, or one number for both: `queue: 32`",
    "memory.queue.write": "write both, `queue: {read: 32, write: 32}`, or one number for both: `queue: 32`",
}
"""What works where a key is missing."""


def with_settings(machine: Machine, settings: Mapping[str, Setting]) -> Machine:
    """Return the machine with the values of `settings`, which are at dotted keys such as `latency.add`. Raises `MachineError` for
    an unknown key or an impossible value."""
    values = machine.model_dump()
    if "base" in settings:
        raise MachineError("`base` is a key of machine files", hint="name the machine itself: `--machine rtl`")
    for key, value in sorted(settings.items(), key=lambda setting: setting[0] not in (*MEMORY_KEYS, SCRATCHPAD)):
        if key in MEMORY_KEYS:
            if value != values["memory"]["model"]:
                values["memory"] = {"model": value}  # the rest of the table has settings of another model
            continue
        *above, last = key.split(".")
        inside: Any = values
        for part in above:
            inside = inside.get(part) if isinstance(inside, dict) else None
        if above == [SCRATCHPAD] and inside is None:
            inside = values[SCRATCHPAD] = {}
        if not isinstance(inside, dict):
            raise MachineError(f"unknown key `{key}`", hint=did_you_mean(key, _keys()))
        inside[last] = scratchpad_settings(value) if key == SCRATCHPAD else value
    return _validated(values, lambda keys: None)


def read_machine(text: str, file: str = "<text>") -> Machine:
    """Return a machine from YAML text. `file` names it in errors; a base is searched for beside that file. Raises `MachineError`
    with the line of the mistake and the nearest right key, and `FileError` for a base that cannot be read."""
    return _read(text, file, ())


def _read(text: str, file: str, above: tuple[Path, ...]) -> Machine:
    """Return a machine from YAML text. `above` are the files of which it is the base, directly or not; none may be its base in turn."""
    data = read_yaml(text, file, MachineError)
    content = data.content
    if not isinstance(content, dict):
        hint = f"write `base: {USUAL}`, and below it what differs: `memory: hbm2`"
        raise MachineError("a machine is a YAML mapping", hint=hint, span=Span(file, 1))
    if _needs_base(content):
        content = {"base": USUAL, **content}
    if "base" not in content:
        return _validated(content, lambda keys: data.place(*keys))
    name, own = content["base"], {key: value for key, value in content.items() if key != "base"}
    try:
        base = _base(name, Path(file), above)
    except FuseFlowError as error:
        error.span = error.span or data.place("base")
        raise
    named = {} if file == "<text>" else {"name": Path(file).stem}
    try:
        return _validated(_merged(base, {**named, **own}), lambda keys: data.place(*keys))
    except MachineError as error:
        if not error.message.startswith(("unknown key", "the key", *(f"`{key}" for key in own))):
            error.notes += (f"what the file does not say is as in its base `{name}`",)
        raise


def _needs_base(content: Mapping[str, Any]) -> bool:
    """Return whether a file has a memory that takes time and does not say how deep FIFOs are. They must not be unbounded then."""
    memory = content.get("memory")
    model = _model(memory, "ideal")
    return isinstance(model, str) and model != "ideal" and not content.keys() & {"base", "fifo_depth", "rules"}


def _base(name: object, file: Path, above: tuple[Path, ...]) -> Machine:
    """Return the machine that `file` names as its base: one that ships with the package, `rda` with a preset of a memory, or a file
    beside it. `above` is as in `_read`."""
    if not isinstance(name, str) or not name:
        raise MachineError(
            f"`base: {shortened(str(name))}`: must be the name of a machine, or a file",
            hint=f"one of {', '.join(machine_names())}",
        )
    if name in named_machines():
        return load_machine(name)
    path, files = file.parent / name, (*above, file.resolve())
    if path.suffix not in (".yaml", ".yml"):
        raise MachineError(f"unknown machine `{name}` as the base", hint=did_you_mean(name, named_machines()))
    if path.resolve() in files:
        raise MachineError(
            f"`base: {name}`: a machine is its own base", hint="one of the files must say all, or name a machine of the package"
        )
    return _read(read_text(path, "the base of the machine"), str(path), files)


def _merged(base: Machine, own: Mapping[str, Any]) -> dict[str, Any]:
    """Return a base's settings, replaced by a file's (`own`). Tables are merged, but those of another memory model dropped."""
    values = base.model_dump()
    for key, value in own.items():
        inside: Any = values.get(key)
        if key == "memory":
            model = _model(value, inside["model"])
            inside = inside if model == inside["model"] else None
            value = {} if inside and not isinstance(value, Mapping) else value
        merges = isinstance(inside, dict) and isinstance(value, Mapping)
        values[key] = {**inside, **{str(part): change for part, change in value.items()}} if merges else value
    return values


def _model(value: object, inside: str) -> object:
    """Return the model that settings of a memory name, which is that of the base (`inside`) if they name none."""
    if not isinstance(value, Mapping):
        return value
    return value.get("model", OWN_TABLE if "table" in value else inside)


def _validated(values: Mapping[str, Any], place: Callable[[list[str]], Span | None]) -> Machine:
    try:
        return Machine.model_validate(values)
    except ValidationError as error:
        first = error.errors()[0]
        keys = [
            str(part) for k, part in enumerate(first["loc"]) if k != 1 or part not in MEMORY_KINDS
        ]  # pydantic names the kind of the memory, too
        keys += first.get("ctx", {}).get("below", ())
        raise _refused(first, keys, place(keys)) from error


def _refused(first: Any, keys: list[str], span: Span | None) -> MachineError:
    path = ".".join(keys)
    if first["type"] == "extra_forbidden":
        return MachineError(f"unknown key `{path}`", hint=_nearest(keys, first), span=span)
    if first["type"] == "missing":
        return MachineError(f"the key `{path}` is missing", hint=NEEDED.get(path, ""), span=span)
    value = "null" if first["input"] is None else first["input"]
    setting = path if isinstance(first["input"], Mapping | UnitCycles | Lanes) else f"{path}: {shortened(str(value))}"
    message = first["msg"][:1].lower() + first["msg"][1:]
    return MachineError(f"`{setting}`: {message}", hint=first.get("ctx", {}).get("hint", ""), span=span)


def _nearest(keys: list[str], error: Any) -> str:
    """Return a hint to the key that an unknown key might mean: the same key of another memory model, or a similar key."""
    if len(keys) == 1:
        return did_you_mean(keys[-1], (*Machine.model_fields, "base"))
    if keys[0] == SCRATCHPAD:
        return did_you_mean(keys[-1], Scratchpad.model_fields)
    if keys[0] == "lanes":
        return f"the widths are {', '.join(Lanes.widths())} bits"
    if keys[0] in UNIT_TABLES:
        return did_you_mean(keys[-1], UNIT_TABLES[keys[0]].model_fields)
    kind = error["loc"][1]
    others = [f"`{name}`" for name, settings in MEMORY_KINDS.items() if keys[-1] in settings.model_fields and name != OWN_TABLE]
    others += ["every DRAM"] if keys[-1] in MEMORY_KINDS[OWN_TABLE].model_fields else []
    if others:
        listed = " and ".join([", ".join(others[:-1]), others[-1]] if len(others) > 1 else others)
        here = "memory here is a DRAM" if kind == OWN_TABLE else f"model here is `{kind}`"
        return f"it is a key of {listed}; the {here}"
    return did_you_mean(keys[-1], MEMORY_KINDS[kind].model_fields)


def _keys() -> list[str]:
    units = [f"{table}.{unit}" for table, kind in UNIT_TABLES.items() for unit in kind.model_fields]
    memory = [f"memory.{key}" for kind in MEMORY_KINDS.values() for key in kind.model_fields]
    lanes = [f"lanes.{width}" for width in Lanes.widths()]
    scratchpad = [f"scratchpad.{key}" for key in Scratchpad.model_fields]
    return [*Machine.model_fields, *units, *lanes, *memory, *scratchpad]

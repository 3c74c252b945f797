"""JSON schemas (draft 2020-12) of the YAML files that users write, for editors, made from the declarations of their readers.

A schema says which keys there are and which types their values have. What depends on several keys, or on the model, its reader says.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from pydantic import TypeAdapter

from fuseflow.array.settings import ArraySettings
from fuseflow.machine.files import named_machines
from fuseflow.machine.machine import Machine
from fuseflow.memory.settings import HBM2, OWN_TABLE, memory_models
from fuseflow.memory.table_files import KEYS as TABLE_KEYS
from fuseflow.memory.table_files import NUMBERS as TABLE_NUMBERS
from fuseflow.memory.table_files import preset_names
from fuseflow.samml.files import LIST_KEYS
from fuseflow.schedule.section import Named, Section, Word
from fuseflow.schedule.sections import SECTIONS
from fuseflow.sparsity import spec
from fuseflow.sweep.sweep_file import MODES, OBJECTIVES, OneOrMany, SweepContent, TrainingContent

DRAFT = "https://json-schema.org/draft/2020-12/schema"

Schema = dict[str, Any]

WORDS: Schema = {"type": "array", "items": {"type": "string"}}
BYTES: Schema = {
    "type": ["integer", "string"],
    "pattern": r"^\s*[0-9][0-9_]*(\.[0-9]+)?\s*([KMGkmg]?[iI]?[Bb]?)\s*$",
    "minimum": 1,
}


def one_of(values: Iterable[str]) -> Schema:
    return {"enum": [*values]}


def either(*schemas: Schema) -> Schema:
    return {"anyOf": [*schemas]}


def mapping(properties: Schema, **more: Any) -> Schema:
    return {"type": "object", "properties": properties, "additionalProperties": False, **more}


def schedule() -> Schema:
    return mapping({section.key: _section(section) for section in SECTIONS})


def _section(section: Section) -> Schema:
    """Return the schema of a section of a schedule, with its help."""
    about = {"description": section.help} if section.help else {}
    value = plan_operands() if section.key == "plan" else _value(section)
    if not isinstance(section, Named):
        return {**either(value, {"type": "null"}), **about}
    entries: Schema = {"type": "object", "additionalProperties": value}
    return {**(either(entries, one_of(section.policy.words)) if section.policy else entries), **about}


def _value(section: Section) -> Schema:
    """Return the schema of the value of a section, or of that of each of its names."""
    if isinstance(section, Word):
        return one_of(section.words)
    if section.key == "place":
        return one_of(["scratchpad"])
    if section.key == "buffer":
        return BYTES
    if section.of == list[str]:  # or one text with commas
        return either({"type": "string"}, WORDS)
    declared: Schema = TypeAdapter(section.of).json_schema()
    if isinstance(section, Named) and section.number is not None:
        declared["minimum"] = section.number.least
        declared |= {"maximum": section.number.most} if section.number.most else {}
    return declared


def plan_operands() -> Schema:
    """Return the schema of the operands of a plan."""
    part = mapping({"form": {"type": "string"}, "dtype": {"type": "string"}, "weight": {"type": "number"}}, required=["form"])
    return either(one_of(["auto"]), {"type": "object", "additionalProperties": {"type": "array", "items": part}})


def plan() -> Schema:
    return mapping({"operands": plan_operands()})


def machine() -> Schema:
    """Return the schema of a machine file. A file with a base needs no other key, and its tables have the keys that differ."""
    schema = _flat(Machine)
    keys = schema["properties"]
    keys["base"] = {
        "type": "string",
        "description": "A machine, or a file beside this one, from which this one differs.",
        "examples": [*named_machines()],
    }
    keys["memory"] = either(one_of(memory_models()), *(_memory(kind) for kind in keys["memory"]["anyOf"]))
    keys["scratchpad"] = either(BYTES, {"type": "null"}, {**keys["scratchpad"]["anyOf"][0], "required": []})
    schema["required"] = []
    return schema


def _memory(kind: Schema) -> Schema:
    """Return the schema of the settings of one kind of memory."""
    keys = dict(kind["properties"])
    if "table" in keys:
        keys["model"] = {"enum": [OWN_TABLE, *preset_names()], "default": HBM2}
        numbers = {
            **{key: {"type": "integer"} for key in TABLE_NUMBERS},
            "base": one_of(preset_names()),
            "controller": {"type": "string"},
        }
        keys["table"] = {"type": "object", "properties": numbers, "propertyNames": one_of(TABLE_KEYS)}
        keys["queue"] = either({"type": "integer"}, keys["queue"])  # one number is that of both
    return {**kind, "properties": keys, "required": []}


def array() -> Schema:
    """Return the schema of an array file, whose other keys are not read."""
    schema = _flat(ArraySettings)
    return {"type": "object", "properties": {"array": schema}, "required": ["array"]}


def tensors() -> Schema:
    names: Schema = {"type": "array", "items": {"type": ["string", "number", "boolean", "null"]}}
    entry = mapping({"path": {"type": ["string", "number", "boolean"]}, **dict.fromkeys(LIST_KEYS, names)}, required=["path"])
    return {"type": ["object", "null"], "additionalProperties": entry}


def sweep() -> Schema:
    schema = _flat(SweepContent)
    keys = schema["properties"]
    for name, field in SweepContent.model_fields.items():
        if OneOrMany in field.metadata:
            keys[name] = _or_one(keys[name])
    keys["data"] = either(_or_one(keys["data"]["anyOf"][0]), {"type": "null"})
    keys["tensors"] = either(_or_one(keys["tensors"]["anyOf"][0]), {"type": "null"})
    entry = either(_flat(TrainingContent), {"type": "boolean"}, {"type": "null"})
    keys["train"] = either(entry, {"type": "array", "items": entry, "minItems": 1})
    keys["mode"], keys["objective"] = one_of(MODES), one_of(OBJECTIVES)
    sections = schedule()
    varied = {key: {"type": "array", "items": value, "minItems": 1} for key, value in sections["properties"].items()}
    named = {**sections, "properties": {"name": {"type": "string"}, **sections["properties"]}}
    keys["schedules"] = {"type": "array", "items": either({"type": "string"}, named), "minItems": 1}
    keys["vary"] = mapping(varied)
    return schema


def _or_one(many: Schema) -> Schema:
    return either(many["items"], many)


def sparsity() -> Schema:
    text = {"type": "string"}
    output = mapping(dict.fromkeys(spec.OUTPUT_KEYS, text))
    sections = {
        section: {"type": "object", "additionalProperties": mapping({**dict.fromkeys(keys, text), "grad": output})}
        for section, keys in spec.KEYS.items()
    }
    return {**mapping(sections), "type": ["object", "null"]}


def _flat(model: type[Any]) -> Schema:
    """Return the schema of a declaration without references to definitions, so that each part can be changed by itself."""
    schema = model.model_json_schema(mode="validation")
    definitions = schema.pop("$defs", {})

    def plain(value: Any) -> Any:
        if isinstance(value, dict):
            if "$ref" in value:
                name = value["$ref"].rpartition("/")[2]
                return plain({**definitions[name], **{key: inner for key, inner in value.items() if key != "$ref"}})
            return {
                ("anyOf" if key == "oneOf" else key): plain(inner)
                for key, inner in value.items()
                if key not in ("title", "discriminator")
            }
        return [plain(inner) for inner in value] if isinstance(value, list) else value

    flat: Schema = plain(schema)
    return flat


KINDS = {
    "schedule": (schedule, "A schedule of fuseflow"),
    "plan": (plan, "A plan of fuseflow: operands that are divided into parts"),
    "machine": (machine, "A machine of fuseflow"),
    "array": (array, "An array of tiles, for fuseflow"),
    "tensors": (tensors, "A list of the tensors of a program or a graph, for fuseflow"),
    "sweep": (sweep, "A sweep of fuseflow"),
    "sparsity": (sparsity, "A sparsity spec of fuseflow"),
}
"""The schema of each kind of file, with its title."""


def schema_text(kind: str) -> str:
    """Return the schema of a kind of file, as JSON."""
    make, title = KINDS[kind]
    schema = {"$schema": DRAFT, "title": title, **make()}
    return json.dumps(schema, indent=1, ensure_ascii=False) + "\n"

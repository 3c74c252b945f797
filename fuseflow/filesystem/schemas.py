"""JSON schemas (draft 2020-12) of the YAML files that users write, for editors. `python tools/schemas.py` makes them from the declarations
of the readers, which alone decide what a file may say."""

from __future__ import annotations

from importlib import resources

KINDS = ("schedule", "plan", "machine", "array", "tensors", "sweep", "sparsity")
"""The kinds of files."""


def schema_file(kind: str) -> str:
    """Return the name of the file of a schema."""
    return f"{kind}.schema.json"


def schema_text(kind: str) -> str:
    """Return the schema of a kind of file, as JSON."""
    return resources.files("fuseflow").joinpath("schemas", schema_file(kind)).read_text(encoding="utf-8")


def with_schema(kind: str, text: str) -> str:
    """Return a YAML text below a line that tells editors its schema: a file beside it, which `fuseflow schema KIND -o` writes.

    >>> with_schema("machine", "base: rda\\n")
    '# yaml-language-server: $schema=machine.schema.json\\nbase: rda\\n'
    """
    return f"# yaml-language-server: $schema={schema_file(kind)}\n{text}"

"""Names of the JSON schemas of YAML files, which `fuseflow.interface.schemas` makes."""

from __future__ import annotations

KINDS = ("schedule", "plan", "machine", "array", "tensors", "sweep", "sparsity")
"""The kinds of files."""


def schema_file(kind: str) -> str:
    """Return the name of the file of a schema."""
    return f"{kind}.schema.json"


def with_schema(kind: str, text: str) -> str:
    """Return a YAML text below a line that tells editors its schema: a file beside it, which `fuseflow schema KIND -o` writes.

    >>> with_schema("machine", "base: rda\\n")
    '# yaml-language-server: $schema=machine.schema.json\\nbase: rda\\n'
    """
    return f"# yaml-language-server: $schema={schema_file(kind)}\n{text}"

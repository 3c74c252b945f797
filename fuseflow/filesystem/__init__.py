"""Reading and writing the files of users.

A file that is read is bounded in its size, and in its depth if it is JSON. A file that is written appears in one step, so that a
reader sees the old file or the new one, never half of it.
"""

from fuseflow.filesystem.directory_replacement import list_files, refuse_foreign_files, replace_directory
from fuseflow.filesystem.reading import parse_json, read_bytes, read_json, read_text
from fuseflow.filesystem.replacement import json_text, replace_file, write_text

__all__ = [
    "json_text",
    "list_files",
    "parse_json",
    "read_bytes",
    "read_json",
    "read_text",
    "refuse_foreign_files",
    "replace_directory",
    "replace_file",
    "write_text",
]

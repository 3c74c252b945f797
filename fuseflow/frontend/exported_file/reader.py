"""The reader of exported programs: a file becomes a program of PyTorch, without running anything in it."""

from __future__ import annotations

from pathlib import Path

from torch._export.serde import schema
from torch._export.serde.serialize import ExportedProgramDeserializer, _dict_to_dataclass
from torch.export import ExportedProgram

from fuseflow.errors import FileError
from fuseflow.frontend.exported_file.archive import HINT_SAVE, read_archive
from fuseflow.frontend.exported_file.description import checked_description
from fuseflow.frontend.exported_file.payload import sample_inputs, stored_tensors
from fuseflow.frontend.quiet import quiet


def read_exported_program(path: Path) -> ExportedProgram:
    """Read a file that `torch.export.save` wrote. Raise `FileError` for any other one, and for one that would need more than tensors."""
    label, members = f"`{path}`", read_archive(path)
    names = [name for name in members if name.startswith("models/") and name.endswith(".json")]
    if len(names) != 1:
        old = "serialized_exported_program.json" in members
        problem = "was written by an older PyTorch" if old else f"holds {len(names)} exported programs, not one"
        raise FileError(f"{label} {problem}", hint=HINT_SAVE)
    model = names[0].removeprefix("models/").removesuffix(".json")
    description = checked_description(members[names[0]], label)
    weights = stored_tensors(members, "data/weights", f"data/weights/{model}_weights_config.json", label)
    constants = stored_tensors(members, "data/constants", f"data/constants/{model}_constants_config.json", label)
    inputs = sample_inputs(members.get(f"data/sample_inputs/{model}.pt", b""), label)
    try:
        with quiet():
            program = _dict_to_dataclass(schema.ExportedProgram, description)  # type: ignore[no-untyped-call]
            exported: ExportedProgram = ExportedProgramDeserializer().deserialize(program, weights, constants, inputs)
    except Exception as error:  # a file may be wrong in every way
        message = (
            f"{label} has no graph that this PyTorch can read: {type(error).__name__}: {str(error).partition(chr(10))[0][:200]}"
        )
        raise FileError(message, hint=HINT_SAVE) from error
    return exported

"""The archive of an exported program: a zip file whose members are stored without compression, so that it holds no more than its size."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from io import BytesIO
from pathlib import Path

from fuseflow.errors import FileError
from fuseflow.filesystem import read_bytes

_MOST_MEMBERS = 100_000
HINT_SAVE = "write it with `torch.export.save(torch.export.export(model, inputs), path)`"


def read_archive(path: Path) -> Mapping[str, bytes]:
    """Return the members of an archive by name, without the folder that all are in. Raise `FileError` if they cannot be read safely."""
    return archive_members(read_bytes(path, "the exported program"), f"`{path}`")


def archive_members(content: bytes, label: str) -> Mapping[str, bytes]:
    """Return the members of an archive in memory, which messages call `label`."""
    try:
        with zipfile.ZipFile(BytesIO(content)) as archive:
            infos = archive.infolist()
            _require_stored(infos, len(content), label)
            members = {info.filename.partition("/")[2]: archive.read(info) for info in infos}
    except (zipfile.BadZipFile, NotImplementedError, EOFError, ValueError, RuntimeError, OSError) as error:
        raise FileError(f"{label} is not a whole archive of PyTorch: {error}", hint=HINT_SAVE) from error
    if len(members) != len(infos) or len({info.filename.partition("/")[0] for info in infos}) != 1:
        raise FileError(f"{label} has two members of one name, or members in several folders", hint=HINT_SAVE)
    return members


def _require_stored(infos: list[zipfile.ZipInfo], size: int, label: str) -> None:
    """Raise `FileError` for members, `infos`, that are larger than the file that holds them: a small file must not fill
    memory."""
    if len(infos) > _MOST_MEMBERS or sum(info.file_size for info in infos) > size:
        raise FileError(f"{label} says that it holds more than its {size:,} bytes", hint=HINT_SAVE)
    for info in infos:
        if info.compress_type != zipfile.ZIP_STORED or info.flag_bits & 1:
            raise FileError(f"{label} has a compressed or encrypted member, `{info.filename}`", hint=HINT_SAVE)

"""Random files of sparse matrices and of programs, each read beside an independent reader: the same numbers, or a refusal that says why.

A MatrixMarket file is written from numbers that are known, in all spellings that the format has: exponents of Fortran, signs, leading
zeros, comments, blank lines, every symmetry. scipy reads a text with the same numbers in one plain spelling. Half of the files are then
changed in one line against the format, and must be refused with the number of that line. An archive is written by scipy, or by the package
`sparse` where it is installed, and read again by what wrote it; half of them have a fill value, a coordinate outside, or entries of one
coordinate whose sum is too large. An exported program is read and run by PyTorch beside the Einsums that are made of it. What must be
refused is given to no other reader.
"""

from __future__ import annotations

import io
import random
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import exported_files
import numpy as np
import numpy.typing as npt
import torch
from scipy import io as scipy_io
from scipy import sparse

from fuseflow.einsum.interpret import evaluate
from fuseflow.einsum.nodes import TensorType
from fuseflow.errors import FuseFlowError
from fuseflow.frontend.model_spec import ModelSpec
from fuseflow.frontend.sources import load
from fuseflow.tensors.array_files import load_array, pack_declared
from fuseflow.tensors.format import Format

try:
    import sparse as sparse_package
except ImportError:
    sparse_package = None

Matrix = npt.NDArray[Any]
_TOO_LARGE = "the sum of the entries at "
FORMATS = ("csr", "csc", "coo", "dense", "dcsr")


@dataclass(frozen=True)
class File:
    """A file, and the matrix in it or what its refusal must say. Elements may differ by `slack`, since floats are added in any order."""

    name: str
    content: bytes
    matrix: Matrix | None
    told: str = ""
    slack: Matrix | float = 0.0


def real(chance: random.Random) -> str:
    """Return a real number in one of its spellings."""
    value = chance.choice(
        (chance.gauss(0, 1), chance.randrange(-9, 10), chance.uniform(-1, 1) * 10.0 ** chance.randrange(-300, 300))
    )
    digits = f"{value:.{chance.randrange(18)}e}" if chance.random() < 0.7 else repr(value)
    digits = digits.replace("e", chance.choice("eEdD"))
    digits = chance.choice((digits, digits, digits, ".5", "5.", "-.25D1", "007", "nan", "-NaN", "inf", "-Infinity", "1e-400"))
    return chance.choice(("", "+", "0")) + digits if digits[0].isdigit() else digits


def integer(chance: random.Random, least: int) -> str:
    value = chance.choice((chance.randrange(-9, 10), chance.randrange(-(2**53), 2**53), chance.randrange(1 - 2**63, 2**63)))
    value = max(least, value)
    return chance.choice(("", "", "+", "00")) + str(value) if value >= 0 else str(value)


NO_REALS = ("1.5+02", "1.5D", "0x1p3", "1_0", "1,5", "1.#QNAN", "1e400", "-1D999", "x", "1 2", "--1", "1e", "infin")
NO_INTEGERS = ("1.5", "2.0", "1e3", "1D3", "nan", "inf", "1_0", "0x1", str(2**63), str(-(2**64)), "1 2", "+")


def mtx(chance: random.Random) -> File:
    """Return a MatrixMarket file."""
    layout = chance.choice(("coordinate", "coordinate", "array"))
    field = chance.choice(("real", "double", "integer", "unsigned-integer", *(["pattern"] if layout == "coordinate" else [])))
    signed = field not in ("pattern", "unsigned-integer")
    symmetry = chance.choice(("general", "symmetric", *(["skew-symmetric", "hermitian"] if signed else [])))
    rows = chance.randrange(2, 6)
    columns = rows if symmetry != "general" else chance.randrange(2, 6)
    least, whole = (0 if field == "unsigned-integer" else 1 - 2**63), field.endswith("integer")
    places = _places(layout, symmetry, rows, columns, chance)
    words = [_entry(layout, field, place, lambda: integer(chance, least) if whole else real(chance)) for place in places]
    sizes = [rows, columns, *([len(words)] if layout == "coordinate" else [])]
    header = f"%%MatrixMarket matrix {layout} {field} {symmetry}"
    plain = "\n".join([header, " ".join(map(str, sizes)), *(" ".join(_plain(w, layout, whole)) for w in words)]) + "\n"
    lines, at = _spread(header, sizes, words, chance)
    if chance.random() < 0.5:
        return File("a.mtx", "\n".join(lines).encode(), *_read_plain(plain))
    return _broken(lines, at, words, (layout, field, symmetry, rows, columns), chance)


def _read_plain(plain: str) -> tuple[Matrix | None, str, Matrix | float]:
    """Return the matrix that scipy reads from a text, what its refusal says if a sum is too large, and the slack of its elements."""
    found = scipy_io.mmread(io.BytesIO(plain.encode()))
    if not sparse.issparse(found):
        return np.asarray(found), "", 0.0
    found = sparse.coo_array(found)
    coo = sparse.coo_array((found.data.astype(np.int64) if found.dtype.kind == "u" else found.data, found.coords), found.shape)
    several, magnitude = np.zeros(coo.shape), np.zeros(coo.shape)
    np.add.at(several, coo.coords, 1)
    np.add.at(magnitude, coo.coords, np.abs(coo.data))
    return _added(coo), _TOO_LARGE, np.where((several > 1) & np.isfinite(magnitude), 1e-15 * magnitude, 0)


def _added(found: Any) -> Matrix | None:
    """Return the elements of a sparse array of scipy, or None if a sum of integers wraps around."""
    coo = sparse.coo_array(found)
    dense: Matrix = coo.toarray()
    if coo.dtype.kind not in "iu":
        return dense
    exact = np.zeros(coo.shape, dtype=object)
    np.add.at(exact, tuple(np.asarray(axis) for axis in coo.coords), coo.data.astype(object))
    return dense if (exact == dense).all() else None


def _places(layout: str, symmetry: str, rows: int, columns: int, chance: random.Random) -> list[tuple[int, int]]:
    every = [(i, j) for j in range(1, columns + 1) for i in range(1, rows + 1)]
    if symmetry != "general":
        every = [(i, j) for i, j in every if i > j or (i == j and symmetry != "skew-symmetric")]
    if layout == "array":
        return every
    chosen = [chance.choice(every) for _ in range(chance.randrange(2, 8))]
    return [(j, i) for i, j in chosen] if symmetry != "general" and chance.random() < 0.3 else chosen


def _entry(layout: str, field: str, place: tuple[int, int], value: Callable[[], str]) -> list[str]:
    return [*(map(str, place) if layout == "coordinate" else ()), *([] if field == "pattern" else [value()])]


def _plain(words: list[str], layout: str, whole: bool) -> list[str]:
    """Return the words of an entry as Python spells their numbers."""
    places, values = (words[:2], words[2:]) if layout == "coordinate" else ([], words)
    return [*places, *(str(int(v)) if whole else repr(float(v.lower().replace("d", "e"))) for v in values)]


def _spread(header: str, sizes: list[int], words: list[list[str]], chance: random.Random) -> tuple[list[str], list[int]]:
    """Return the lines of a file, with comments and blanks, and the places of the sizes and of each entry among them."""
    between = [" ", "\t", "   "]
    lines = [chance.choice((header, header.upper(), header.replace(" ", "  ")))]
    lines += [chance.choice(("% a comment", "%", "", "  ")) for _ in range(chance.randrange(4))]
    at = [len(lines)]
    lines.append(" ".join(map(str, sizes)))
    for entry in words:
        lines += [chance.choice(("", " ", "\t"))] * (chance.random() < 0.1)
        at.append(len(lines))
        lines.append(chance.choice(("", " ")) + chance.choice(between).join(entry) + chance.choice(("", " ", "\r")))
    return lines + [""] * chance.randrange(3), at


def _broken(
    lines: list[str], at: list[int], words: list[list[str]], kind: tuple[str, str, str, int, int], chance: random.Random
) -> File:
    """Change one line of a file so that it is against the format."""
    layout, field, symmetry, rows, columns = kind
    number = chance.randrange(len(words))
    line, entry = at[1 + number], words[number]
    changes: list[tuple[int, str]] = [(line, " ".join([*entry, "7"])), (line, "% late"), (line, " ".join(entry[:-1]) or "x")]
    if field != "pattern":
        wrong = NO_INTEGERS if field.endswith("integer") else NO_REALS
        changes += [(line, " ".join([*entry[:-1], chance.choice(wrong)]))] * 4
    if field == "unsigned-integer":
        changes.append((line, " ".join([*entry[:-1], "-1"])))
    if layout == "coordinate":
        changes.append((at[0], f"{rows} {columns} {len(words) + chance.choice((-1, 1))}"))
        for axis, size in enumerate((rows, columns)):
            place = chance.choice(("0", "-1", str(size + 1), "1.0", "1e0", "1_0", str(2**63), "x"))
            changes.append((line, " ".join([*entry[:axis], place, *entry[axis + 1 :]])))
        if symmetry == "skew-symmetric":
            changes += [(line, " ".join(["2", "2", *entry[2:]]))] * 3
        sides = [int(i) > int(j) for i, j, *_ in words if i != j]
        if symmetry != "general" and number and sides and len({*sides}) == 1 and any(i != j for i, j, *_ in words[:number]):
            changes += [(line, " ".join([*(("1", "2") if sides[0] else ("2", "1")), *entry[2:]]))] * 4
    if symmetry != "general":
        changes += [(at[0], " ".join([str(rows), str(rows + 1), *([str(len(words))] if layout == "coordinate" else [])]))] * 2
    place, text = chance.choice(changes)
    lines = [*lines[:place], text, *lines[place + 1 :]]
    return File("a.mtx", "\n".join(lines).encode(), None, f"line {place + 1}: ")


TYPES = ("f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "b1")


def npz(chance: random.Random) -> File:
    """Return an archive of scipy or of the package `sparse`."""
    rows, columns, stored = chance.randrange(1, 6), chance.randrange(1, 6), chance.randrange(8)
    type = np.dtype(chance.choice(TYPES))
    places = (
        np.array([[chance.randrange(rows), chance.randrange(columns)] for _ in range(stored)], dtype=np.int64).reshape(-1, 2).T
    )
    large = chance.random() < 0.3 and type.kind in "iu"
    most = int(np.iinfo(type).max) if large else 9
    data = np.array([chance.randrange(0 if type.kind in "ub" else -most, most + 1) for _ in range(stored)]).astype(type)
    coo = sparse.coo_array((data, tuple(places)), shape=(rows, columns))
    stream = io.BytesIO()
    if sparse_package is not None and chance.random() < 0.5:
        return _of_package(coo, stream, chance)
    form = chance.choice(("csr", "csc", "coo", "bsr", "dia"))
    if form != "coo" and _added(coo) is None:
        form = "coo"
    array = coo.asformat(form)
    sparse.save_npz(stream, array, compressed=chance.random() < 0.5)
    if chance.random() < 0.3 and stored and form in ("csr", "csc", "coo"):
        return _changed(stream.getvalue(), form, chance)
    again = sparse.load_npz(io.BytesIO(stream.getvalue()))
    matrix = _added(again)
    return File("a.npz", stream.getvalue(), matrix, _TOO_LARGE)


def _changed(content: bytes, form: str, chance: random.Random) -> File:
    """Return an archive with a coordinate just outside, or whose fill value is not 0."""
    with np.load(io.BytesIO(content)) as archive:
        parts = {name: archive[name] for name in archive.files}
    name = "coords" if "coords" in parts else chance.choice(("row", "col")) if form == "coo" else "indices"
    told = "is no sparse array: "
    if chance.random() < 0.5:
        parts["fill_value"], told = np.array(chance.choice((1.0, -np.inf, np.nan, 3))), "has the fill value "
    else:
        parts[name] = parts[name].copy()
        parts[name].flat[chance.randrange(parts[name].size)] = chance.choice((-1, int(max(parts["shape"]))))
    stream = io.BytesIO()
    np.savez(stream, **parts)
    return File("a.npz", stream.getvalue(), None, told)


def _of_package(coo: Any, stream: io.BytesIO, chance: random.Random) -> File:
    """Return an archive of the package `sparse`, which reads it again."""
    fill = chance.choice((0, 0, 0, 1, -np.inf if coo.dtype.kind == "f" else 1))
    array = sparse_package.COO(np.array(coo.coords), coo.data, shape=coo.shape, fill_value=coo.dtype.type(fill))
    compressed = chance.random() < 0.2
    sparse_package.save_npz(stream, sparse_package.GCXS.from_coo(array) if compressed else array)
    if compressed or fill != 0:
        return File("a.npz", stream.getvalue(), None, "GCXS array" if compressed else "has the fill value ")
    return File("a.npz", stream.getvalue(), sparse_package.load_npz(io.BytesIO(stream.getvalue())).todense())


EXPORTS = 200
"""Different exported programs, the same for every seed: exporting takes the longest. Files have other weights, or a change."""


@lru_cache(maxsize=EXPORTS)
def _exported(number: int) -> bytes:
    return exported_files.exported(random.Random(number))


def pt2(chance: random.Random) -> File:
    """Return a file of an exported program."""
    content = _exported(chance.randrange(EXPORTS))
    if chance.random() < 0.5:
        changed, told = exported_files.broken(content, chance)
        return File("a.pt2", changed, None, told)
    content = exported_files.with_other_numbers(content, chance)
    value = exported_files.computed(content)
    slack = 1e-5 if value.dtype == torch.float32 else 1e-12
    matrix = value.double().numpy()
    return File("a.pt2", content, matrix, slack=slack * (np.abs(matrix) + float(np.abs(matrix).max(initial=1.0))))


KINDS: dict[str, Callable[[random.Random], File]] = {"mtx": mtx, "npz": npz, "pt2": pt2}


def _read(path: Path, chance: random.Random) -> Matrix:
    """Return the elements in a file, or what the program in it gives."""
    if path.suffix == ".pt2":
        source = load(ModelSpec(path))
        arrays = {name: tensor.to_dense() for name, tensor in source.tensors.items()}
        (output,) = source.program.outputs
        return evaluate(source.program, arrays)[output]
    array = load_array(path)
    packed = pack_declared(array, TensorType("A", array.shape, Format.parse(chance.choice(FORMATS), 2), "f64"))
    return packed.to_dense()


def compare(file: File, folder: Path, chance: random.Random) -> tuple[str, str]:
    """Return what became of a file: `same`, `refused`, or `fault` with what is wrong."""
    path = folder / file.name
    path.write_bytes(file.content)
    try:
        found = _read(path, chance)
    except FuseFlowError as error:
        told = str(error)
        right = file.matrix is None and file.told in told
        return (
            ("refused", "")
            if right
            else ("fault", f"refused: {told}; expected {'numbers' if file.matrix is not None else file.told}")
        )
    if file.matrix is None:
        return "fault", f"read as {found.tolist()}, and not refused ({file.told})"
    expected = file.matrix.astype(np.float64)
    with np.errstate(invalid="ignore"):
        same = bool(
            ((found == expected) | (np.isnan(found) & np.isnan(expected)) | (np.abs(found - expected) <= file.slack)).all()
        )
    return ("same", "") if same else ("fault", f"read as {found.tolist()}, and not as {file.matrix.tolist()}")

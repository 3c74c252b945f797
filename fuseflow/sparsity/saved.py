"""Sparse weights in a directory: `spec.yaml`, and `weights.npz` with the masks and the values that they keep. Nothing in it is a pickle."""

from __future__ import annotations

import json
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Set
from contextlib import contextmanager
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from fuseflow.errors import FileError, SparsityError, did_you_mean
from fuseflow.filesystem import read_json, replace_directory
from fuseflow.sparsity.intermediates import install
from fuseflow.sparsity.layouts.layout import require_fit
from fuseflow.sparsity.model_sparsity import ModelSparsity, SparseWeight, require_zeros, set_sparsity, sparse_weights, sparsity_of
from fuseflow.sparsity.numpy_arrays import mask_of, values_of
from fuseflow.sparsity.spec import MANIFEST, SPEC_FILE, IntermediateEntry, SparseSpec, last_match, read_spec, require_matches
from fuseflow.sparsity.weights import make_dense, require_real

_MAGIC = b"\x93NUMPY\x01\x00"
_HINT = "save it again"
_BROKEN = (OSError, ValueError, EOFError, NotImplementedError, RuntimeError, zipfile.BadZipFile, zipfile.LargeZipFile, zlib.error)
"""The errors of reading an archive that is cut off, encrypted or no archive."""


class SavedArrays:
    """The arrays of an archive of NumPy by name. Their shapes and types are known before they are read, so that no archive fills
    the memory."""

    def __init__(self, path: Path, archive: zipfile.ZipFile) -> None:
        self._path, self._archive = path, archive

    def require_names(self, names: Set[str]) -> None:
        """Raise `FileError` if the archive has not exactly the arrays of these names."""
        there = {info.filename.removesuffix(".npy") for info in self._archive.infolist()}
        if there != names:
            name = min(there ^ names)
            raise FileError(f"`{self._path}` {'has an unknown' if name in there else 'lacks the'} array `{name}`", hint=_HINT)

    def read(self, name: str, shape: tuple[int, ...], dtype: np.dtype[Any]) -> npt.NDArray[Any]:
        """Return an array. Raise `FileError` if it has another shape or type, before there is memory for it."""
        header, values = self._parts(name, prod(shape) * dtype.itemsize)
        expected = f"{{'descr': {np.lib.format.dtype_to_descr(dtype)!r}, 'fortran_order': False, 'shape': {shape}, }}"
        if header != expected:
            raise FileError(f"`{name}` in `{self._path}` is no array of {dtype} in the shape {list(shape)}", hint=_HINT)
        if len(values) != prod(shape) * dtype.itemsize:
            raise FileError(f"`{name}` in `{self._path}` is cut off", hint=_HINT)
        return np.frombuffer(values, dtype).reshape(shape)

    def _parts(self, name: str, size: int) -> tuple[str, bytes]:
        """Return the header of an array, and up to `size` + 1 bytes of its values. One more byte means too many."""
        try:
            info = self._archive.getinfo(f"{name}.npy")
            if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):  # Others are not unpacked part by part.
                raise ValueError("it is packed in an unknown way")
            with self._archive.open(info) as file:
                start = file.read(len(_MAGIC) + 2)
                length = int.from_bytes(start[len(_MAGIC) :], "little")
                if not start.startswith(_MAGIC):
                    raise ValueError("it is no array of NumPy")
                header = file.read(length)
                return header.decode("latin-1").rstrip(), file.read(size + 1)
        except (KeyError, *_BROKEN) as error:
            raise FileError(f"cannot read `{name}` in `{self._path}`: {error}", hint=_HINT) from None


@contextmanager
def saved_arrays(path: Path) -> Iterator[SavedArrays]:
    """Yield the arrays of an archive while it is open. Raise `FileError` for a file that is no archive."""
    if not path.is_file():
        raise FileError(f"cannot read `{path}`: there is no such file", hint=_HINT)
    try:
        archive = zipfile.ZipFile(path)
    except _BROKEN as error:
        raise FileError(f"cannot read `{path}`: {error}", hint=_HINT) from None
    with archive:
        yield SavedArrays(path, archive)


WEIGHTS = "weights.npz"
SCHEMA = 1
"""The version of the form of a directory."""


def save_sparsity(model: nn.Module, directory: Path) -> None:
    """Write the sparse weights of a model, with their masks and rules, to a directory, which `load_sparsity` reads.

    Raise `SparsityError` for a dense model, for one that was trained without its masks and for weights that are not finite, and `FileError`
    if the directory cannot be written.
    """
    weights, rules = _weights(model), _rules(model)
    if not weights and not rules:
        raise SparsityError("the model is dense", hint="make it sparse first, with a `SparsityBuilder`")
    spec = SparseSpec(tuple((name, weight.entry) for name, (_, weight) in weights.items()), tuple(rules.items()))
    text = _spec_text(spec)
    arrays: dict[str, npt.NDArray[Any]] = {}
    for name, (parameter, weight) in weights.items():
        require_zeros(name, parameter, weight.mask)
        mask = values_of(weight.mask)
        arrays[f"mask/{name}"], arrays[f"values/{name}"] = np.packbits(mask.reshape(-1)), values_of(parameter)[mask]
        if not np.isfinite(arrays[f"values/{name}"]).all():
            raise SparsityError(f"the weight `{name}` has numbers that are not finite", hint="save a model that can compute")
    shapes = {name: list(parameter.shape) for name, (parameter, _) in weights.items()}
    with replace_directory(directory, MANIFEST) as temporary:
        (temporary / SPEC_FILE).write_text(text, encoding="utf-8")
        np.savez_compressed(temporary / WEIGHTS, **arrays)  # type: ignore[arg-type]
        manifest = {"schema": SCHEMA, "files": [SPEC_FILE, WEIGHTS, MANIFEST], "shapes": shapes}
        (temporary / MANIFEST).write_text(json.dumps(manifest, indent=1) + "\n", encoding="utf-8")


def _spec_text(spec: SparseSpec) -> str:
    """Return a spec as YAML. Raise `SparsityError` for one that cannot be read again."""
    text = spec.to_yaml()
    try:
        SparseSpec.from_yaml(text)
    except SparsityError as error:
        raise SparsityError(
            f"a rule of the model has no text: {error.message}",
            hint="register yours with `sp.register_sparsifier` and `sp.register_layout`",
        ) from None
    return text


def load_sparsity(model: nn.Module, directory: Path) -> None:
    """Give a dense model the sparse weights of a directory. A failure leaves it as it was.

    Raise `FileError` for a directory that `save_sparsity` did not write, and `SparsityError` for one of another model.
    """
    if any(sparsity_of(module) is not None for module in model.modules()):
        raise SparsityError("the model is sparse already", hint="load into the dense model")
    shapes = _manifest(directory)
    spec = read_spec(directory / SPEC_FILE)
    parameters = dict(model.named_parameters())  # A tied weight under its first name alone.
    for name, shape in shapes.items():
        _require_weight(parameters, name, shape, directory)
    require_matches(spec.weights, shapes, "weight")
    with saved_arrays(directory / WEIGHTS) as arrays:
        arrays.require_names({f"{kind}/{name}" for kind in ("mask", "values") for name in shapes})
        loaded = {name: _loaded(arrays, spec, name, parameters[name], directory) for name in shapes}
    with torch.no_grad():
        for name, (value, _) in loaded.items():
            make_dense(model, name).copy_(value)
    rules = dict(spec.intermediates)
    if rules:
        install(model, rules)
    set_sparsity(model, ModelSparsity({name: weight for name, (_, weight) in loaded.items()}, rules))


def _weights(model: nn.Module) -> dict[str, tuple[Tensor, SparseWeight]]:
    """Return the sparse weights of a model and of the modules inside of it, by the first name that each has in the model."""
    first = {id(parameter): name for name, parameter in model.named_parameters()}
    weights: dict[str, tuple[Tensor, SparseWeight]] = {}
    for _, parameter, weight in sparse_weights(model):
        name = first[id(parameter)]
        if name in weights:
            raise SparsityError(
                f"`{name}` has a rule of the model and one of a module inside", hint="call `sp.clear` on one of them"
            )
        weights[name] = parameter, weight
    return weights


def _rules(model: nn.Module) -> dict[str, IntermediateEntry]:
    """Return the rules of intermediates of a model and of the modules inside of it."""
    states = {path: sparsity_of(module) for path, module in model.named_modules()}
    return {
        f"{path}.{name}" if path else name: entry
        for path, state in states.items()
        if state is not None
        for name, entry in state.intermediates.items()
    }


def _require_weight(parameters: Mapping[str, Tensor], name: str, shape: list[int], directory: Path) -> None:
    """Raise `SparsityError` if a model has no weight of this name and shape."""
    if name not in parameters:
        raise SparsityError(f"`{directory}` has a weight `{name}`, the model has not", hint=did_you_mean(name, parameters))
    require_real(name, parameters[name])
    known = list(parameters[name].shape)
    if known != shape:
        raise SparsityError(
            f"`{directory}` has the weight `{name}` in the shape {shape}, the model in {known}",
            hint="load it into the model that was saved",
        )


def _loaded(arrays: SavedArrays, spec: SparseSpec, name: str, parameter: Tensor, directory: Path) -> tuple[Tensor, SparseWeight]:
    """Return the values of a weight, and its rule and mask, as read from a directory."""
    entry = last_match(spec.weights, name)
    if entry is None:
        raise FileError(f"`{directory / SPEC_FILE}` has no entry for the weight `{name}`", hint="save it again")
    size, shape = prod(parameter.shape), tuple(parameter.shape)
    bits = arrays.read(f"mask/{name}", (-(-size // 8),), np.dtype(np.uint8))
    mask = np.unpackbits(bits, count=size).astype(bool).reshape(shape)
    weight = SparseWeight(entry, mask_of(mask, parameter))
    require_fit(entry.layout, weight.mask, name)
    dtype = values_of(torch.empty(0, dtype=parameter.dtype)).dtype
    dense = np.zeros(shape, dtype)
    dense[mask] = arrays.read(f"values/{name}", (int(mask.sum()),), dtype)
    value = torch.from_numpy(dense).to(device=parameter.device, dtype=parameter.dtype)
    if not np.isfinite(dense).all() or not np.array_equal(values_of(value), dense):
        kind = str(parameter.dtype).removeprefix("torch.")
        raise FileError(f"`{name}` in `{directory / WEIGHTS}` has numbers that are not finite or no {kind}", hint="save it again")
    return value, weight


def _manifest(directory: Path) -> dict[str, list[int]]:
    """Return the shapes of the weights in a directory."""
    hint = "name a directory that `fuseflow sparsify -o` wrote"
    if not (directory / MANIFEST).is_file():
        raise FileError(f"`{directory}` holds no sparse weights: it has no file `{MANIFEST}`", hint=hint)
    manifest = read_json(directory / MANIFEST, hint=hint)
    if not isinstance(manifest, dict) or manifest.get("schema") != SCHEMA:
        version = manifest.get("schema") if isinstance(manifest, dict) else None
        raise FileError(f"`{directory}` has the version {version}, this fuseflow reads {SCHEMA}", hint=hint)
    shapes = manifest.get("shapes")
    if not isinstance(shapes, dict) or not all(_is_shape(shape) for shape in shapes.values()):
        raise FileError(f"`{directory / MANIFEST}` has no shapes of weights", hint=hint)
    return shapes


def _is_shape(value: Any) -> bool:
    return isinstance(value, list) and all(type(size) is int and size >= 0 for size in value)

"""Sparse weights in a directory: `spec.yaml`, and `weights.npz` with the masks and the values that they keep. Nothing in it is a pickle."""

from __future__ import annotations

import json
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from fuseflow.errors import FileError, SparsityError, did_you_mean
from fuseflow.filesystem import replace_directory
from fuseflow.sparsity.arrays import mask_of, values_of
from fuseflow.sparsity.intermediates import install
from fuseflow.sparsity.layouts.layout import require_fit
from fuseflow.sparsity.spec import MANIFEST, SPEC_FILE, SparseSpec, WeightEntry, last_match, read_spec
from fuseflow.sparsity.state import ModelSparsity, SparseWeight, set_sparsity, sparse_weights, sparsity_of
from fuseflow.sparsity.stored_weights import make_dense
from fuseflow.sparsity.weights import require_real, weight_names

WEIGHTS = "weights.npz"
SCHEMA = 1
"""The version of the form of a directory."""

_UNREADABLE = (KeyError, OSError, ValueError, EOFError, RuntimeError, zipfile.BadZipFile, zipfile.LargeZipFile, zlib.error)
"""What reading a damaged archive raises. A damaged header may say that an array is encrypted, or of a later version of the format."""


def save_sparsity(model: nn.Module, directory: Path) -> None:
    """Write the sparse weights of a model, with their masks and rules, to a directory, which `load_sparsity` reads.

    Raise `SparsityError` for a dense model, and `FileError` if the directory cannot be written.
    """
    state = sparsity_of(model)
    if state is None:
        raise SparsityError("the model is dense", hint="make it sparse first, with a `SparsityBuilder`")
    spec = SparseSpec(tuple((name, weight.entry) for name, weight in state.weights.items()), tuple(state.intermediates.items()))
    arrays: dict[str, npt.NDArray[Any]] = {}
    for name, parameter, weight in sparse_weights(model):
        mask = values_of(weight.mask)
        arrays[f"mask/{name}"] = np.packbits(mask.reshape(-1))
        arrays[f"values/{name}"] = values_of(parameter)[mask]
    shapes = {name: list(parameter.shape) for name, parameter, _ in sparse_weights(model)}
    with replace_directory(directory, MANIFEST) as temporary:
        (temporary / SPEC_FILE).write_text(spec.to_yaml(), encoding="utf-8")
        np.savez_compressed(temporary / WEIGHTS, **arrays)  # type: ignore[arg-type]
        manifest = {"schema": SCHEMA, "files": [SPEC_FILE, WEIGHTS, MANIFEST], "shapes": shapes}
        (temporary / MANIFEST).write_text(json.dumps(manifest, indent=1) + "\n", encoding="utf-8")


def load_sparsity(model: nn.Module, directory: Path) -> None:
    """Give a dense model the sparse weights of a directory. A failure leaves it as it was.

    Raise `FileError` for a directory that `save_sparsity` did not write, and `SparsityError` for one of another model.
    """
    if sparsity_of(model) is not None:
        raise SparsityError("the model is sparse already", hint="load into the dense model")
    shapes = _manifest(directory)
    spec = read_spec(directory / SPEC_FILE)
    parameters = {name: dict(model.named_parameters())[name] for name in weight_names(model)}
    weights: dict[str, SparseWeight] = {}
    values: dict[str, torch.Tensor] = {}
    with _archive(directory / WEIGHTS) as archive:
        for name, shape in shapes.items():
            if name not in parameters:
                raise SparsityError(
                    f"`{directory}` has a weight `{name}`, the model has not", hint=did_you_mean(name, parameters)
                )
            parameter = parameters[name]
            require_real(name, parameter)
            if list(parameter.shape) != shape:
                raise SparsityError(
                    f"`{directory}` has the weight `{name}` in the shape {shape}, the model in {list(parameter.shape)}"
                )
            entry: WeightEntry | None = last_match(spec.weights, name)
            if entry is None:
                raise FileError(f"`{directory / SPEC_FILE}` has no entry for the weight `{name}`", hint="save it again")
            mask, kept = _arrays(archive, directory / WEIGHTS, name, shape)
            weights[name] = SparseWeight(entry, mask_of(mask, parameter))
            require_fit(entry.layout, weights[name].mask, name)
            dense = np.zeros(shape, dtype=kept.dtype)
            dense[mask] = kept
            values[name] = torch.from_numpy(dense).to(device=parameter.device, dtype=parameter.dtype)
    with torch.no_grad():
        for name, value in values.items():
            make_dense(model, name).copy_(value)
    rules = dict(spec.intermediates)
    if rules:
        install(model, rules)
    set_sparsity(model, ModelSparsity(weights, rules))


def _manifest(directory: Path) -> dict[str, list[int]]:
    """Return the shapes of the weights in a directory."""
    hint = "name a directory that `fuseflow sparsify -o` wrote"
    try:
        manifest = json.loads((directory / MANIFEST).read_text(encoding="utf-8"))
    except OSError as error:
        raise FileError(f"`{directory}` holds no sparse weights: {error.strerror}", hint=hint) from None
    except ValueError:
        raise FileError(f"`{directory / MANIFEST}` is not JSON", hint=hint) from None
    if not isinstance(manifest, dict) or manifest.get("schema") != SCHEMA:
        version = manifest.get("schema") if isinstance(manifest, dict) else None
        raise FileError(f"`{directory}` has the version {version}, this fuseflow reads {SCHEMA}", hint=hint)
    shapes = manifest.get("shapes")
    if not isinstance(shapes, dict) or not all(_is_shape(shape) for shape in shapes.values()):
        raise FileError(f"`{directory / MANIFEST}` has no shapes of weights", hint=hint)
    return shapes


def _is_shape(value: Any) -> bool:
    return isinstance(value, list) and all(type(size) is int and size >= 0 for size in value)


def _archive(path: Path) -> np.lib.npyio.NpzFile:
    try:
        archive = np.load(path, allow_pickle=False)
    except _UNREADABLE as error:
        raise FileError(f"cannot read `{path}`: {error}", hint="save it again") from None
    if not isinstance(archive, np.lib.npyio.NpzFile):
        raise FileError(f"`{path}` is no archive of arrays", hint="save it again")
    return archive


def _arrays(
    archive: np.lib.npyio.NpzFile, path: Path, name: str, shape: list[int]
) -> tuple[npt.NDArray[np.bool_], npt.NDArray[Any]]:
    """Return the mask of a weight and the values that it keeps."""
    size = int(np.prod(shape, dtype=object))
    try:
        bits, values = archive[f"mask/{name}"], archive[f"values/{name}"]
    except _UNREADABLE as error:
        raise FileError(f"cannot read `{name}` in `{path}`: {error}", hint="save it again") from None
    if bits.dtype != np.uint8 or bits.shape != (-(-size // 8),) or values.dtype.kind != "f":
        raise FileError(f"`{name}` in `{path}` does not have the shape that the directory says", hint="save it again")
    mask = np.unpackbits(bits, count=size).astype(bool).reshape(shape)
    if values.shape != (int(mask.sum()),):
        raise FileError(f"`{name}` in `{path}` has {values.size} values, and its mask keeps {mask.sum()}", hint="save it again")
    return mask, values

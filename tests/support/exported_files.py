"""Random exported programs in files, with what PyTorch computes when it reads them, and such files with one change against the format."""

from __future__ import annotations

import io
import json
import random
import warnings
import zipfile
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

Members = dict[str, bytes]

MODEL, WEIGHTS, SAMPLES = "models/model.json", "data/weights/model_weights_config.json", "data/sample_inputs/model.pt"
FLOATS = (torch.float16, torch.bfloat16, torch.float8_e4m3fn, torch.float8_e5m2)
NARROW = (*FLOATS, torch.int8, torch.uint8, torch.int16, torch.int32, torch.int64, torch.bool)


class Chain(nn.Module):
    """A chain of one to four steps on a matrix, with weights in every layout that a tensor has: transposed, parts of others, narrow."""

    def __init__(self, chance: random.Random, size: int, dtype: torch.dtype) -> None:
        super().__init__()
        self.steps = [chance.choice(STEPS) for _ in range(chance.randrange(1, 5))]
        for number, step in enumerate(self.steps):
            tensor = getattr(self, f"_{step}")(chance, size, dtype)
            is_parameter = tensor.is_floating_point() and chance.random() < 0.5
            (self.register_parameter if is_parameter else self.register_buffer)(
                f"t{number}", nn.Parameter(tensor) if is_parameter else tensor
            )
        self.constant = chance.random() < 0.3

    def forward(self, a: Tensor, x: Tensor, *, scale: Tensor) -> Tensor:
        y = a @ x
        for number, step in enumerate(self.steps):
            y = APPLY[step](y, getattr(self, f"t{number}"))
        return y * torch.tensor(0.5, dtype=y.dtype) + scale if self.constant else y + scale

    @staticmethod
    def _weight(chance: random.Random, size: int, dtype: torch.dtype) -> Tensor:
        weight = torch.randn(size, size, dtype=dtype)
        return chance.choice((weight, weight.t(), torch.randn(2 * size, size, dtype=dtype)[::2], weight[0].expand(size, size)))

    @staticmethod
    def _bias(chance: random.Random, size: int, dtype: torch.dtype) -> Tensor:
        start = chance.randrange(3)
        return torch.randn(size + 3, dtype=dtype)[start : start + size]

    @staticmethod
    def _narrow(chance: random.Random, size: int, dtype: torch.dtype) -> Tensor:
        return torch.randint(0, 2, (size,)).to(chance.choice(NARROW))

    @staticmethod
    def _mask(chance: random.Random, size: int, dtype: torch.dtype) -> Tensor:
        return torch.rand(size, size) < chance.choice((0.0, 0.3, 1.0))

    @staticmethod
    def _rows(chance: random.Random, size: int, dtype: torch.dtype) -> Tensor:
        return torch.randint(0, size, (size,))


STEPS = ("weight", "weight", "bias", "narrow", "mask", "rows")
APPLY: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "weight": lambda y, t: torch.relu(y @ t),
    "bias": lambda y, t: y + t,
    "narrow": lambda y, t: y * t.to(y.dtype),
    "mask": lambda y, t: torch.where(t, y, y * 0.25),
    "rows": lambda y, t: y[t],
}


def exported(chance: random.Random) -> bytes:
    """Return the file of a random program: its first input is often sparse, and its second seen in another order."""
    size, dtype = chance.randrange(2, 6), chance.choice((torch.float32, torch.float32, torch.float64))
    torch.manual_seed(chance.randrange(2**31))
    a = torch.randn(size, size, dtype=dtype) * (torch.rand(size, size) < 0.4)
    a = a.to_sparse() if chance.random() < 0.6 else a
    x = chance.choice((torch.randn(size, size, dtype=dtype), torch.randn(size, size, dtype=dtype).t()))
    program = torch.export.export(
        Chain(chance, size, dtype), (a, x), {"scale": torch.randn(chance.choice((1, size)), dtype=dtype)}
    )
    stream = io.BytesIO()
    with warnings.catch_warnings(action="ignore"):
        torch.export.save(program, stream)
    return stream.getvalue()


def computed(content: bytes) -> Tensor:
    """Return what the program in a file gives for the inputs in it, as PyTorch reads and runs it."""
    program = torch.export.load(io.BytesIO(content))
    assert program.example_inputs is not None
    args, kwargs = program.example_inputs
    with torch.no_grad():
        value: Tensor = program.module()(*args, **kwargs)
    return value


def with_other_numbers(content: bytes, chance: random.Random) -> bytes:
    """Return a file with other numbers in the floats of its weights."""
    members = members_of(content)
    for entry in json.loads(members[WEIGHTS])["config"].values():
        if entry["tensor_meta"]["dtype"] in (7, 8):
            name = f"data/weights/{entry['path_name']}"
            dtype = torch.float32 if entry["tensor_meta"]["dtype"] == 7 else torch.float64
            numbers = torch.frombuffer(bytearray(members[name]), dtype=dtype) * chance.uniform(-2, 2)
            members[name] = numbers.numpy().tobytes()
    return archive(members)


def members_of(content: bytes) -> Members:
    with zipfile.ZipFile(io.BytesIO(content)) as file:
        return {name.partition("/")[2]: file.read(name) for name in file.namelist()}


def archive(members: Members, compressed: str = "") -> bytes:
    """Return an archive of members, of which one is compressed."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as file:
        for name, content in members.items():
            kind = zipfile.ZIP_DEFLATED if name == compressed else zipfile.ZIP_STORED
            file.writestr(zipfile.ZipInfo(f"archive/{name}"), content, kind)
    return stream.getvalue()


def broken(content: bytes, chance: random.Random) -> tuple[bytes, str]:
    """Return a file with one change against the format, and what its refusal says."""
    members = members_of(content)
    weights, model = json.loads(members[WEIGHTS]), members[MODEL]
    name = chance.choice(list(weights["config"]))
    entry = weights["config"][name]
    meta, changes = entry["tensor_meta"], {**FILE_CHANGES, **WEIGHT_CHANGES}
    kind = chance.choice(list(changes))
    match kind:
        case "cut":
            return content[: chance.randrange(1, len(content) - 1)], changes[kind]
        case "compressed":
            return archive({**members, "data/note": chance.randbytes(50)}, "data/note"), changes[kind]
        case "no model":
            del members[MODEL]
        case "two models":
            members["models/other.json"] = model
        case "half a model":
            members[MODEL] = model[: chance.randrange(len(model))]
        case "operator":
            members[MODEL] = model.replace(b"torch.ops.aten.add.Tensor", b"torch.ops.aten.add.Tensr")
        case "other operator":
            members[MODEL] = model.replace(b"torch.ops.aten.add.Tensor", b"torch.ops.mine.add.Tensor")
        case "name":
            members[MODEL] = model.replace(b'"scale"', b'"scale of it"')
        case "samples":
            members[SAMPLES] = b"no samples"
        case "no record":
            del members[f"data/weights/{entry['path_name']}"]
        case "type":
            meta["dtype"] = chance.choice((0, 9, 10, 11, 28, 99))
        case "object":
            entry["use_pickle"] = True
        case "size":
            meta["sizes"][0]["as_int"] += 1000
            meta["strides"][0]["as_int"] = 1
        case "negative":
            chance.choice((meta["sizes"][0], meta["strides"][0], meta["storage_offset"]))["as_int"] = -1
        case "no integer":
            meta["sizes"][0]["as_int"] = chance.choice((1.5, "2", None, True))
        case _:
            raise AssertionError(kind)
    members[WEIGHTS] = json.dumps(weights).encode() if kind in WEIGHT_CHANGES else members[WEIGHTS]
    return archive(members), changes[kind]


FILE_CHANGES = {
    "cut": "",  # what is left may end with the archive of the sample inputs
    "compressed": "compressed or encrypted member",
    "no model": "holds 0 exported programs",
    "two models": "holds 2 exported programs",
    "half a model": "malformed description",
    "operator": "which this PyTorch",
    "other operator": "no operator of ATen",
    "name": "a name or a text that",
    "samples": "sample inputs",
    "no record": "has no numbers for",
}
WEIGHT_CHANGES: dict[str, Any] = {
    "type": "element type that fuseflow does not read",
    "object": "as an object of Python",
    "size": "malformed weights",
    "negative": "malformed weights",
    "no integer": "malformed weights",
}
"""What the refusal of each change says: of a file, and of what describes its weights."""

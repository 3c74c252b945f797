"""Exported programs in files: what they give, and hostile files, none of which may run code, fill the memory or end in a traceback.

Each hostile file is a good file with one change. Where it could make a file on the disk, it must not be there.
"""

from __future__ import annotations

import contextlib
import io
import json
import pickle
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import fuseflow as ff
from fuseflow.errors import FileError, FuseFlowError, UsageError
from fuseflow.frontend.exported_file.description import _is_size


class Net(nn.Module):
    """A model with a dynamic size, an index, keyword arguments, and outputs in containers."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.layers = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.BatchNorm1d(8))
        self.table = nn.Embedding(5, 8)
        self.register_buffer("scale", torch.full((8,), 0.5))

    def forward(self, x: Tensor, ids: Tensor, *, shift: Tensor) -> dict[str, Tensor]:
        y = (self.layers(x) + shift) * self.scale
        return {"y": y, "rows": y.reshape(x.shape[0] * 2, 4).sum(1), "table": self.table(ids)}


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("exported") / "net.pt2"
    batch = torch.export.Dim("batch", min=2, max=64)
    shapes = {"x": {0: batch}, "ids": None, "shift": None}
    args, kwargs = (torch.rand(3, 4), torch.tensor([1, 2])), {"shift": torch.rand(8)}
    torch.export.save(torch.export.export(Net().eval(), args, kwargs, dynamic_shapes=shapes), path)
    return path


def test_a_file_runs_on_the_inputs_that_it_was_exported_with(saved: Path) -> None:
    compiled = ff.compile(saved, schedule=ff.Schedule.fuse("layers.0"))
    assert compiled.name == "net"
    assert compiled.run().check.passed
    paths = {e.location.path for e in compiled.program.einsums}
    assert {"layers.0", "layers.2"} <= paths
    assert {"layers.0.weight", "x", "shift"} <= {t.name for t in compiled.program.inputs}


def test_a_file_gives_what_the_model_gives(saved: Path) -> None:
    x, ids, shift = torch.rand(7, 4), torch.tensor([0, 4]), torch.rand(8)
    expected = Net().eval()(x, ids, shift=shift)
    for result in (
        ff.compile(saved, (x, ids), kwargs={"shift": shift}).run(),
        ff.compile(saved, tensors={"x": x.numpy(), "ids": ids.numpy(), "shift": shift.numpy()}).run(),
    ):
        outputs = list(result.outputs.values())
        for output, wanted in zip(outputs, expected.values(), strict=True):
            np.testing.assert_allclose(output, wanted.detach().numpy(), rtol=1e-5, atol=1e-6)


def test_arrays_in_files(saved: Path, tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.ones((5, 4), dtype=np.float32))
    np.save(tmp_path / "ids.npy", np.array([0, 1]))
    np.save(tmp_path / "shift.npy", np.zeros(8, dtype=np.float32))
    listing = tmp_path / "inputs.yaml"
    listing.write_text("x: {path: x.npy}\nids: {path: ids.npy}\nshift: {path: shift.npy}\n")
    assert ff.compile(saved, tensors=listing).program.declared["x"].shape == (5, 4)


def test_dynamic_dimensions(saved: Path) -> None:
    compiled = ff.compile(saved, dims={"x.0": 7})
    assert compiled.program.declared["x"].shape == (7, 4)
    assert compiled.run().check.passed
    again, other = ff.compile(saved, dims={"x.0": 7}), ff.compile(saved, dims={"x.0": 7}, seed=1)
    x = [c.source.tensors["x"].to_dense() for c in (compiled, again, other)]
    assert np.array_equal(x[0], x[1]) and not np.array_equal(x[0], x[2])


@pytest.mark.parametrize(
    ("dims", "message"),
    [
        ({"x.1": 9}, "dimension 1 of `x` is fixed at 4"),
        ({"y.0": 9}, "no dimension `y.0`"),
        ({"x.2": 9}, "no dimension 2"),
        ({"x.0": 65}, "out of range: the program takes 2 to 64"),
    ],
)
def test_dimensions_that_cannot_be_given(saved: Path, dims: dict[str, int], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        ff.compile(saved, dims=dims)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"tensors": {"y": 1}}, "no input `y`"),
        ({"tensors": {"x": np.ones((3, 5))}}, r"shape \(3, 5\), and the program takes"),
        ({"data": "karate"}, "takes no `data`"),
        ({"options": {"a": 1}}, "takes no `options`"),
        ({"inputs": (), "tensors": {}}, "takes no `tensors`"),
    ],
)
def test_inputs_that_do_not_fit(saved: Path, arguments: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        ff.compile(saved, **arguments)  # type: ignore[arg-type]


class Equation(nn.Module):
    def forward(self, a: Tensor, b: Tensor) -> Tensor:
        return torch.einsum("bij,bjk->bik", a, b)


@pytest.mark.parametrize(
    ("model", "inputs"),
    [
        (
            nn.LSTM(4, 3, batch_first=True),
            (torch.rand(1, 3, 4),),
        ),  # PyTorch's own kernel ends the process when this one is traced
        (Equation(), (torch.rand(2, 3, 4), torch.rand(2, 4, 5))),
        (nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), (torch.rand(1, 4, 8),)),
    ],
    ids=["lstm", "einsum", "transformer"],
)
def test_models_in_files(tmp_path: Path, model: nn.Module, inputs: tuple[Tensor, ...]) -> None:
    torch.export.save(torch.export.export(model.eval(), inputs), tmp_path / "model.pt2")
    assert ff.compile(tmp_path / "model.pt2").run().check.passed


def members(path: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def write(path: Path, content: dict[str, bytes], compression: int = zipfile.ZIP_STORED) -> Path:
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, data in content.items():
            archive.writestr(name, data)
    return path


class MakeFile:
    """An object that makes a file when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[object, ...]:
        return open, (str(self.path), "w")


def in_json(content: dict[str, bytes], member: str, change: Callable[[dict], object]) -> None:
    """Change the description in a member."""
    value = json.loads(content[member])
    change(value)
    content[member] = json.dumps(value).encode()


MODEL, WEIGHTS = "net/models/model.json", "net/data/weights/model_weights_config.json"
CONSTANTS, SAMPLES = "net/data/constants/model_constants_config.json", "net/data/sample_inputs/model.pt"


def first_weight(config: dict) -> dict:
    return next(iter(config["config"].values()))


def graph(program: dict) -> dict:
    return program["graph_module"]["graph"]


def root(program: dict) -> dict:
    return program["graph_module"]["module_call_graph"][0]["signature"]


def expression(code: str) -> Callable[[dict], object]:
    def change(program: dict) -> None:
        graph(program)["tensor_values"]["x"]["sizes"][0]["as_expr"]["expr_str"] = code

    return change


def pickled_weight(content: dict[str, bytes], target: Path) -> None:
    in_json(content, WEIGHTS, lambda c: first_weight(c).update(use_pickle=True))
    buffer = io.BytesIO()
    torch.save({"a": MakeFile(target)}, buffer)
    content["net/data/weights/weight_0"] = buffer.getvalue()


def pickled_constant(content: dict[str, bytes], target: Path) -> None:
    entry = {"path_name": "opaque_obj_0", "is_param": False, "use_pickle": True, "tensor_meta": None}
    in_json(content, CONSTANTS, lambda c: c["config"].update(thing=entry))
    content["net/data/constants/opaque_obj_0"] = pickle.dumps(MakeFile(target))


def pickled_samples(content: dict[str, bytes], target: Path) -> None:
    buffer = io.BytesIO()
    torch.save(((MakeFile(target),), {}), buffer)
    content[SAMPLES] = buffer.getvalue()


def bare_pickle(content: dict[str, bytes], target: Path) -> None:
    content[SAMPLES] = pickle.dumps(MakeFile(target))


def expression_with_code(content: dict[str, bytes], target: Path) -> None:
    in_json(content, MODEL, expression(f"open({str(target)!r}, 'w')"))


def expression_in_a_symbol(content: dict[str, bytes], target: Path) -> None:
    in_json(content, MODEL, expression(f"Symbol(open({str(target)!r}, 'w').name)"))


def enum_that_imports(content: dict[str, bytes], target: Path) -> None:
    (target.parent / "evil_enum.py").write_text(f"open({str(target)!r}, 'w')\n")
    context = json.dumps({"__enum__": True, "fqn": "evil_enum:E", "name": "A"})
    spec = json.dumps([1, {"type": "builtins.tuple", "context": context, "children_spec": []}])
    in_json(content, MODEL, lambda p: root(p).update(in_spec=spec))


def name_with_code(content: dict[str, bytes], target: Path) -> None:
    code = f"x=open({str(target)!r}, 'w')"

    def change(program: dict) -> None:
        graph(program)["inputs"][0]["as_tensor"]["name"] = code
        graph(program)["tensor_values"][code] = graph(program)["tensor_values"]["x"]

    in_json(content, MODEL, change)


def argument_name_with_code(content: dict[str, bytes], target: Path) -> None:
    in_json(content, MODEL, lambda p: root(p).update(forward_arg_names=[f"x=open({str(target)!r}, 'w')", "ids", "shift"]))


def target_that_loads(content: dict[str, bytes], target: Path) -> None:
    in_json(content, MODEL, lambda p: graph(p)["nodes"][0].update(target="torch.ops.load_library"))


def target_that_writes(content: dict[str, bytes], target: Path) -> None:
    def change(program: dict) -> None:
        node = graph(program)["nodes"][0]
        arguments = [("filename", {"as_string": str(target)}), ("shared", {"as_bool": True}), ("size", {"as_int": 4})]
        node["target"] = "torch.ops.aten.from_file.default"
        node["inputs"] = [{"name": name, "arg": value, "kind": 1} for name, value in arguments]

    in_json(content, MODEL, change)


def target_below_python(content: dict[str, bytes], target: Path) -> None:
    in_json(content, MODEL, lambda p: graph(p)["nodes"][0].update(target="torch.ops.aten.__class__.__init__"))


def compressed(content: dict[str, bytes], target: Path) -> None:
    content["net/bomb"] = bytes(1 << 22)


def nested_bomb(content: dict[str, bytes], target: Path) -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a/data.pkl", bytes(1 << 22))
    content[SAMPLES] = buffer.getvalue()


def many_inputs_in_few_bytes(content: dict[str, bytes], target: Path) -> None:
    nested: tuple[object, ...] = ()
    for _ in range(60):
        nested = (nested, nested)
    buffer = io.BytesIO()
    torch.save(((nested,), {}), buffer)
    content[SAMPLES] = buffer.getvalue()


def wrong_json(content: dict[str, bytes], target: Path) -> None:
    content[MODEL] = content[MODEL][:-20]


def deep_json(content: dict[str, bytes], target: Path) -> None:
    content[MODEL] = b"[" * 100_000


def other_json(content: dict[str, bytes], target: Path) -> None:
    content[MODEL] = b"[1, 2]"


def no_graph(content: dict[str, bytes], target: Path) -> None:
    in_json(content, MODEL, lambda p: p["graph_module"].pop("graph"))


def unknown_operator(content: dict[str, bytes], target: Path) -> None:
    in_json(content, MODEL, lambda p: graph(p)["nodes"][0].update(target="torch.ops.aten.linaer.default"))


def missing_numbers(content: dict[str, bytes], target: Path) -> None:
    del content["net/data/weights/weight_0"]


def missing_config(content: dict[str, bytes], target: Path) -> None:
    del content[WEIGHTS]


def short_numbers(content: dict[str, bytes], target: Path) -> None:
    content["net/data/weights/weight_0"] = content["net/data/weights/weight_0"][:8]


def vast_weight(content: dict[str, bytes], target: Path) -> None:
    meta = {"sizes": [{"as_int": 1 << 40}], "strides": [{"as_int": 0}]}
    in_json(content, WEIGHTS, lambda c: first_weight(c)["tensor_meta"].update(meta))


def negative_size(content: dict[str, bytes], target: Path) -> None:
    in_json(content, WEIGHTS, lambda c: first_weight(c)["tensor_meta"].update(sizes=[{"as_int": -8}, {"as_int": 4}]))


def numbers_from_elsewhere(content: dict[str, bytes], target: Path) -> None:
    in_json(content, WEIGHTS, lambda c: first_weight(c)["tensor_meta"].update(storage_offset={"as_int": 1 << 30}))


def another_folder(content: dict[str, bytes], target: Path) -> None:
    content["../escape"] = b"x"


def no_model(content: dict[str, bytes], target: Path) -> None:
    del content[MODEL]


def weight_that_the_graph_lacks(content: dict[str, bytes], target: Path) -> None:
    in_json(content, WEIGHTS, lambda c: c["config"].pop("layers.0.weight"))


HOSTILE = [
    pickled_weight,
    pickled_constant,
    pickled_samples,
    bare_pickle,
    expression_with_code,
    expression_in_a_symbol,
    enum_that_imports,
    name_with_code,
    argument_name_with_code,
    target_that_loads,
    target_that_writes,
    target_below_python,
    compressed,
    nested_bomb,
    many_inputs_in_few_bytes,
    wrong_json,
    deep_json,
    other_json,
    no_graph,
    unknown_operator,
    missing_numbers,
    missing_config,
    short_numbers,
    vast_weight,
    negative_size,
    numbers_from_elsewhere,
    another_folder,
    no_model,
    weight_that_the_graph_lacks,
]


@pytest.mark.parametrize("change", HOSTILE, ids=lambda change: change.__name__)
def test_hostile_file(
    saved: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: Callable[[dict[str, bytes], Path], None]
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    content, target = members(saved), tmp_path / "made"
    change(content, target)
    path = write(tmp_path / "hostile.pt2", content, zipfile.ZIP_DEFLATED if change is compressed else zipfile.ZIP_STORED)
    with pytest.raises(FuseFlowError) as error:
        ff.compile(path).run()
    assert not target.exists()
    assert "hostile.pt2" in str(error.value)
    assert "Traceback" not in str(error.value)


ATTACKS = [
    pickled_weight,
    pickled_constant,
    pickled_samples,
    expression_with_code,
    enum_that_imports,
    target_that_writes,
]


@pytest.mark.parametrize("change", ATTACKS, ids=lambda change: change.__name__)
def test_the_attacks_are_real(
    saved: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: Callable[[dict[str, bytes], Path], None]
) -> None:
    """PyTorch's own reader does what these files ask for, so the test above would see it."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "evil_enum", raising=False)
    content, target = members(saved), tmp_path / "made"
    change(content, target)
    path = write(tmp_path / "hostile.pt2", content)
    with contextlib.suppress(Exception):
        torch.export.load(path).module()(torch.rand(3, 4), torch.tensor([1, 2]), shift=torch.rand(8))
    assert target.exists()


def test_guards_of_a_file_are_not_executed(saved: Path, tmp_path: Path) -> None:
    content, target = members(saved), tmp_path / "made"
    in_json(content, MODEL, lambda program: program.update(guards_code=[f"open({str(target)!r}, 'w') is not None"]))
    assert ff.compile(write(tmp_path / "guarded.pt2", content)).run().check.passed
    assert not target.exists()


@pytest.mark.parametrize("size", [0, 1, 100, 1000, 4000])
def test_truncated_file(saved: Path, tmp_path: Path, size: int) -> None:
    path = tmp_path / "short.pt2"
    path.write_bytes(saved.read_bytes()[:size])
    with pytest.raises(FileError, match="not a whole archive"):
        ff.compile(path)


def test_no_file(tmp_path: Path) -> None:
    with pytest.raises(FileError, match=r"gone\.pt2"):
        ff.compile(tmp_path / "gone.pt2")


def test_a_file_without_sample_inputs(saved: Path, tmp_path: Path) -> None:
    content = members(saved)
    content[SAMPLES] = b""
    path = write(tmp_path / "bare.pt2", content)
    with pytest.raises(UsageError, match=r"input `x` of .* has no numbers"):
        ff.compile(path)
    arrays = {"x": np.ones((2, 4)), "ids": np.array([0, 0]), "shift": np.ones(8)}
    assert ff.compile(path, tensors=arrays).run().check.passed


def test_a_byte_anywhere(saved: Path, tmp_path: Path) -> None:
    """A file with one wrong byte gives a result or an error in words, wherever the byte is."""
    content, rng = saved.read_bytes(), np.random.default_rng(0)
    for position in rng.integers(len(content), size=60):
        path = tmp_path / "flipped.pt2"
        path.write_bytes(content[:position] + bytes([content[position] ^ 0x15]) + content[position + 1 :])
        try:
            ff.compile(path)
        except FuseFlowError:
            continue


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Symbol('s0', positive=True, integer=True)", True),
        ("Add(Mul(Integer(2), Symbol('s0')), Integer(-1))", True),
        ("Pow(Symbol('s0'), Integer(2))", True),
        ("Pow(Integer(9), Pow(Integer(9), Integer(9)))", False),
        ("Pow(Integer(9), Integer(99999999))", False),
        ("9**9", False),
        ("Symbol.__class__", False),
        ("[Integer(1) for x in y]", False),
        ("(lambda: 1)()", False),
        ("Symbol(" * 500, False),
        ("Symbol('a b')", False),
    ],
)
def test_expressions_of_sizes(text: str, expected: bool) -> None:
    assert _is_size(text) is expected

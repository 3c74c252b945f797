"""Exported programs in files: what they give, and files with a part that fuseflow does not read.

Each of these is a good file with one change.
"""

from __future__ import annotations

import io
import json
import pickle
import zipfile
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import fuseflow as ff
from fuseflow.errors import FileError, FuseFlowError, UsageError
from fuseflow.frontend.exported_file.json_validation import _is_size


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
        (nn.LSTM(4, 3, batch_first=True), (torch.rand(1, 3, 4),)),
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


def pickled_weight(content: dict[str, bytes]) -> None:
    in_json(content, WEIGHTS, lambda c: first_weight(c).update(use_pickle=True))


def pickled_constant(content: dict[str, bytes]) -> None:
    entry = {"path_name": "opaque_obj_0", "is_param": False, "use_pickle": True, "tensor_meta": None}
    in_json(content, CONSTANTS, lambda c: c["config"].update(thing=entry))
    content["net/data/constants/opaque_obj_0"] = pickle.dumps(1)


def samples_of_another_class(content: dict[str, bytes]) -> None:
    buffer = io.BytesIO()
    torch.save(((Fraction(1, 2),), {}), buffer)
    content[SAMPLES] = buffer.getvalue()


def bare_pickle(content: dict[str, bytes]) -> None:
    content[SAMPLES] = pickle.dumps(Fraction(1, 2))


def size_that_is_a_call(content: dict[str, bytes]) -> None:
    in_json(content, MODEL, expression("some(thing)"))


def input_of_another_class(content: dict[str, bytes]) -> None:
    spec = json.dumps([1, {"type": "fractions.Fraction", "context": "null", "children_spec": []}])
    in_json(content, MODEL, lambda p: root(p).update(in_spec=spec))


def name_that_is_none(content: dict[str, bytes]) -> None:
    def change(program: dict) -> None:
        graph(program)["inputs"][0]["as_tensor"]["name"] = "x y"
        graph(program)["tensor_values"]["x y"] = graph(program)["tensor_values"]["x"]

    in_json(content, MODEL, change)


def argument_name_that_is_none(content: dict[str, bytes]) -> None:
    in_json(content, MODEL, lambda p: root(p).update(forward_arg_names=["x y", "ids", "shift"]))


def target_that_is_no_operator(content: dict[str, bytes]) -> None:
    in_json(content, MODEL, lambda p: graph(p)["nodes"][0].update(target="torch.ops.loaded_libraries"))


def target_below_python(content: dict[str, bytes]) -> None:
    in_json(content, MODEL, lambda p: graph(p)["nodes"][0].update(target="torch.ops.aten.name"))


def compressed(content: dict[str, bytes]) -> None:
    content["net/zeros"] = bytes(1 << 22)


def compressed_samples(content: dict[str, bytes]) -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a/data.pkl", bytes(1 << 22))
    content[SAMPLES] = buffer.getvalue()


def more_inputs_than_a_model_takes(content: dict[str, bytes]) -> None:
    buffer = io.BytesIO()
    torch.save(((tuple(range(100_001)),), {}), buffer)
    content[SAMPLES] = buffer.getvalue()


def wrong_json(content: dict[str, bytes]) -> None:
    content[MODEL] = content[MODEL][:-20]


def deep_json(content: dict[str, bytes]) -> None:
    content[MODEL] = b"[" * 5_000


def other_json(content: dict[str, bytes]) -> None:
    content[MODEL] = b"[1, 2]"


def no_graph(content: dict[str, bytes]) -> None:
    in_json(content, MODEL, lambda p: p["graph_module"].pop("graph"))


def unknown_operator(content: dict[str, bytes]) -> None:
    in_json(content, MODEL, lambda p: graph(p)["nodes"][0].update(target="torch.ops.aten.linaer.default"))


def missing_numbers(content: dict[str, bytes]) -> None:
    del content["net/data/weights/weight_0"]


def missing_config(content: dict[str, bytes]) -> None:
    del content[WEIGHTS]


def short_numbers(content: dict[str, bytes]) -> None:
    content["net/data/weights/weight_0"] = content["net/data/weights/weight_0"][:8]


def vast_weight(content: dict[str, bytes]) -> None:
    meta = {"sizes": [{"as_int": 1 << 40}], "strides": [{"as_int": 0}]}
    in_json(content, WEIGHTS, lambda c: first_weight(c)["tensor_meta"].update(meta))


def negative_size(content: dict[str, bytes]) -> None:
    in_json(content, WEIGHTS, lambda c: first_weight(c)["tensor_meta"].update(sizes=[{"as_int": -8}, {"as_int": 4}]))


def numbers_from_elsewhere(content: dict[str, bytes]) -> None:
    in_json(content, WEIGHTS, lambda c: first_weight(c)["tensor_meta"].update(storage_offset={"as_int": 1 << 30}))


def another_folder(content: dict[str, bytes]) -> None:
    content["../escape"] = b"x"


def no_model(content: dict[str, bytes]) -> None:
    del content[MODEL]


def weight_that_the_graph_lacks(content: dict[str, bytes]) -> None:
    in_json(content, WEIGHTS, lambda c: c["config"].pop("layers.0.weight"))


HOSTILE = [
    pickled_weight,
    pickled_constant,
    samples_of_another_class,
    bare_pickle,
    size_that_is_a_call,
    input_of_another_class,
    name_that_is_none,
    argument_name_that_is_none,
    target_that_is_no_operator,
    target_below_python,
    compressed,
    compressed_samples,
    more_inputs_than_a_model_takes,
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
def test_hostile_file(saved: Path, tmp_path: Path, change: Callable[[dict[str, bytes]], None]) -> None:
    content = members(saved)
    change(content)
    path = write(tmp_path / "hostile.pt2", content, zipfile.ZIP_DEFLATED if change is compressed else zipfile.ZIP_STORED)
    with pytest.raises(FuseFlowError) as error:
        ff.compile(path).run()
    assert "hostile.pt2" in str(error.value)
    assert "Traceback" not in str(error.value)


def test_guards_of_a_file_are_not_executed(saved: Path, tmp_path: Path) -> None:
    """This one would raise an error."""
    content = members(saved)
    in_json(content, MODEL, lambda program: program.update(guards_code=["no_such_name"]))
    assert ff.compile(write(tmp_path / "guarded.pt2", content)).run().check.passed


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

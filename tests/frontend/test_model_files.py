"""Model files: what they may define, and errors at the line of the user's file. The GCN that comes with the project."""

import importlib
import sys
import sysconfig
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from fuseflow import compile as compile_model
from fuseflow.einsum.text import show
from fuseflow.errors import FileError, FrontendError, FuseFlowError, UsageError
from fuseflow.frontend import LoadedModel, import_model, load_data, load_model
from fuseflow.frontend.model_files import _user_module
from fuseflow.frontend.model_spec import ModelSpec
from fuseflow.frontend.sources import load

ROOT = Path(__file__).parents[2]
DATA = load_data("karate")


def write(folder: Path, text: str) -> Path:
    path = folder / "model.py"
    path.write_text(text)
    return path


def test_gcn_prints_as_designed(golden: Callable[[str, str], None], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    model = load_model(Path("models/gcn.py"), DATA)
    imported = import_model(model.module, model.inputs, model.formats, "gcn")
    golden("frontend/gcn.ein", show(imported.program))
    golden("frontend/gcn.mlir", imported.mlir)
    assert str(imported.program.defined["relu"].location.span).startswith("models/gcn.py:")


def test_weights_follow_the_seed() -> None:
    weights = [load_model(ROOT / "models" / "gcn.py", DATA, seed).module.layer1.weight for seed in (0, 0, 1)]
    assert torch.equal(weights[0], weights[1])
    assert not torch.equal(weights[0], weights[2])


def test_formats_neighbours_and_dataclasses(tmp_path: Path) -> None:
    (tmp_path / "neighbour_of_model.py").write_text("WIDTH = 3\n")
    path = write(
        tmp_path,
        "from __future__ import annotations\nfrom dataclasses import dataclass\nimport torch\nfrom neighbour_of_model import WIDTH\n"
        "@dataclass\nclass Config:\n    width: int = WIDTH\n"
        'FORMATS = {"weight": "csr"}\nINDICES = {"add": "b h"}\n'
        "def build(data):\n    return torch.nn.Linear(data.nodes, Config().width), [torch.ones(2, data.nodes)]\n",
    )
    model = load_model(path, DATA)
    assert model.module.weight.shape == (3, 34)
    assert (model.formats, model.indices) == ({"weight": "csr"}, {"add": "b h"})
    assert import_model(model.module, model.inputs, model.formats).tensors["weight"].format.short() == "csr"


@pytest.mark.parametrize(
    ("text", "message", "line"),
    [
        ("x = (1,\n", "syntax error", 1),
        ("import torch\nraise ValueError('no')\n", "raises ValueError: no", 2),
        ("def build(data):\n    return data.nodes.weights\n", "raises AttributeError", 2),
        ("def helper():\n    return 1 / 0\ndef build(data):\n    return helper()\n", "raises ZeroDivisionError", 2),
        ("import not_there\n", "raises ModuleNotFoundError", 1),
        ("def biuld(data): ...\n", "has no function `build`\n  note: did you mean `biuld`?", None),
        ("build = 3\n", "has no function `build`", None),
        ("def build(data): return 3\n", "returned int", None),
        ("import torch\ndef build(data): return torch.nn.ReLU()\n", "returned ReLU", None),
        ("import torch\ndef build(data): return torch.nn.ReLU(), torch.ones(2)\n", "`return module, (x,)`", None),
        ("FORMATS = ['csr']\nimport torch\ndef build(data): return torch.nn.ReLU(), ()\n", "`FORMATS`", None),
    ],
)
def test_errors(tmp_path: Path, text: str, message: str, line: int | None) -> None:
    path = write(tmp_path, text)
    with pytest.raises(FrontendError) as caught:
        load_model(path, DATA)
    assert message in str(caught.value)
    if line is not None:
        assert caught.value.span is not None
        assert (caught.value.span.file, caught.value.span.line) == (str(path), line)


def test_missing_and_unreadable_files(tmp_path: Path) -> None:
    with pytest.raises(FileError, match=r"cannot read the model file .*: No such file"):
        load_model(tmp_path / "gone.py", DATA)
    with pytest.raises(FileError, match="Is a directory"):
        load_model(tmp_path, DATA)
    (tmp_path / "b.py").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(FileError, match="not UTF-8 text"):
        load_model(tmp_path / "b.py", DATA)


LINEAR = "return torch.nn.Linear(3, width), (torch.ones(2, 3),)"


def built(folder: Path, signature: str, **options: object) -> LoadedModel:
    return load_model(write(folder, f"import torch\ndef build({signature}):\n    {LINEAR}\n"), options=options)


@pytest.mark.parametrize(
    ("signature", "data", "expected"),
    [
        ("data, width=2", None, "karate"),
        ("data, width=2", "karate:nodes=5", "karate:nodes=5"),
        ("graph, width=2", None, "karate"),
        ("data=None, width=2", None, None),
        ("data=None, width=2", "karate", "karate"),
        ("width=2", None, None),
        ("*, width=2", None, None),
    ],
)
def test_a_model_says_by_its_first_parameter_whether_it_needs_data(
    tmp_path: Path, signature: str, data: str | None, expected: str | None
) -> None:
    path = write(tmp_path, f"import torch\ndef build({signature}):\n    {LINEAR}\n")
    assert load_model(path, data).data == expected


def test_data_for_a_model_that_takes_none(tmp_path: Path) -> None:
    path = write(tmp_path, f"import torch\ndef build(width=2):\n    {LINEAR}\n")
    for arguments in ({"data": "karate"}, {"data_dir": tmp_path}):
        with pytest.raises(UsageError, match="takes no data"):
            load_model(path, **arguments)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("signature", "inputs", "messages"),
    [
        ("data", "(data.x,)", ["model.py:3: error[data]: `data` has no `x`", "hint: it is `data.features` here"]),
        ("data", "(data.edge_index,)", ["`data` has no `edge_index`", "hint: it is `data.raw.to_sparse_coo().indices()` here"]),
        ("data", "(data.featurs,)", ["`data` has no `featurs`", "hint: did you mean `features`"]),
        (
            "data",
            "(data.features.to_dense() @ torch.ones(7, 3),)",
            ["model.py:3: error[frontend]: the model file raises RuntimeError"],
        ),
        ("data", "(data.features.to_dense(),)", ["the model fails in PyTorch itself: RuntimeError: mat1 and mat2"]),
    ],
)
def test_a_model_that_does_not_fit_its_data_is_told_what_these_have(
    tmp_path: Path, signature: str, inputs: str, messages: list[str]
) -> None:
    path = write(tmp_path, f"import torch\ndef build({signature}):\n    return torch.nn.Linear(3, 2), {inputs}\n")
    with pytest.raises(FuseFlowError) as caught:
        load(ModelSpec(path, data="karate:nodes=5"))
    for message in [
        *messages,
        "data `karate:nodes=5` have `adjacency` [5, 5] in CSR, `raw` [5, 5] in CSR, `features` [5, 34] in CSR",
    ]:
        assert message in str(caught.value)


def test_a_model_that_asks_whether_its_data_have_something(tmp_path: Path) -> None:
    text = 'import torch\ndef build(data):\n    x = data.x if hasattr(data, "x") else getattr(data, "feat", torch.ones(2, 3))\n'
    assert load_model(write(tmp_path, text + "    return torch.nn.Linear(3, 2), (x,)\n")).inputs[0].shape == (2, 3)


def test_a_build_with_other_arguments_is_told_what_it_takes(tmp_path: Path) -> None:
    for signature, message in (("adjacency, features", "needs the option `features`"), ("", "takes no data")):
        path = write(tmp_path, f"import torch\ndef build({signature}):\n    return torch.nn.Linear(3, 2), (torch.ones(2, 3),)\n")
        with pytest.raises(UsageError, match=message) as caught:
            load_model(path, "karate")
        assert "`build(data)` takes the data as one argument, with `adjacency`, `raw`, `features`" in str(caught.value)


def test_options_reach_build(tmp_path: Path) -> None:
    assert built(tmp_path, "width=2").module.weight.shape == (2, 3)
    model = built(tmp_path, "width=2", width="4")
    assert model.module.weight.shape == (4, 3) and model.options == {"width": 4}
    assert built(tmp_path, "*, width: int", width=5).module.weight.shape == (5, 3)
    assert built(tmp_path, "width=2, **rest", depth="3").options == {"depth": "3"}


def test_a_model_names_its_data(tmp_path: Path) -> None:
    text = f'DATA = "karate:nodes=9"\nSMALL_DATA = "karate:nodes=4"\nimport torch\ndef build(data, small=False, width=2):\n    {LINEAR}\n'
    path = write(tmp_path, text)
    assert load_model(path).data == "karate:nodes=9"
    assert load_model(path, options={"small": "true"}).data == "karate:nodes=4"
    assert load_model(path, "karate", options={"small": "true"}).data == "karate"
    with pytest.raises(FrontendError, match=r"`DATA` in .* is not the spec of a data set"):
        load_model(write(tmp_path, f"DATA = 3\nimport torch\ndef build(data, width=2):\n    {LINEAR}\n"))


PROGRAM = "tensor A[34, 34] csr\ntensor x[34] dense\ny[i] = sum(k) A[i, k] * x[k]\noutput y\n"


def test_a_model_file_may_build_a_program(tmp_path: Path) -> None:
    """Its tensors follow from the seed; PyTorch is not needed, and an option `seed` is the run's."""
    path = write(
        tmp_path,
        f"import numpy as np\nPROGRAM = {PROGRAM!r}\n"
        "def build(data, *, seed: int = 0):\n"
        "    return PROGRAM, {'A': data.edges, 'x': np.random.default_rng(seed).random(34, dtype=np.float32)}\n",
    )
    numbers = [compile_model(path, seed=seed, machine="ideal").run().outputs["y"] for seed in (0, 0, 1)]
    assert (numbers[0] == numbers[1]).all() and not (numbers[0] == numbers[2]).all()
    assert compile_model(path, seed=0, options={"seed": 1}, machine="ideal").run().outputs["y"].tolist() == numbers[2].tolist()


@pytest.mark.parametrize(
    ("built", "message"),
    [
        ("PROGRAM, [1]", "returned a program with list, not its tensors by name"),
        ("PROGRAM, {1: 2}", "returned a program with dict, not its tensors by name"),
        ("PROGRAM, {'A': data.edges, 'z': 1}", "the program has no input `z`"),
        ("PROGRAM, {'A': data.inputs[:3]}", r"tensor `A`: shape \[3, 34\], declared \[34, 34\]"),
        ("'y[i] = x[i', {}", r"model\.py: program:1"),
    ],
)
def test_programs_that_do_not_fit(tmp_path: Path, built: str, message: str) -> None:
    path = write(tmp_path, f"PROGRAM = {PROGRAM!r}\ndef build(data):\n    return {built}\n")
    with pytest.raises(FuseFlowError, match=message):
        compile_model(path)


def test_a_program_takes_no_constants_of_modules(tmp_path: Path) -> None:
    path = write(tmp_path, f"FORMATS = {{'x': 'csr'}}\nPROGRAM = {PROGRAM!r}\ndef build(data):\n    return PROGRAM, {{}}\n")
    with pytest.raises(UsageError, match="takes no `FORMATS`"):
        compile_model(path)


def test_neighbours_of_one_name_in_two_folders_are_two_modules(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "helper.py").write_text(f"NAME = '{name}'\n")
        (tmp_path / name / "m.py").write_text(
            f"import helper\nassert helper.NAME == '{name}'\n\n\ndef build(data):\n"
            "    return 'tensor x[2]\\ny[i] = x[i]\\noutput y', {'x': [1.0, 2.0]}\n"
        )
        load_model(tmp_path / name / "m.py", None, 0)
    assert "helper" not in sys.modules


@pytest.mark.parametrize("beside", [True, False])
def test_installed_modules_stay_where_their_environment_is_in_the_folder(
    beside: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A project has its environment in its own folder, as `.venv`, or all is in a temporary one. PyTorch cannot be loaded twice."""
    library = Path(sysconfig.get_path("stdlib"))
    monkeypatch.delitem(sys.modules, "colorsys", raising=False)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path if beside else library))
    with _user_module(library / "model.py" if beside else write(tmp_path, "")):
        importlib.import_module("colorsys")
    assert "colorsys" in sys.modules


TRAINED = (
    "import torch\n{}\ndef build(data):\n    return torch.nn.Linear(data.nodes, 4), [torch.ones(data.nodes, data.nodes)]{}\n"
)


def test_a_file_says_how_its_model_is_trained(tmp_path: Path) -> None:
    text = TRAINED.format("loss, optimizer = 'cross_entropy', 'adamw:lr=0.1'", "")
    model = load_model(write(tmp_path, text), DATA)
    assert (model.loss, model.optimizer) == ("cross_entropy", "adamw:lr=0.1")
    assert torch.equal(model.target, DATA.target)
    assert sorted(model.target.unique().tolist()) == [-100, 0, 1, 2, 3]  # the club has one label of each class
    silent = load_model(write(tmp_path, TRAINED.format("", "")), DATA)
    assert (silent.loss, silent.optimizer) == (None, None)


def test_the_third_value_of_build_is_the_target_and_a_loss_may_be_a_function(tmp_path: Path) -> None:
    text = TRAINED.format("def loss(output, target): return (output - target).mean()", ", torch.zeros(data.nodes, 4)")
    model = load_model(write(tmp_path, text), DATA)
    assert model.target.shape == (34, 4) and model.loss(torch.ones(2), torch.zeros(2)) == 1


@pytest.mark.parametrize(
    ("names", "message"),
    [("loss = 3", "`loss` in .* is a int"), ("optimizer = torch.optim.SGD", "`optimizer` in .* is no text")],
)
def test_a_bad_loss_or_optimizer(tmp_path: Path, names: str, message: str) -> None:
    with pytest.raises(FrontendError, match=message):
        load_model(write(tmp_path, TRAINED.format(names, "")), DATA)

"""References to functions that build models: files, modules, and the nearest name for a typo."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from fuseflow import compile as compile_model
from fuseflow.errors import FileError, FrontendError, UsageError
from fuseflow.frontend import load_model
from fuseflow.frontend.factory import Factory

LINEAR = "torch.nn.Linear(WIDTH, width), (torch.ones(2, WIDTH),)"


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A package `shop_of_models` in the current directory, which Python forgets behind the test."""
    folder = tmp_path / "shop_of_models"
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    (folder / "sizes.py").write_text("WIDTH = 4\n")
    (folder / "layers.py").write_text(
        f"import torch\nfrom shop_of_models.sizes import WIDTH\nINDICES = {{'add': 'row column'}}\n"
        f"def small(*, width: int = 3):\n    return {LINEAR}\n\ndef broken():\n    raise ValueError('no wood')\n"
    )
    monkeypatch.chdir(tmp_path)
    yield folder
    for name in [name for name in sys.modules if name.startswith("shop_of_models")]:
        del sys.modules[name]


@pytest.mark.parametrize(
    ("text", "function", "place", "stem"),
    [
        ("models/gcn.py", "build", "models/gcn.py", "gcn"),
        ("models/gcn.py:small", "small", "models/gcn.py", "small"),
        ("package.module:small", "small", "package.module", "small"),
        ("package.module:build", "build", "package.module", "module"),
    ],
)
def test_forms_of_a_reference(text: str, function: str, place: str, stem: str) -> None:
    factory = Factory.parse(text)
    assert factory is not None
    assert (factory.function, str(factory.place), factory.stem) == (function, place, stem)


@pytest.mark.parametrize("text", ["program.ein", "module", "a-b:c", "package..module:f", "module:not a name", ":f"])
def test_what_is_no_reference(text: str) -> None:
    assert Factory.parse(text) is None


def test_a_function_of_a_module_in_the_current_directory(package: Path) -> None:
    compiled = compile_model("shop_of_models.layers:small", options={"width": "5"})
    assert compiled.name == "small"
    assert compiled.program.outputs and compiled.run().check is not None
    assert str(package.parent) not in sys.path


def test_a_module_draws_the_same_weights_each_time(package: Path) -> None:
    first, second = (load_model("shop_of_models.layers:small", seed=3).module.weight for _ in range(2))
    assert torch.equal(first, second)
    assert not torch.equal(first, load_model("shop_of_models.layers:small", seed=4).module.weight)


def test_a_function_of_a_file_sees_its_neighbours(package: Path) -> None:
    (package.parent / "near.py").write_text("WIDTH = 4\n")
    file = package.parent / "model.py"
    file.write_text(f"import torch\nfrom near import WIDTH\ndef wide(*, width=7):\n    return {LINEAR}\n")
    assert load_model(f"{file}:wide").module.weight.shape == (7, 4)
    assert compile_model(f"{file}:wide").name == "wide"


@pytest.mark.parametrize(
    ("model", "kind", "message", "hint"),
    [
        ("shop_of_model.layers:small", FileError, "there is no module `shop_of_model`", "`shop_of_models`"),
        ("shop_of_models.layer:small", FileError, "there is no module `shop_of_models.layer` in package", "`layers`"),
        ("shop_of_models.layers:smal", FrontendError, "shop_of_models.layers has no function `smal`", "did you mean `small`"),
        ("shop_of_models.layers:broken", FrontendError, "no wood", "layers.py:8"),
        ("gone.py:small", FileError, "gone.py", ""),
    ],
)
def test_names_that_are_not_there(package: Path, model: str, kind: type[Exception], message: str, hint: str) -> None:
    with pytest.raises(kind) as error:
        load_model(model)
    assert message in str(error.value)
    assert hint in str(error.value)


def test_arguments_that_a_function_of_a_module_does_not_take(package: Path) -> None:
    with pytest.raises(UsageError, match="takes no data"):
        compile_model("shop_of_models.layers:small", data="karate")
    with pytest.raises(UsageError, match="takes no `tensors`"):
        compile_model("shop_of_models.layers:small", tensors={})
    with pytest.raises(UsageError, match="no option `widht`"):
        compile_model("shop_of_models.layers:small", options={"widht": 2})

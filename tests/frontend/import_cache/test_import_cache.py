"""The cache of imported models: a hit is what the import was, a change of anything that it read is a miss, and nothing foreign is read."""

from __future__ import annotations

import logging
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import fuseflow as ff
from fuseflow.cli.main import main
from fuseflow.einsum.text import show
from fuseflow.frontend.import_cache.entry import import_store
from fuseflow.frontend.imported_program import Source
from fuseflow.frontend.model_spec import ModelSpec
from fuseflow.frontend.sources import load
from fuseflow.package_digest import package_digest

MODELS = Path(__file__).resolve().parents[3] / "models"
MODEL = """
import numpy as np
from helper import scale
from pathlib import Path
from typing import Any

def build(data, *, size: int = 4):
    print("imported")
    weights = np.load(Path(__file__).with_name("weights.npy"))[:size, :size]
    return f"tensor A[{size}, {size}] csr\\\\n tensor B[{size}, {size}] coo\\\\n C[i, j] = A[i, j] + B[i, j]\\\\n output C", {
        "A": scale * weights, "B": weights}
""".replace("\\\\", "\\")


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FUSEFLOW_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.delenv("FUSEFLOW_MODEL_CACHE_MB")
    return tmp_path / "cache" / "models"


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """A model file with a module beside it and a file of data."""
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "model.py").write_text(MODEL)
    (folder / "helper.py").write_text("scale = 3.0\n")
    np.save(folder / "weights.npy", np.arange(36.0, dtype=np.float32).reshape(6, 6))
    return folder / "model.py"


@pytest.fixture
def imports(capfd: pytest.CaptureFixture[str]) -> Callable[..., bool]:
    """`imports(path)` loads a model and returns whether it was imported, and not recalled."""

    def load_model(path: Path, fresh: bool = False, **arguments: object) -> bool:
        capfd.readouterr()
        load(ModelSpec(path, fresh=fresh, **arguments))  # type: ignore[arg-type]
        return "imported" in capfd.readouterr().out

    return load_model


def contents(source: Source) -> tuple[object, ...]:
    tensors = {
        name: (t.shape, str(t.format), t.fill, t.dtype.str, t.values.tobytes(), t.coordinates().tobytes())
        for name, t in source.tensors.items()
    }
    expected = None if source.expected is None else {n: (a.dtype.str, a.tobytes()) for n, a in source.expected.items()}
    places = [(e.location.path, str(e.location.span)) for e in source.program.einsums], [t.span for t in source.program.tensors]
    known = source.name, source.data, tuple(source.options.items()), source.seed, source.notices, source.mlir
    return show(source.program), places, tensors, expected, known


@pytest.mark.parametrize(
    ("file", "options"),
    [
        ("gcn.py", {}),
        ("graphsage.py", {}),
        ("gpt_bigbird.py", {"small": True}),
        ("paper/gpt.py", {"small": True}),
        ("sae.py", {"small": "true"}),
    ],
)
def test_a_hit_is_what_the_import_was(
    cache: Path, monkeypatch: pytest.MonkeyPatch, file: str, options: dict[str, object]
) -> None:
    spec = ModelSpec(MODELS / file, options=options)
    with monkeypatch.context() as context:
        context.setenv("FUSEFLOW_MODEL_CACHE_MB", "0")
        plain = contents(load(spec))
    assert not cache.exists()
    first = contents(load(spec))
    assert len(list(cache.iterdir())) == 1
    monkeypatch.setattr("fuseflow.frontend.load_model", None)  # an import would fail
    assert contents(load(spec)) == first == plain


def test_reference_outputs_that_nothing_read_are_computed_later(cache: Path) -> None:
    spec = ModelSpec(MODELS / "gcn.py")
    load(spec)  # keeps the program alone
    recalled = load(spec)
    assert recalled.expected is not None
    again = load(spec).expected
    assert again is not None and list(recalled.expected) == list(again) == list(recalled.program.outputs)
    for name in again:
        np.testing.assert_array_equal(recalled.expected[name], again[name])


def test_a_hit_runs_without_pytorch(cache: Path) -> None:
    code = (
        "import logging, sys; logging.basicConfig(level=logging.INFO); import fuseflow as ff;"
        "r = ff.compile('models/gcn.py').run(engine='reference');"
        "assert r.check.passed and r.check.reference == 'PyTorch';"
        "print(*sorted(sys.modules))"
    )
    first, second = (
        subprocess.run([sys.executable, "-c", code], cwd=MODELS.parent, capture_output=True, text=True, check=True)
        for _ in range(2)
    )
    assert {"torch", "torch_mlir"} <= set(first.stdout.split())
    said = f"imports said {first.stderr!r}, then {second.stderr!r}"  # why an import was not kept, or made again
    assert not {"torch", "torch_mlir", "sympy", "scipy.optimize"} & set(second.stdout.split()), said


def test_kernels_that_are_made_again_change_no_request(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another process may make kernels between two imports."""
    (tmp_path / "objects").mkdir()
    (tmp_path / "a.py").write_text("x = 1")
    monkeypatch.setattr("fuseflow.package_digest.PACKAGE", tmp_path)
    before = package_digest.__wrapped__()
    (tmp_path / "objects" / "k.kernel").write_bytes(b"code")
    assert package_digest.__wrapped__() == before
    (tmp_path / "b.py").write_text("x = 2")
    assert package_digest.__wrapped__() != before


def test_saved_directories_are_equal_to_the_byte(cache: Path, tmp_path: Path) -> None:
    for name in ("first", "second"):
        compiled = ff.compile(MODELS / "gcn.py", schedule=ff.Schedule.fuse("layer1"))
        compiled.save(tmp_path / name)
    files = [
        {p.relative_to(tmp_path / n): p.read_bytes() for p in (tmp_path / n).rglob("*") if p.is_file()}
        for n in ("first", "second")
    ]
    assert files[0] == files[1] and files[0]


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda folder: (folder / "model.py").write_text(MODEL + "\n"), id="the file"),
        pytest.param(lambda folder: (folder / "helper.py").write_text("scale = 4.0\n"), id="a module beside it"),
        pytest.param(lambda folder: np.save(folder / "weights.npy", np.ones((6, 6), dtype=np.float32)), id="its data"),
        pytest.param(lambda folder: (folder / "scipy.py").write_text("\n"), id="a module before an installed one"),
    ],
)
def test_a_change_of_anything_that_was_read_is_a_miss(
    cache: Path, model: Path, imports: Callable[..., bool], change: Callable[[Path], object]
) -> None:
    assert imports(model) and not imports(model)
    change(model.parent)
    assert imports(model) and not imports(model)


def test_a_change_that_keeps_size_and_time_is_a_miss(cache: Path, model: Path, imports: Callable[..., bool]) -> None:
    helper = model.parent / "helper.py"
    assert imports(model) and not imports(model)
    status = helper.stat()
    shutil.rmtree(model.parent / "__pycache__", ignore_errors=True)  # Python itself goes by size and time
    helper.write_text("scale = 5.0\n")
    os.utime(helper, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert imports(model)


def test_compiled_modules_elsewhere_are_those_of_installed_sources(cache: Path, model: Path, tmp_path: Path) -> None:
    """`PYTHONPYCACHEPREFIX` puts what Python compiles into another directory, and an installed module there is no code of the model."""
    model.write_text(MODEL.replace("import numpy as np", "import numpy as np, webbrowser"))
    code = f"import fuseflow as ff; ff.compile({str(model)!r})"
    environment = {**os.environ, "PYTHONPYCACHEPREFIX": str(tmp_path / "compiled"), "PYTHONPATH": os.pathsep.join(sys.path)}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    runs = [
        subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True).stdout
        for _ in range(3)
    ]
    assert [run.count("imported") for run in runs] == [1, 0, 0]


@pytest.mark.parametrize(
    "arguments", [{"seed": 1}, {"options": {"size": 3}}, {"options": {"size": "3"}}, {"data": "karate:nodes=9"}]
)
def test_another_request_is_a_miss(cache: Path, model: Path, imports: Callable[..., bool], arguments: dict[str, object]) -> None:
    assert imports(model)
    assert imports(model, **arguments) and not imports(model, **arguments) and not imports(model)


def test_fresh_imports_and_keeps_anew(cache: Path, model: Path, imports: Callable[..., bool]) -> None:
    assert imports(model) and imports(model, fresh=True) and not imports(model)
    with pytest.raises(ff.FuseFlowError, match="takes no `fresh`"):
        load(ModelSpec(model.with_suffix(".ein"), fresh=True))


def test_other_versions_are_a_miss(
    cache: Path, model: Path, imports: Callable[..., bool], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = tmp_path / "site"
    (site / "torch-1.0.dist-info").mkdir(parents=True)
    monkeypatch.syspath_prepend(str(site))
    assert imports(model) and not imports(model)
    (site / "torch-1.0.dist-info").rename(site / "torch-1.1.dist-info")
    assert imports(model)
    monkeypatch.setattr("fuseflow.frontend.import_cache.request.package_digest", lambda: "other sources")
    assert imports(model) and not imports(model)


def _damage(entry: Path) -> None:
    content = bytearray(entry.read_bytes())
    content[len(content) // 2] ^= 1
    entry.write_bytes(content)


@pytest.mark.parametrize(
    "tamper",
    [
        pytest.param(_damage, id="a bit"),
        pytest.param(lambda entry: entry.write_bytes(entry.read_bytes()[:-1]), id="cut short"),
        pytest.param(lambda entry: entry.write_bytes(b""), id="empty"),
        pytest.param(lambda entry: entry.chmod(0o620), id="the group may write the file"),
        pytest.param(lambda entry: entry.chmod(0o602), id="others may write the file"),
        pytest.param(lambda entry: (entry.rename(entry.with_name("real")), entry.symlink_to("real")), id="a link"),
        pytest.param(lambda entry: (entry.unlink(), entry.mkdir()), id="a directory"),
        pytest.param(lambda entry: (entry.unlink(), os.mkfifo(entry)), id="a pipe"),
        pytest.param(lambda entry: entry.parent.chmod(0o770), id="the group may write the directory"),
        pytest.param(lambda entry: entry.parent.chmod(0o707), id="others may write the directory"),
    ],
)
def test_what_others_may_have_written_is_not_read(
    cache: Path, model: Path, imports: Callable[..., bool], tamper: Callable[[Path], object]
) -> None:
    assert imports(model) and not imports(model)
    (entry,) = cache.iterdir()
    tamper(entry)
    assert imports(model)


def test_the_files_of_another_user_are_not_read(
    cache: Path, model: Path, imports: Callable[..., bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert imports(model)
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    assert imports(model) and imports(model)


def test_entries_are_private(cache: Path, model: Path) -> None:
    before = os.umask(0)
    try:
        load(ModelSpec(model))
    finally:
        os.umask(before)
    assert [oct(p.stat().st_mode & 0o777) for p in (cache, *cache.iterdir())] == ["0o700", "0o600"]


def test_the_cache_is_bounded_and_forgets_what_was_not_used(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FUSEFLOW_MODEL_CACHE_MB", "1")
    store = import_store()
    assert store is not None
    for name in "abcde":
        assert store.write(name, bytes(200_000))
        os.utime(store.directory / f"{name}.import", ns=(0, ord(name)))
    assert store.read("a") is not None  # used last
    assert store.write("f", bytes(200_000))
    assert sorted(p.stem for p in store.directory.iterdir()) == ["a", "c", "d", "e", "f"]
    assert not store.write("g", bytes(300_000)), "a quarter of the bound at most"
    monkeypatch.setenv("FUSEFLOW_MODEL_CACHE_MB", "many")
    with pytest.raises(ff.FuseFlowError, match="FUSEFLOW_MODEL_CACHE_MB is `many`"):
        import_store()


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("import time", "the clock: `time`"),
        ("from os import environ", "the environment: `os.environ`"),
        ("import os; HOME = os.getenv('HOME')", "the environment: `os.getenv`"),
        ("import random", "unseeded numbers: `random`"),
        ("import numpy.random as r; r.default_rng()", "unseeded numbers: `numpy.random.default_rng\\(\\)`"),
        ("np.random.rand()", "draws from a generator that `--seed` does not seed"),
        ("import socket; socket.getaddrinfo('localhost', 1)", "uses the network"),
        ("import socket; socket.socket().bind(('127.0.0.1', 0))", "uses the network"),
        ("import socketserver; socketserver.TCPServer(('127.0.0.1', 0), None).server_close()", "uses the network"),
        ("import subprocess; subprocess.run(['true'])", "starts another program"),
        ("Path(__file__).with_name('left').write_text('behind')", "writes `.*left`"),
        ("from scipy.io import mmread", "files that Python does not see: `scipy.io.mmread`"),
        ("open('/dev/zero').close()", "reads `/dev/zero`, which is no file"),
    ],
)
def test_what_no_key_can_hold_is_imported_every_time(
    cache: Path, model: Path, imports: Callable[..., bool], caplog: pytest.LogCaptureFixture, code: str, reason: str
) -> None:
    model.write_text(MODEL.replace("def build", f"{code}\n\ndef build"))
    with caplog.at_level(logging.INFO, "fuseflow"):
        assert imports(model) and imports(model)
    assert re.search(reason, caplog.text)
    assert not list(cache.iterdir())


@pytest.mark.parametrize(
    ("package", "kept"),
    [
        pytest.param("socket.socket().bind(('127.0.0.1', 0))", True, id="it tries whether it could"),
        pytest.param("socket.socket(type=socket.SOCK_DGRAM).bind(('127.0.0.1', 0))", False, id="it could receive"),
        pytest.param("socket.getaddrinfo('localhost', 1)", False, id="it asks"),
    ],
)
def test_what_an_installed_package_tries_at_its_import(
    cache: Path, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, package: str, kept: bool
) -> None:
    """PyTorch Geometric loads urllib3, which looks at its import whether the machine has addresses of IPv6."""
    site = tmp_path / "site"
    (site / "tries-1.0.dist-info").mkdir(parents=True)
    (site / "tries.py").write_text(f"import socket\n{package}\n")
    model.write_text(MODEL.replace("import numpy as np", "import numpy as np, tries"))
    code = f"import fuseflow as ff; ff.compile({str(model)!r})"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(site), *sys.path])}
    runs = [
        subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True).stdout
        for _ in range(2)
    ]
    assert [run.count("imported") for run in runs] == [1, 0 if kept else 1]


@pytest.mark.parametrize(
    ("text", "kept"), [("pass", True), ("import time", False)], ids=["code that can be repeated", "code that cannot"]
)
def test_temporary_files_that_a_model_makes_are_no_part_of_what_was_read(
    cache: Path, model: Path, imports: Callable[..., bool], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, kept: bool
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    code = (
        f"with tempfile.NamedTemporaryFile('w', suffix='.py', delete=False) as made: made.write({text!r})\nopen(made.name).read()"
    )
    model.write_text(MODEL.replace("def build", f"import tempfile\n{code}\n\ndef build"))
    assert imports(model) and imports(model) != kept


PYG = """
import torch
from torch_geometric.nn import GCNConv, MessagePassing


class Scaled(MessagePassing):
    def forward(self, x, edges):
        return self.propagate(edges, x=x, factor=FACTOR)

    def message(self, x_j, factor: float):
        return factor * x_j


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = GCNConv(34, 3), Scaled()

    def forward(self, x, edges):
        return self.second(self.first(x, edges), edges)


def build(data):
    rows, columns = data.edges.nonzero()
    return Net().eval(), (data.features.to_dense(), torch.stack((torch.from_numpy(rows), torch.from_numpy(columns))).long())
"""


def test_models_of_pytorch_geometric_are_kept(cache: Path, tmp_path: Path) -> None:
    pytest.importorskip("torch_geometric.nn")
    model = tmp_path / "model.py"
    model.write_text(PYG.replace("FACTOR", "2.0"))
    code = (
        "import logging, sys; logging.basicConfig(level=logging.INFO); import fuseflow as ff;"
        f"print(ff.compile({str(model)!r}).program);"
        "print('loaded', *(name for name in ('torch', 'torch_geometric') if name in sys.modules))"
    )
    (tmp_path / "temporary").mkdir()
    environment = {**os.environ, "TMPDIR": str(tmp_path / "temporary"), "PYTHONPATH": os.pathsep.join(sys.path)}
    first, second = (
        subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
        for _ in range(2)
    )
    assert first.stdout.endswith("loaded torch torch_geometric\n")
    assert second.stdout == first.stdout.replace("loaded torch torch_geometric", "loaded"), first.stderr


def test_layers_of_the_same_name_in_two_files_are_two(tmp_path: Path) -> None:
    """PyTorch Geometric makes a module of code for each kind of layer, by its name."""
    pytest.importorskip("torch_geometric.nn")
    other = PYG.replace("factor", "gain").replace("FACTOR", "6.0")
    for folder, text in (("a", PYG.replace("FACTOR", "2.0")), ("b", other)):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "model.py").write_text(text)
    results = [ff.compile(tmp_path / folder / "model.py", fresh=True).run() for folder in "ab"]
    first, second = (np.asarray(next(iter(result.outputs.values()))) for result in results)
    np.testing.assert_allclose(second, 3 * first, rtol=1e-5)


@pytest.mark.parametrize("variable", ["TORCH_HOME", "PYG_HOME", "HF_HUB_CACHE"])
def test_the_environment_of_libraries_is_part_of_the_request(
    cache: Path, model: Path, imports: Callable[..., bool], monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    assert imports(model) and not imports(model)
    monkeypatch.setenv(variable, "/elsewhere")
    assert imports(model) and not imports(model)


def test_commands_say_why_a_model_is_imported_anew(cache: Path, model: Path) -> None:
    model.write_text(MODEL.replace("def build", "import time\n\ndef build"))
    said = f"{model} is imported anew in every run, because it depends on the clock: `time` in {model}\n"
    for flags, expected in (((), "imported\n" + said), (("-q",), "imported\n")):
        result = CliRunner().invoke(main, ["compile", str(model), "--emit", "einsum", *flags])
        assert (result.exit_code, result.stderr) == (0, expected)


def test_a_module_beside_the_model_is_looked_at_too(cache: Path, model: Path, imports: Callable[..., bool]) -> None:
    (model.parent / "helper.py").write_text("import time\nscale = time.time()\n")
    assert imports(model) and imports(model)


def test_a_listing_is_part_of_what_was_read(cache: Path, model: Path, imports: Callable[..., bool]) -> None:
    (model.parent / "data").mkdir()
    model.write_text(MODEL.replace("def build", "FILES = sorted(Path(__file__).with_name('data').iterdir())\n\ndef build"))
    assert imports(model) and not imports(model)
    (model.parent / "data" / "more.npy").touch()
    assert imports(model) and not imports(model)


def test_a_file_that_was_looked_for_is_part_of_what_was_read(cache: Path, model: Path, imports: Callable[..., bool]) -> None:
    attempt = "try:\n    open(Path(__file__).with_name('extra.txt')).close()\nexcept OSError:\n    pass\n\ndef build"
    model.write_text(MODEL.replace("def build", attempt))
    assert imports(model) and not imports(model)
    (model.parent / "extra.txt").touch()
    assert imports(model) and not imports(model)


def test_options_that_only_this_process_knows_are_not_kept(cache: Path, model: Path) -> None:
    model.write_text(MODEL.replace("size: int = 4", "size=4, more=None"))
    load(ModelSpec(model, options={"more": object()}))
    assert not cache.exists() or not list(cache.iterdir())


def _load_often(model: Path) -> bytes:
    spec = ModelSpec(model)
    return b"".join(t.values.tobytes() for n in range(8) for t in load(ModelSpec(spec.model, fresh=n % 2 == 0)).tensors.values())


def test_two_processes_at_once_agree(cache: Path, model: Path) -> None:
    with ProcessPoolExecutor(2) as pool:
        first, second = pool.map(_load_often, [model, model])
    assert first == second
    assert len(list(cache.iterdir())) == 1, "no temporary file stays"


HELPED = """
import torch
from helper_of_model import Layer


class Net(Layer):
    def forward(self, x):
        return super().forward(x) + 1


def build(data):
    return Net(), (torch.ones(2, 3),)
"""
HELPER = """
import torch
from dataclasses import dataclass


@dataclass
class Factor:
    value: float = 2.0


class Layer(torch.nn.Module):
    def forward(self, x):
        return x * Factor().value
"""


def test_fresh_runs_the_modules_beside_a_model_again(tmp_path: Path) -> None:
    model, helper = tmp_path / "model.py", tmp_path / "helper_of_model.py"
    model.write_text(HELPED)
    helper.write_text(HELPER)

    def value() -> float:
        result = ff.compile(model, fresh=True).run()
        assert result.check is not None and result.check.passed
        return float(np.asarray(next(iter(result.outputs.values())))[0, 0])

    assert [value(), value()] == [3.0, 3.0]
    helper.write_text(HELPER.replace("2.0", "4.00"))  # of another size: Python looks at sizes and seconds
    assert value() == 5.0


def test_why_a_model_is_imported_anew_is_logged(
    cache: Path, model: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def told(**asked: Any) -> str:
        caplog.clear()
        with caplog.at_level(logging.DEBUG, "fuseflow.frontend"):
            ff.compile(model, **asked)
        return caplog.messages[0].partition(f"{model} is ")[2]

    assert told() == "imported anew: no import of it is kept"
    assert told() == "read from the cache of imported models: nothing that it depends on changed"
    assert told(fresh=True) == "imported anew: `fresh` asks for it"
    assert told(seed=3) == "imported anew: `seed` is 3, and was 0"
    assert told(data="karate:nodes=9") == "imported anew: `data` is karate:nodes=9, and was not given; `seed` is 0, and was 3"
    model.write_text(model.read_text() + "# more\n")
    assert told().endswith(f"{model.name}` changed")
    monkeypatch.setenv("HF_HOME", "/elsewhere")
    assert told() == "imported anew: `installation environment HF_HOME` is /elsewhere, and was not given"
    (model.parent / "beside.py").write_text("")
    assert "`beside` has `beside.py`" in told()
    monkeypatch.setattr("fuseflow.frontend.import_cache.request.package_digest", lambda: "another")
    assert told() == "imported anew: the sources of fuseflow changed"
    monkeypatch.setenv("FUSEFLOW_MODEL_CACHE_MB", "0")
    assert told() == "imported, and not kept: no cache"

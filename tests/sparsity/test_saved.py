"""Sparse weights in a directory: they come back bit for bit, and no directory does harm to the model that it is loaded into."""

import io
import json
import os
import pickle
import zipfile

import numpy as np
import pytest
import torch
from torch import nn

import fuseflow.sparsity as sp
from fuseflow.errors import FileError, SparsityError
from fuseflow.sparsity.spec import SparseSpec


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second, self.act = nn.Linear(4, 4), nn.Linear(4, 4), nn.ReLU()
        self.second.weight = self.first.weight

    def forward(self, x):
        return self.second(self.act(self.first(x)))


def dense(seed=0):
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(5, 7), nn.ReLU(), nn.Linear(7, 3))


def builder():
    made = sp.SparsityBuilder()
    made.set_weight("0.weight", sp.Magnitude(0.6), inline_sparsifier=sp.Threshold(0.05), out_format=sp.CSR)
    made.set_weight("2.weight", sp.NM(2, 4), external_sparsifier=sp.Movement(0.5), out_format=sp.NMLayout)
    made.set_weight_grad("2.weight", inline_sparsifier=sp.TopK(2, dim=1))
    made.set_interm("1", external_sparsifier=sp.Threshold(0.1), out_format=sp.COO)
    made.set_interm_grad("1", inline_sparsifier=sp.Magnitude(0.5))
    return made


@pytest.fixture
def saved(tmp_path):
    """A directory of the sparse weights of `dense()`."""
    sp.save_sparsity(builder().get_sparse_model(dense()), tmp_path / "saved")
    return tmp_path / "saved"


def spec_of(model):
    state = sp.sparsity_of(model)
    return SparseSpec(tuple((n, w.entry) for n, w in state.weights.items()), tuple(state.intermediates.items()))


def bits(tensor):
    return tensor.detach().contiguous().view(torch.uint8).tolist()


def require_same_weights(model, other):
    ours, others = sp.sparsity_of(model).weights, sp.sparsity_of(other).weights
    assert [*ours] == [*others] and all(torch.equal(ours[name].mask, others[name].mask) for name in ours)
    for name in ours:
        parameter = model.get_parameter(name)
        assert parameter.dtype == other.get_parameter(name).dtype and bits(parameter) == bits(other.get_parameter(name))


def refuses(path, message, kind=FileError, model=None):
    """Check that a directory is refused, and that the model is as it was."""
    model = dense(1) if model is None else model
    before, modules = {k: v.clone() for k, v in model.state_dict().items()}, [dict(vars(m)) for m in model.modules()]
    parameters = [*model.parameters()]
    with pytest.raises(kind) as error:
        sp.load_sparsity(model, path)
    assert message in error.value.message
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert [vars(m).keys() for m in model.modules()] == [m.keys() for m in modules] and sp.sparsity_of(model) is None
    assert not any(m._forward_hooks or m._forward_pre_hooks for m in model.modules())
    assert all(p is q for p, q in zip(model.parameters(), parameters, strict=True))


def change_manifest(path, **changes):
    manifest = json.loads((path / "sparsity.json").read_text()) | changes
    (path / "sparsity.json").write_text(json.dumps(manifest))


def arrays_of(path):
    with np.load(path / "weights.npz") as archive:
        return {name: archive[name] for name in archive.files}


def change_array(path, name, value):
    arrays = arrays_of(path)
    (path / "weights.npz").unlink()
    np.savez(path / "weights.npz", **(arrays | {name: value}))


def change_entry(path, name, content, **kind):
    """Write other bytes for one array of the archive."""
    with zipfile.ZipFile(path / "weights.npz") as archive:
        entries = {entry: archive.read(entry) for entry in archive.namelist()}
    with zipfile.ZipFile(path / "weights.npz", "w", **kind) as archive:
        for entry, data in (entries | {f"{name}.npy": content}).items():
            archive.writestr(entry, data)


def header(shape, descr="<f4", magic=b"\x93NUMPY\x01\x00"):
    text = f"{{'descr': {descr!r}, 'fortran_order': False, 'shape': {shape}, }}\n".encode()
    return magic + len(text).to_bytes(2, "little") + text


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16, torch.float64], ids=str)
def test_a_model_comes_back_bit_for_bit(dtype, tmp_path):
    sparse, model = builder().get_sparse_model(dense().to(dtype)), dense().to(dtype)
    sp.save_sparsity(sparse, tmp_path / "saved")
    weight = model[0].weight
    with torch.no_grad():
        weight.zero_()
    sp.load_sparsity(model, tmp_path / "saved")
    require_same_weights(model, sparse)
    assert spec_of(model) == spec_of(sparse) == builder().spec() and model[0].weight is weight
    if dtype == torch.float32:
        x = torch.randn(4, 5)
        assert torch.equal(model(x), sparse(x))


def test_two_saves_of_a_model_write_the_same_spec_and_arrays(saved, tmp_path):
    model = dense()
    sp.load_sparsity(model, saved)
    sp.save_sparsity(model, tmp_path / "again")
    assert (saved / "spec.yaml").read_text() == (tmp_path / "again" / "spec.yaml").read_text()
    ours, others = arrays_of(saved), arrays_of(tmp_path / "again")
    assert ours.keys() == others.keys() and all(np.array_equal(ours[name], others[name]) for name in ours)


def test_an_entry_that_is_kept_though_it_is_zero_stays_kept(tmp_path):
    sparse = dense()
    with torch.no_grad():
        sparse[0].weight.zero_()
    sparse = builder().get_sparse_model(sparse)
    state = sp.sparsity_of(sparse).weights["0.weight"]
    state.mask.fill_(True)
    sp.save_sparsity(sparse, tmp_path / "saved")
    model = dense()
    sp.load_sparsity(model, tmp_path / "saved")
    assert sp.sparsity_of(model).weights["0.weight"].mask.all() and not model[0].weight.any()


def test_tied_weights_stay_tied(tmp_path):
    made = sp.SparsityBuilder()
    made.set_weight("second.weight", sp.Magnitude(0.5))
    sparse, model = made.get_sparse_model(Tied()), Tied()
    sp.save_sparsity(sparse, tmp_path / "saved")
    sp.load_sparsity(model, tmp_path / "saved")
    require_same_weights(model, sparse)
    assert model.first.weight is model.second.weight


def test_a_weight_that_torch_stores_sparse_becomes_dense(saved):
    model = dense()
    model[0].weight = nn.Parameter(model[0].weight.detach().to_sparse_csr())
    sp.load_sparsity(model, saved)
    require_same_weights(model, builder().get_sparse_model(dense()))


def test_rules_of_intermediates_alone_can_be_saved(tmp_path):
    made, x = sp.SparsityBuilder(), torch.randn(4, 5)
    made.set_interm("1", inline_sparsifier=sp.Threshold(0.3))
    sparse, model = made.get_sparse_model(dense()), dense()
    sp.save_sparsity(sparse, tmp_path / "saved")
    sp.load_sparsity(model, tmp_path / "saved")
    assert torch.equal(model(x), sparse(x)) and not torch.equal(model(x), dense()(x))


def test_what_modules_inside_know_is_saved_with_the_model(tmp_path):
    def outer():
        model = nn.Sequential(Tied(), dense())
        model[0].load_state_dict({k: torch.linspace(-1, 1, v.numel()).view(v.shape) for k, v in model[0].state_dict().items()})
        return model

    sparse, model, made = outer(), outer(), sp.SparsityBuilder()
    made.set_weight("first.weight", sp.Magnitude(0.5))
    made.set_interm("act", inline_sparsifier=sp.Threshold(0.3))
    made.sparsify_model_inplace(sparse[0])
    builder().sparsify_model_inplace(sparse[1])
    sp.save_sparsity(sparse, tmp_path / "saved")
    sp.load_sparsity(model, tmp_path / "saved")
    assert [*sp.sparsity_of(model).weights] == ["0.first.weight", "1.0.weight", "1.2.weight"]
    for (_, ours, a), (_, others, b) in zip(sp.sparse_weights(model), sp.sparse_weights(sparse), strict=True):
        assert torch.equal(ours, others) and torch.equal(a.mask, b.mask)
    x = torch.randn(3, 4)
    assert torch.equal(model[0](x), sparse[0](x))


def test_a_dense_model_is_not_saved(tmp_path):
    with pytest.raises(SparsityError, match="the model is dense"):
        sp.save_sparsity(dense(), tmp_path / "saved")
    assert not (tmp_path / "saved").exists()


@pytest.mark.parametrize("number", [float("nan"), float("inf"), -float("inf")])
def test_numbers_that_are_not_finite_are_not_saved(number, tmp_path):
    sparse = builder().get_sparse_model(dense())
    with torch.no_grad():
        sparse[0].weight[sp.sparsity_of(sparse).weights["0.weight"].mask] = number
    with pytest.raises(SparsityError, match=r"the weight `0\.weight` has numbers that are not finite"):
        sp.save_sparsity(sparse, tmp_path / "saved")
    assert not (tmp_path / "saved").exists()


def test_an_earlier_save_is_replaced_and_a_foreign_directory_is_not(saved, tmp_path):
    sparse, model = builder().get_sparse_model(dense(7)), dense()
    sp.save_sparsity(sparse, saved)
    sp.load_sparsity(model, saved)
    require_same_weights(model, sparse)
    (saved / "notes.txt").write_text("mine")
    with pytest.raises(FileError, match=r"its `notes\.txt` is not from an earlier run"):
        sp.save_sparsity(builder().get_sparse_model(dense()), saved)
    foreign, file = tmp_path / "foreign", tmp_path / "file"
    foreign.mkdir()
    (foreign / "thesis.tex").write_text("mine")
    file.write_text("mine")
    for path, message in ((foreign, "is not empty"), (file, "is a file")):
        with pytest.raises(FileError, match=message):
            sp.save_sparsity(sparse, path)
    assert (foreign / "thesis.tex").read_text() == file.read_text() == (saved / "notes.txt").read_text() == "mine"
    assert {p.name for p in tmp_path.iterdir()} == {"saved", "foreign", "file"}


def test_a_model_that_is_sparse_already_loads_nothing(saved):
    sparse = builder().get_sparse_model(dense(3))
    for model in (sparse, nn.Sequential(sparse)):
        with pytest.raises(SparsityError, match="the model is sparse already"):
            sp.load_sparsity(model, saved)


def test_a_link_to_a_directory_is_one(saved, tmp_path):
    (tmp_path / "link").symlink_to(saved)
    model = dense()
    sp.load_sparsity(model, tmp_path / "link")
    require_same_weights(model, builder().get_sparse_model(dense()))


@pytest.mark.parametrize(
    "make",
    [
        lambda path: None,
        lambda path: path.write_text("{}"),
        lambda path: path.symlink_to(path / "itself"),
        lambda path: path.symlink_to("/dev/zero"),
        lambda path: path.mkdir(),
        lambda path: (path / "sparsity.json").mkdir(parents=True),
    ],
    ids=["nothing", "file", "circular link", "device", "empty", "directories"],
)
def test_what_is_no_directory_of_sparse_weights_is_refused(make, tmp_path):
    make(tmp_path / "saved")
    refuses(tmp_path / "saved", "holds no sparse weights")


@pytest.mark.parametrize("name", ["sparsity.json", "spec.yaml", "weights.npz"])
def test_a_missing_file_is_refused(name, saved):
    (saved / name).unlink()
    refuses(saved, str(saved))
    (saved / name).mkdir()
    refuses(saved, str(saved))


@pytest.mark.parametrize("name", ["sparsity.json", "weights.npz"])
def test_a_file_that_is_cut_off_is_refused(name, saved):
    content = (saved / name).read_bytes()
    for length in {0, 1, 2, 4, 30, *range(5, len(content) - 2, 41), len(content) - 2}:
        (saved / name).write_bytes(content[:length])
        refuses(saved, str(saved))


def test_a_spec_that_is_cut_off_is_refused_or_one_of_fewer_rules(saved):
    content = (saved / "spec.yaml").read_bytes()
    for length in range(0, content.index(b"intermediates"), 7):
        (saved / "spec.yaml").write_bytes(content[:length])
        try:
            model = dense()
            sp.load_sparsity(model, saved)
        except (FileError, SparsityError):
            assert sp.sparsity_of(model) is None and torch.equal(model[0].weight, dense()[0].weight)
        else:
            assert sp.sparsity_of(model).weights.keys() == {"0.weight", "2.weight"}


def test_bytes_that_changed_are_refused_or_harmless(saved):
    content = (saved / "weights.npz").read_bytes()
    for place in range(0, len(content), 3):
        (saved / "weights.npz").write_bytes(content[:place] + bytes([content[place] ^ 0xFF]) + content[place + 1 :])
        model = dense(1)
        try:
            sp.load_sparsity(model, saved)
        except (FileError, SparsityError):
            assert sp.sparsity_of(model) is None and torch.equal(model[0].weight, dense(1)[0].weight)
        else:
            require_same_weights(model, builder().get_sparse_model(dense()))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"[]", "has the version None"),
        (b"{", "is not JSON"),
        (b"\xff\xfe", "is not JSON"),
        (b"[" * 100_000, "is not JSON"),
        (b"null", "has the version None"),
        (b'{"schema": 2}', "has the version 2, this fuseflow reads 1"),
        (b'{"schema": "1"}', "has the version 1"),
        (b'{"schema": 1}', "has no shapes of weights"),
        (b'{"schema": 1, "shapes": {"0.weight": [7, "5"]}}', "has no shapes of weights"),
        (b'{"schema": 1, "shapes": {"0.weight": [7, -5]}}', "has no shapes of weights"),
        (b'{"schema": 1, "shapes": {"0.weight": [7, true]}}', "has no shapes of weights"),
        (b'{"schema": 1, "shapes": {"0.weight": 35}}', "has no shapes of weights"),
        (b'{"schema": 1, "shapes": [["0.weight", [7, 5]]]}', "has no shapes of weights"),
    ],
)
def test_a_manifest_of_another_form_is_refused(content, message, saved):
    (saved / "sparsity.json").write_bytes(content)
    refuses(saved, message)


@pytest.mark.parametrize(
    ("shapes", "kind", "message"),
    [
        ({"0.weight": [7, 5]}, SparsityError, "no weight is called `2.weight`"),
        ({}, SparsityError, "no weight is called `0.weight`"),
        ({"0.weight": [7, 5], "2.weight": [3, 7], "3.weight": [1]}, SparsityError, "has a weight `3.weight`, the model has not"),
        ({"0.weight": [7, 5], "2.weight": [3, 7], "0.bias": [7]}, FileError, "lacks the array `mask/0.bias`"),
        ({"0.weight": [5, 7], "2.weight": [3, 7]}, SparsityError, "`0.weight` in the shape [5, 7], the model in [7, 5]"),
        ({"0.weight": [10**30, 5], "2.weight": [3, 7]}, SparsityError, "the model in [7, 5]"),
    ],
)
def test_a_manifest_of_other_weights_is_refused(shapes, kind, message, saved):
    change_manifest(saved, shapes=shapes)
    refuses(saved, message, kind)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (nn.Linear(5, 7), "has a weight `0.weight`, the model has not"),
        (nn.Sequential(nn.Linear(5, 6), nn.ReLU(), nn.Linear(6, 3)), "in the shape [7, 5], the model in [6, 5]"),
        (nn.Sequential(nn.Linear(5, 7), nn.ReLU(), nn.Linear(7, 3)).to("meta"), "has no numbers yet"),
        (nn.Sequential(nn.LazyLinear(7)), "has no numbers yet"),
    ],
)
def test_a_directory_of_another_model_is_refused(model, message, saved):
    with pytest.raises(SparsityError) as error:
        sp.load_sparsity(model, saved)
    assert message in error.value.message and error.value.hint and sp.sparsity_of(model) is None


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64], ids=str)
def test_numbers_of_another_type_are_refused(dtype, saved):
    refuses(saved, "`values/0.weight`" if dtype != torch.bfloat16 else "no bfloat16", model=dense().to(dtype))


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("mask/0.weight", np.zeros(4, np.uint8), "no array of uint8 in the shape [5]"),
        ("mask/0.weight", np.zeros(6, np.uint8), "no array of uint8 in the shape [5]"),
        ("mask/0.weight", np.zeros((1, 5), np.uint8), "no array of uint8 in the shape [5]"),
        ("mask/0.weight", np.zeros(5, np.int8), "no array of uint8 in the shape [5]"),
        ("mask/0.weight", np.zeros(5, np.uint8), "no array of float32 in the shape [0]"),
        ("mask/2.weight", np.full(3, 255, np.uint8), "`2.weight` cannot be stored as `nm:2:4`"),
        ("values/0.weight", np.zeros(13, np.float32), "no array of float32 in the shape [14]"),
        ("values/0.weight", np.zeros((), np.float32), "no array of float32 in the shape [14]"),
        ("values/0.weight", np.zeros(14, np.float64), "no array of float32 in the shape [14]"),
        ("values/0.weight", np.zeros(14, np.int32), "no array of float32 in the shape [14]"),
        ("values/0.weight", np.zeros(14, ">f4"), "no array of float32 in the shape [14]"),
        ("values/0.weight", np.zeros(14, "S4"), "no array of float32 in the shape [14]"),
        ("values/0.weight", np.full(14, np.nan, np.float32), "not finite"),
        ("values/0.weight", np.full(14, -np.inf, np.float32), "not finite"),
        ("values/0.weight", np.full(14, {"a": 1}, object), "no array of float32 in the shape [14]"),
        ("values/3.weight", np.zeros(14, np.float32), "has an unknown array `values/3.weight`"),
    ],
)
def test_another_array_is_refused(name, value, message, saved):
    change_array(saved, name, value)
    refuses(saved, message, (FileError, SparsityError))


def test_a_missing_array_is_refused(saved):
    arrays = arrays_of(saved)
    for name in arrays:
        np.savez(saved / "weights.npz", **{other: value for other, value in arrays.items() if other != name})
        refuses(saved, f"lacks the array `{name}`")


class Trap:
    """A value that makes a directory when it is unpickled."""

    def __init__(self, path):
        self.path = str(path)

    def __reduce__(self):
        return os.mkdir, (self.path,)


def test_no_pickle_in_an_archive_is_loaded(saved, tmp_path):
    file, trap = io.BytesIO(), Trap(tmp_path / "sprung")
    np.save(file, np.full(14, trap, object), allow_pickle=True)
    for content in (file.getvalue(), pickle.dumps(trap)):
        change_entry(saved, "values/0.weight", content)
        refuses(saved, "`values/0.weight`")
    for name in ("weights.npz", "sparsity.json"):
        (saved / name).write_bytes(pickle.dumps(trap))
        refuses(saved, str(saved))
    assert not (tmp_path / "sprung").exists()
    pickle.loads(pickle.dumps(trap))
    assert (tmp_path / "sprung").exists()


@pytest.mark.parametrize("claimed", [(10**12,), (2**62,), (14, 10**9), (10**40,)])
def test_an_array_that_claims_memory_is_refused_before_it_gets_any(claimed, saved):
    change_entry(saved, "values/0.weight", header(claimed) + b"\0" * 56)
    refuses(saved, "no array of float32 in the shape [14]")


def test_an_array_with_too_much_behind_it_is_not_unpacked(saved):
    change_entry(saved, "values/0.weight", header((14,)) + bytes(50_000_000), compression=zipfile.ZIP_DEFLATED)
    assert (saved / "weights.npz").stat().st_size < 100_000
    refuses(saved, "`values/0.weight`")
    change_entry(saved, "values/0.weight", bytes(50_000_000), compression=zipfile.ZIP_LZMA)
    refuses(saved, "packed in an unknown way")


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\x93NUMPY\x01\x00",
        b"\x93NUMPY\x01\x00\xff\xff{",
        header((14,), magic=b"\x93NUMPY\x02\x00") + bytes(56),
        header((14,), magic=b"\x93NUMPX\x01\x00") + bytes(56),
        header((14,)) + bytes(55),
        header((14,)) + bytes(57),
        header((14,), descr="|O") + bytes(56),
        b"\x93NUMPY\x01\x00\x20\x00" + b"(" * 32 + bytes(56),
    ],
)
def test_what_is_no_array_is_refused(content, saved):
    change_entry(saved, "values/0.weight", content)
    refuses(saved, "`values/0.weight`")


@pytest.mark.parametrize(
    ("text", "kind", "message"),
    [
        ("", FileError, "has no entry for the weight `0.weight`"),
        ("weights: {0.weight: {sparsifier: magnitude:0.6}}\n", FileError, "has no entry for the weight `2.weight`"),
        ("weights: {'*': {sparsifier: magnitud:0.6}}\n", SparsityError, "there is no sparsifier `magnitud`"),
        ("weights: {'*': {}, 3.weight: {}}\n", SparsityError, "no weight is called `3.weight`"),
    ],
)
def test_another_spec_is_refused(text, kind, message, saved):
    (saved / "spec.yaml").write_text(text)
    refuses(saved, message, kind)

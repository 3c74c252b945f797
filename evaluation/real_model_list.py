"""The models of `real_models.py`: classes of PyTorch Geometric, Hugging Face and plain PyTorch, unmodified, at real sizes.

Weights are random, of one seed. A model of a graph takes the features and the `edge_index` of Cora as PyTorch Geometric's examples do, both
dense tensors. Every import of a library of models is inside the function that needs it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

ZOO = Path(__file__).resolve().parents[1] / "tests" / "zoo"
HIDDEN, HEADS, GRAPH_HIDDEN = 256, 4, 16
TOKENS = 64
Brought = tuple["torch.nn.Module", tuple[Any, ...]]


@dataclass(frozen=True, slots=True)
class RealModel:
    """`build` gets the directory with the files of the graphs. `graph` says whether the model needs them, `sizes` is for the reader.
    `formats` are those that a user gives to `fuseflow.compile` for tensors that PyTorch holds dense."""

    name: str
    title: str
    sizes: str
    build: Callable[[Path | None], Brought]
    graph: bool = False
    formats: Mapping[str, str] = field(default_factory=dict)

    def bring(self, data_dir: Path | None) -> Brought:
        """The module in evaluation and its arguments, the same at each call."""
        import torch

        torch.manual_seed(0)
        module, arguments = self.build(data_dir)
        return module.eval(), arguments


def cora(data_dir: Path | None) -> tuple[torch.Tensor, torch.Tensor]:
    """The features [2708, 1433] and the `edge_index` [2, 10556] of Cora."""
    import numpy as np
    import torch

    from fuseflow.frontend.data import load_data

    data = load_data("cora", data_dir)
    edges = data.edges.tocoo()
    return data.features.to_dense(), torch.from_numpy(np.stack([edges.row, edges.col]).astype(np.int64))


def _graph_model(name: str, hidden: int = GRAPH_HIDDEN, **options: Any) -> Callable[[Path | None], Brought]:
    def build(data_dir: Path | None) -> Brought:
        import torch_geometric.nn as pyg

        x, edge_index = cora(data_dir)
        return getattr(pyg, name)(x.shape[1], hidden, num_layers=2, out_channels=7, **options), (x, edge_index)

    return build


SIZES = {
    "hidden_size": HIDDEN,
    "num_hidden_layers": 2,
    "num_attention_heads": HEADS,
    "intermediate_size": 4 * HIDDEN,
}


def _text_model(name: str, tokens: int = TOKENS, **options: Any) -> Callable[[Path | None], Brought]:
    """A model with the vocabulary of its family."""

    def build(data_dir: Path | None) -> Brought:
        import torch
        import transformers as hf

        config = getattr(hf, f"{name}Config")(**(options or SIZES))
        return getattr(hf, f"{name}Model")(config), (torch.randint(3, config.vocab_size, (1, tokens)),)

    return build


def _vit(data_dir: Path | None) -> Brought:
    import torch
    import transformers as hf

    return hf.ViTModel(hf.ViTConfig(**SIZES)), (torch.randn(1, 3, 224, 224),)


def _pruned(module: torch.nn.Module) -> torch.nn.Module:
    """The module with the tenth of the weights of each convolution that is largest."""
    import torch
    from torch.nn.utils import prune

    for layer in module.modules():
        if isinstance(layer, torch.nn.Conv2d):
            prune.l1_unstructured(layer, "weight", amount=0.9)
            prune.remove(layer, "weight")
    return module


def _plain() -> Any:
    """The networks in plain PyTorch of the zoo."""
    sys.path.insert(0, str(ZOO))
    import plain_networks

    return plain_networks


def _resnet_block(data_dir: Path | None) -> Brought:
    import torch

    return _pruned(_plain().BasicBlock(64, 64)), (torch.randn(1, 64, 28, 28),)


def _mobilenet_block(data_dir: Path | None) -> Brought:
    import torch

    return _pruned(_plain().InvertedResidual(32, 32, 1, 6)), (torch.randn(1, 32, 28, 28),)


def _lstm(data_dir: Path | None) -> Brought:
    import torch

    return torch.nn.LSTM(64, 128, batch_first=True), (torch.randn(1, 16, 64),)


def _dlrm(data_dir: Path | None) -> Brought:
    import torch

    tables, batch, bag = 8, 32, 4
    indices = [torch.randint(1000, (batch * bag,)) for _ in range(tables)]
    offsets = [torch.arange(0, batch * bag, bag) for _ in range(tables)]
    return _plain().Dlrm(rows=(1000,) * tables, width=16), (torch.randn(batch, 5), indices, offsets)


def _mixture_of_experts(data_dir: Path | None) -> Brought:
    import torch

    return _plain().MixtureOfExperts(width=64, experts=8, k=2), (torch.randn(64, 64),)


TEXT = f"2 layers, hidden {HIDDEN}, {HEADS} heads, {TOKENS} tokens"
CORA = f"Cora, 2 layers, hidden {GRAPH_HIDDEN}"
MODELS = (
    RealModel("gcn", "PyG `GCN`", CORA, _graph_model("GCN"), True),
    RealModel("gcn_sparse", "PyG `GCN`, features stored `csr`", CORA, _graph_model("GCN"), True, {"x": "csr"}),
    RealModel("sage_mean", "PyG `GraphSAGE`, mean", CORA, _graph_model("GraphSAGE"), True),
    RealModel("sage_max", "PyG `GraphSAGE`, max", CORA, _graph_model("GraphSAGE", aggr="max"), True),
    RealModel("gat", "PyG `GAT`", "Cora, 2 layers, 8 heads x 8", _graph_model("GAT", 64, heads=8), True),
    RealModel("gin", "PyG `GIN`", CORA, _graph_model("GIN"), True),
    RealModel("gpt2", "`GPT2Model`", TEXT, _text_model("GPT2", n_embd=HIDDEN, n_layer=2, n_head=HEADS)),
    RealModel("bert", "`BertModel`", TEXT, _text_model("Bert")),
    RealModel("llama", "`LlamaModel`", TEXT, _text_model("Llama")),
    RealModel("vit", "`ViTModel`", f"2 layers, hidden {HIDDEN}, {HEADS} heads, 224 x 224 in 196 patches", _vit),
    RealModel(
        "bigbird",
        "`BigBirdModel`",
        f"2 layers, hidden {HIDDEN}, {HEADS} heads, 256 tokens in blocks of 16",
        _text_model("BigBird", 256, **SIZES, attention_type="block_sparse", block_size=16, num_random_blocks=3),
    ),
    RealModel(
        "resnet",
        "ResNet basic block, 90 % pruned, stored `csf`",
        "64 channels, 28 x 28",
        _resnet_block,
        formats=dict.fromkeys(("conv1.weight", "conv2.weight"), "csf"),
    ),
    RealModel(
        "mobilenet",
        "MobileNetV2 block, 90 % pruned, stored `csf`",
        "32 channels, expansion 6, 28 x 28",
        _mobilenet_block,
        formats=dict.fromkeys(("conv.0.weight", "conv.3.weight", "conv.6.weight"), "csf"),
    ),
    RealModel("lstm", "`nn.LSTM`", "16 steps, 64 inputs, hidden 128", _lstm),
    RealModel("dlrm", "DLRM", "8 tables of 1,000 x 16, batch 32, bags of 4", _dlrm),
    RealModel("moe", "mixture of experts", "8 experts, top 2, width 64, 64 tokens", _mixture_of_experts),
)

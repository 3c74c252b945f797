"""A smaller module: channels and features that nothing reads any more are cut out of its layers.

Only chains are shrunk, in which a layer feeds one other layer, and all that stands between them treats every channel by itself. There, a
channel can go if all weights that the second layer multiplies it with are 0. Where channels go on into a sum or a norm of rows, they stay.
"""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.fx import Graph, Node, symbolic_trace

from fuseflow.errors import FrontendError
from fuseflow.frontend.foreign_errors import foreign_message, quiet
from fuseflow.frontend.model_propagation.analysis import ModuleAttributes
from fuseflow.frontend.trace import fx_origin
from fuseflow.sparsity.model_sparsity import clear_sparsity

_CONVOLUTIONS = (nn.Conv1d, nn.Conv2d, nn.Conv3d)
_BATCH_NORMS = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d)
_ENTRYWISE_LAYERS = (
    *(nn.ReLU, nn.ReLU6, nn.GELU, nn.SiLU, nn.ELU, nn.LeakyReLU, nn.Tanh, nn.Sigmoid, nn.Hardtanh, nn.Hardswish, nn.Softplus),
    *(nn.Identity, nn.Dropout),
)
_POOLING_LAYERS = (
    *(nn.MaxPool1d, nn.MaxPool2d, nn.MaxPool3d, nn.AvgPool1d, nn.AvgPool2d, nn.AvgPool3d),
    *(nn.AdaptiveAvgPool1d, nn.AdaptiveAvgPool2d, nn.AdaptiveAvgPool3d, nn.AdaptiveMaxPool1d, nn.AdaptiveMaxPool2d),
)
_ENTRYWISE = {
    *(torch.relu, torch.tanh, torch.sigmoid, F.relu, F.relu6, F.gelu, F.silu, F.elu, F.leaky_relu, F.hardtanh, F.hardswish),
    *("relu", "relu_", "tanh", "sigmoid"),
}
_POOLING = {F.max_pool1d, F.max_pool2d, F.max_pool3d, F.avg_pool1d, F.avg_pool2d, F.avg_pool3d, F.adaptive_avg_pool2d}


@dataclass(frozen=True, slots=True)
class Link:
    """A layer whose channels one other layer reads, and the layers between them that have numbers for each channel."""

    producer: str
    between: tuple[str, ...]
    consumer: str


def shrink(module: nn.Module, analysis: ModuleAttributes) -> nn.Module:
    """Return a copy of a module in which dead weights are 0, and channels that are of no use are cut out.

    `analysis` is what `analyse_module` returned for the module. The copy computes the same from inputs of the same shapes. At least one
    channel of each layer stays. Raise `FrontendError` if the analysis is of another module, or if the module cannot be traced.
    """
    smaller = copy.deepcopy(module)
    for part in smaller.modules():
        clear_sparsity(part)
    _write_zeros(smaller, analysis)
    for link in list(_links(smaller, analysis)):
        _cut(smaller, link)
    return smaller


def _write_zeros(module: nn.Module, analysis: ModuleAttributes) -> None:
    """Set dead entries of parameters to 0."""
    for name, parameter in module.named_parameters():
        if name not in analysis or analysis[name].dead.shape != parameter.shape:
            raise FrontendError(f"the analysis is of another module: it has no `{name}` of this shape")
        with torch.no_grad():
            parameter.masked_fill_(analysis[name].dead, 0)


def _links(module: nn.Module, analysis: ModuleAttributes) -> Iterator[Link]:
    """Yield the links, pairs of layers whose channels can be cut, in the order of the module."""
    try:
        with quiet():
            graph = symbolic_trace(module).graph
    except Exception as error:  # whatever the model and PyTorch raise
        span = fx_origin.exception_span(error)
        raise FrontendError(f"the model cannot be traced: {foreign_message(error)}", span=span) from error
    layers = _own_layers(module, graph)
    for node in graph.nodes:
        if _mixes(layers.get(node)) and (link := _link_to(node, layers, analysis)):
            yield link


def _own_layers(module: nn.Module, graph: Graph) -> dict[Node, nn.Module]:
    """Return the layers that nodes call, by node, without layers whose parameters are also used elsewhere."""
    layers = {node: module.get_submodule(node.target) for node in graph.nodes if node.op == "call_module"}
    parts = [part for _, part in module.named_modules(remove_duplicate=False)]
    calls, paths = Counter(map(id, layers.values())), Counter(map(id, parts))
    uses = Counter(id(parameter) for part in parts for parameter in part.parameters(recurse=False))
    names = {name for name, _ in module.named_parameters(remove_duplicate=False)}
    others = {id(module.get_parameter(node.target)) for node in graph.nodes if node.op == "get_attr" and node.target in names}

    def is_own(layer: nn.Module) -> bool:
        state = list(layer.parameters())
        shared = calls[id(layer)] > 1 or paths[id(layer)] > 1 or any(uses[id(p)] > 1 or id(p) in others for p in state)
        return not state or not shared

    return {node: layer for node, layer in layers.items() if is_own(layer)}


def _link_to(consumer: Node, layers: Mapping[Node, nn.Module], analysis: ModuleAttributes) -> Link | None:
    """Return the link to a layer from the layer that computes its operand, or None where channels mix on the way."""
    between: list[str] = []
    pools = False
    gathering: Node | None = None  # where the channels of pictures become features of rows
    node = consumer.args[0] if consumer.args else None
    while isinstance(node, Node) and len(node.users) == 1:
        layer = layers.get(node)
        if _mixes(layer):
            if isinstance(layer, nn.Linear):
                fits = isinstance(layers[consumer], nn.Linear) and not (gathering or pools or between)
            elif gathering is None:
                fits = isinstance(layers[consumer], _CONVOLUTIONS)
            else:
                fits = isinstance(layers[consumer], nn.Linear) and _gathers_all(gathering, layers.get(gathering), layer)
                fits = fits and f"{node.target}.squeeze" not in analysis  # of a picture without a batch, rows are no channels
            return Link(str(node.target), tuple(between), str(consumer.target)) if fits else None
        if isinstance(layer, _BATCH_NORMS) or _is_depthwise(layer):
            between.append(str(node.target))
        elif isinstance(layer, _POOLING_LAYERS) or node.target in _POOLING:
            pools = True
        elif isinstance(layer, nn.Flatten) or node.target in (torch.flatten, torch.mean, "flatten", "mean"):
            if gathering is not None or between or pools:
                return None
            gathering = node
        elif not (isinstance(layer, _ENTRYWISE_LAYERS) or node.target in _ENTRYWISE):
            return None
        node = node.args[0] if node.args else None
    return None


def _mixes(layer: nn.Module | None) -> bool:
    """Return whether each result of a layer reads all channels."""
    return isinstance(layer, nn.Linear) or (isinstance(layer, _CONVOLUTIONS) and layer.groups == 1)


def _is_depthwise(layer: nn.Module | None) -> bool:
    return isinstance(layer, _CONVOLUTIONS) and layer.groups == layer.in_channels == layer.out_channels


def _gathers_all(node: Node, layer: nn.Module | None, producer: Any) -> bool:
    """Return whether a node, a call of `layer` or of a function, keeps the batch and the channels of the convolution `producer`,
    and flattens or averages the rest."""
    rank = producer.weight.dim()
    if isinstance(layer, nn.Flatten):
        return layer.start_dim == 1 and layer.end_dim in (-1, rank - 1)
    if node.kwargs:
        return False
    rest = node.args[1:]
    if node.target in (torch.flatten, "flatten"):
        return rest in ((1,), (1, -1), (1, rank - 1))
    dims = rest[0] if len(rest) == 1 else None
    return isinstance(dims, list | tuple) and sorted(int(d) % rank for d in dims) == list(range(2, rank))


def _cut(module: nn.Module, link: Link) -> None:
    """Cut the channels of a link that its consumer multiplies with zeros alone."""
    producer, consumer = (_layer(module, name) for name in (link.producer, link.consumer))
    channels = len(producer.weight)
    weight = consumer.weight.detach()
    spread = weight.shape[1] // channels  # of flattened pictures, a channel is several features
    keep = weight.reshape(len(weight), channels, -1).count_nonzero(dim=(0, 2)) > 0
    if not bool(keep.any()):
        keep[0] = True
    for name in (link.producer, *link.between):
        _keep_results(_layer(module, name), keep)
    consumer.weight = _part(consumer.weight, keep.repeat_interleave(spread), 1)
    _set_extent(consumer, "in", consumer.weight.shape[1])


def _keep_results(layer: Any, keep: Tensor) -> None:
    """Keep some channels of a layer's results: of a batch norm and a depthwise convolution, these are its inputs, too."""
    for name, parameter in list(layer.named_parameters(recurse=False)):
        setattr(layer, name, _part(parameter, keep, 0))
    for name, buffer in list(layer.named_buffers(recurse=False)):
        if buffer.dim():
            setattr(layer, name, buffer[keep])
    count = int(keep.sum())
    if _is_depthwise(layer) and layer.groups > 1:
        layer.groups = layer.in_channels = count
    if isinstance(layer, _BATCH_NORMS):
        layer.num_features = count
    _set_extent(layer, "out", count)


def _part(parameter: nn.Parameter, keep: Tensor, dim: int) -> nn.Parameter:
    (places,) = keep.nonzero(as_tuple=True)
    return nn.Parameter(parameter.detach().index_select(dim, places), requires_grad=parameter.requires_grad)


def _set_extent(layer: Any, side: str, extent: int) -> None:
    """Write the number of inputs (`side` is `in`) or of outputs (`out`), which a layer shows when printed, to the layer."""
    if isinstance(layer, (*_CONVOLUTIONS, nn.Linear)):
        setattr(layer, f"{side}_{'features' if isinstance(layer, nn.Linear) else 'channels'}", extent)


def _layer(module: nn.Module, name: str) -> Any:
    return module.get_submodule(name)

"""Reshapes between regions: a stored tensor that is seen in other dimensions. No graph, no cycles, no traffic: the same memory."""

from __future__ import annotations

from dataclasses import dataclass

from fuseflow.einsum.nodes import Access, Einsum, Index, TensorType, index_names
from fuseflow.errors import FusionError
from fuseflow.estimate import TensorStatistics
from fuseflow.tensors import Format, Tensor
from fuseflow.tensors.seen import seen, seen_format


@dataclass(frozen=True, slots=True)
class Seen:
    """The tensor `source` under the name, in the format and with the dimensions of `type`."""

    source: str
    type: TensorType

    @property
    def name(self) -> str:
        return self.type.name

    def of(self, tensor: Tensor) -> Tensor:
        assert self.type.format is not None
        return seen(tensor, self.type.format, self.type.shape)

    def statistics(self, source: TensorType, known: TensorStatistics) -> TensorStatistics:
        """Those of the source: its sparse levels are those of this tensor, dense ones are full."""
        assert source.format is not None and self.type.format is not None
        sparse = iter(f for f, level in zip(known.fanouts, source.format.levels, strict=True) if not level.full)
        sizes = tuple(self.type.shape[d] for d in self.type.format.order)
        fanouts = (float(n) if level.full else next(sparse) for n, level in zip(sizes, self.type.format.levels, strict=True))
        return TensorStatistics(sizes, tuple(fanouts))


def source_of(view: Einsum) -> Access:
    """What a view (`einsum.splits.is_view`) sees."""
    assert isinstance(view.body, Access)
    return view.body


def view_format(view: Einsum, source: TensorType) -> Format | None:
    """The format in which `source` is seen, None if it cannot be seen so."""
    assert source.format is not None
    return seen_format(source.format, _groups(source_of(view).indices), _groups(view.indices))


def needed_order(view: Einsum, format: Format | None) -> tuple[int, ...]:
    """The order in which dense dimensions of the source must be stored for it to be seen, in `format` if one is asked for."""
    groups = _groups(view.indices)
    stored = [part for d in (format.order if format is not None else range(len(groups))) for part in groups[d]]
    return tuple(d for d, _ in sorted(enumerate(_groups(source_of(view).indices)), key=lambda pair: stored.index(pair[1][0])))


def refuse_view(view: Einsum, source: TensorType) -> FusionError:
    """Why a tensor that is not dense cannot be seen so."""
    assert source.format is not None
    return FusionError(
        f"`{source.name}` is stored {source.format.short()} and cannot be seen as `{view.name}[{', '.join(map(str, view.indices))}]`: "
        f"only dense levels come apart or together",
        hint=f"store it dense (`--format {source.name}=dense`), or reshape it before it enters the model",
        span=view.location.span,
    )


def _groups(indices: tuple[Index, ...]) -> tuple[tuple[str, ...], ...]:
    return tuple(index_names((index,)) for index in indices)

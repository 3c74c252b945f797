"""Short names of nodes that still tell them apart. The nodes of a transformer have long names that differ in one word."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from fuseflow.report.page.svg import shorten_middle


def node_labels(names: Sequence[str], letters: int) -> Mapping[str, str]:
    """Return a label of at most `letters` letters for each name. Labels differ as names do, unless names differ nowhere that fits.

    >>> names = ["h.0.attn.query.weight.split_val", "h.0.attn.key.weight.split_val"]
    >>> list(node_labels(names, 25).values())
    ['…n.query.weight.split_val', '…ttn.key.weight.split_val']
    """
    labels = {name: shorten_middle(name, letters) for name in names}
    alike = {label for label, count in Counter(labels.values()).items() if count > 1}
    for label in alike:
        group = [name for name in names if labels[name] == label]
        others = {labels[name] for name in names if labels[name] != label}
        for way in _ways(group, letters):
            if len(set(way)) == len(group) and not others & set(way):
                labels.update(zip(group, way, strict=True))
                break
    return labels


def _ways(group: Sequence[str], letters: int) -> Iterable[list[str]]:
    """Yield lists of short forms for `group`, names whose usual short forms are equal: other heads and tails, then the letters
    around the first difference."""
    for head in range(letters - 1):
        yield [f"{name[:head]}…{name[len(name) - (letters - head - 1) :]}" for name in group]
    start = next((at for at, column in enumerate(zip(*group, strict=False)) if len(set(column)) > 1), min(map(len, group)))
    yield [f"…{name[start : start + letters - 2]}…" for name in group]

"""The share of its entries that a `keep(threshold ...)` is expected to leave.

The share of `H[i, j] = keep(threshold 0.1) A[i, j]` follows from the values of A, if A is an input with data. The share of any
other result is what the user states (`--stats H.kept=0.3`), or a half. `keep(nonzero)` is expected to leave everything, since a
stored entry is seldom 0.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from fuseflow.einsum.nodes import Access, Keep, Program
from fuseflow.samml.nodes import Drop, Graph
from fuseflow.selection import NONZERO, Threshold, kept
from fuseflow.tensors import Tensor

ASSUMED_SHARE = 0.5
"""The share of values that a threshold is expected to leave if nothing is known of them."""


@dataclass(frozen=True, slots=True)
class KeptShares:
    """The shares of entries that each `keep` by value leaves, by result, and the results whose share is only assumed."""

    by_result: Mapping[str, float]
    assumed: tuple[str, ...] = ()

    @classmethod
    def of(cls, program: Program, tensors: Mapping[str, Tensor], stated: Mapping[str, float]) -> KeptShares:
        """Return the shares for the results of a program. The `stated` ones are the user's, and `tensors` are the inputs with
        data."""
        shares, assumed = dict(stated), list[str]()
        for einsum in program.einsums:
            body = einsum.body
            if (
                einsum.name in shares
                or not isinstance(body, Keep)
                or not isinstance(body.rule, Threshold)
                or body.rule == NONZERO
            ):
                continue
            operand = body.body
            tensor = tensors.get(operand.tensor) if isinstance(operand, Access) else None
            if tensor is not None and tensor.values.size:
                shares[einsum.name] = float(np.mean(kept(body.rule, tensor.values)))
            else:
                shares[einsum.name] = ASSUMED_SHARE
                assumed.append(einsum.name)
        return cls(shares, tuple(assumed))

    @property
    def notices(self) -> tuple[str, ...]:
        """The sentence that names the results with assumed shares, if there are any."""
        if not self.assumed:
            return ()
        names = ", ".join(f"`{name}`" for name in self.assumed)
        return (
            f"half of the entries are expected to pass the threshold of {names}; `--stats {self.assumed[0]}.kept=0.3` says better",
        )

    def by_node(self, graph: Graph) -> dict[str, float]:
        """Return the share of its values that each node keeps, by node name. A node has the name of its result, with a number if
        there are several (`drop_H'2`), and with its lane (`drop_H/i0`)."""
        by_value = [node.name for node in graph.nodes if isinstance(node, Drop) and node.by_value] if self.by_result else []
        results = {name: re.split(r"['/]", name.removeprefix("drop_"))[0] for name in by_value}
        return {name: self.by_result[result] for name, result in results.items() if result in self.by_result}

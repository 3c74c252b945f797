"""The command `fuseflow propagate`, which says which parts of a model its outputs need."""

from __future__ import annotations

import click

from fuseflow.cli.deferred import command
from fuseflow.cli.json_file import json_option
from fuseflow.cli.model_options import model_options
from fuseflow.cli.propagation_options import knowledge_options


@command(
    "Say what of a model its outputs need.",
    model_options,
    knowledge_options,
    click.option(
        "--graph", is_flag=True, help="Analyse the graph of PyTorch operators, also of a model that has an Einsum form."
    ),
    click.option("--all", "all_tensors", is_flag=True, help="Show inputs and results, too, and not only weights and buffers."),
    json_option("the rows"),
)
def propagate() -> None:
    """Say of each tensor of MODEL how many entries are dead, constant and needed, if what is pruned stays pruned.

    A weight that `--sparsify` prunes makes parts of others superfluous, before it and behind it. `--propagate` of other commands leaves
    them out. A model without an Einsum form, as with convolutions of pictures, is analysed as a graph of PyTorch operators.
    """

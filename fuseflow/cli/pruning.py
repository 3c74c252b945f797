"""The commands `fuseflow sparsify` and `fuseflow propagate`, which say what pruning keeps of a model, and what its outputs need of it."""

from __future__ import annotations

from fuseflow.cli.common import FILE, json_option, output_option
from fuseflow.cli.deferred import command
from fuseflow.cli.model_options import model_options, sparsity_option
from fuseflow.cli.program_options import knowledge_options


@command(
    "Prune a PyTorch model and say what is kept of it.",
    model_options,
    output_option(
        "-o", "--output", metavar="DIR", type=FILE, help="Write the weights, masks and spec there, which `--sparsity DIR` reads."
    ),
    json_option("the rows"),
    often="data data-dir option small sparsify sparsity json output",
)
def sparsify() -> None:
    """Make MODEL (.py, module:function) sparse as `--sparsify` and `--sparsity` say, without compiling it.

    Prints a row for each tensor: its shape, rule and layout, the share of its entries and of its magnitudes that is kept, and its bytes
    before and after.
    """


@command(
    "Say what of a model its outputs need.",
    model_options,
    knowledge_options,
    sparsity_option(
        "--graph", is_flag=True, help="Analyse the graph of PyTorch operators, also of a model that has an Einsum form."
    ),
    output_option("--all", "all_tensors", is_flag=True, help="Show inputs and results, too, and not only weights and buffers."),
    json_option("the rows"),
    often="data tensors option small sparsify sparsity fixed constants all json",
)
def propagate() -> None:
    """Say of each tensor of MODEL how many entries are dead, constant and needed, if what is pruned stays pruned.

    A weight that `--sparsify` prunes makes parts of others superfluous, before it and behind it. `--propagate` of other commands leaves
    them out. A model without an Einsum form, as with convolutions of pictures, is analysed as a graph of PyTorch operators.
    """

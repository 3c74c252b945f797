#!/usr/bin/env bash
# A function that assigns to a slice has a gradient, and its functionalized form, which computes the same, has none.
#
# Versions: torch 2.13.0.
# Behaviour: `torch.func.functionalize` replaces `y[:, 0] = x[:, 1]` by operators without writes, one of which is `aten::copy`. That operator
# has no derivative. So the function can be differentiated as it is, and the functionalized function computes the same result, which requires
# a gradient, but `torch.autograd.grad` and `torch.func.grad` of it raise an error.
# Output seen: as it is [[0.0, 2.0], [0.0, 2.0]]; functionalized requires_grad True; twice
# "RuntimeError: derivative for aten::copy is not implemented".
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m pip install --quiet --disable-pip-version-check --target "$folder/packages" torch==2.13.0 numpy==2.4.6
export PYTHONPATH="$folder/packages"
cat > "$folder/assignment.py" <<'PYTHON'
import torch
from torch.func import functionalize, grad


def with_column(x):
    y = x.clone()
    y[:, 0] = x[:, 1]
    return y


x = torch.ones(2, 2, requires_grad=True)
print(f"as it is {torch.autograd.grad(with_column(x).sum(), x)[0].tolist()}")
result = functionalize(with_column)(x)
print(f"functionalized requires_grad {result.requires_grad}")
for differentiate in (
    lambda: torch.autograd.grad(result.sum(), x),
    lambda: grad(lambda t: functionalize(with_column)(t).sum())(x.detach()),
):
    try:
        print(differentiate())
    except RuntimeError as error:
        print(f"RuntimeError: {error}")
PYTHON
seen=$(python3 -W ignore "$folder/assignment.py")
echo "$seen"
[ "$seen" = "as it is [[0.0, 2.0], [0.0, 2.0]]
functionalized requires_grad True
RuntimeError: derivative for aten::copy is not implemented
RuntimeError: derivative for aten::copy is not implemented" ]

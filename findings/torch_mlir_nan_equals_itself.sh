#!/usr/bin/env bash
# torch-mlir compiles `x == x`, the test for numbers that are no NaN, to true.
#
# Versions: torch 2.13.0, torch-mlir 20261001.
# Behaviour: `torch_mlir.fx.export_and_import` of a module that returns `x == x` for a float tensor has `aten.eq.Tensor` of x and x in the torch
# dialect. Lowered to Linalg on tensors it is a constant: true at every place. PyTorch says false where x is NaN, and so do models that
# replace NaN by a number with this test.
# Output seen: PyTorch [True, False]; Linalg: arith.constant dense<true>.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m pip install --quiet --disable-pip-version-check --target "$folder/packages" torch==2.13.0 torch-mlir==20261001 numpy==2.4.6
export PYTHONPATH="$folder/packages"
cat > "$folder/itself.py" <<'PYTHON'
import re

import torch
from torch_mlir.fx import OutputType, export_and_import


class Itself(torch.nn.Module):
    def forward(self, x):
        return x == x


x = torch.tensor([1.0, float("nan")])
module = str(export_and_import(torch.export.export(Itself(), (x,)), output_type=OutputType.LINALG_ON_TENSORS))
constants = re.findall(r"= (arith\.constant dense<\w+>) : tensor<2xi1>\s*return", module)
print(f"PyTorch {Itself()(x).tolist()}; Linalg: {', '.join(constants)}")
PYTHON
seen=$(python3 -W ignore "$folder/itself.py")
echo "$seen"
[ "$seen" = "PyTorch [True, False]; Linalg: arith.constant dense<true>" ]

#!/usr/bin/env bash
# A program that torch.export made of torch.func.grad reads no input, and returns a tensor without numbers.
#
# Versions: torch 2.13.0.
# Behaviour: `torch.export.export` of a module that returns `torch.func.grad(f)(x)` succeeds, strict or not. In the exported graph nothing reads
# the placeholder of x: the operators on x that the transform records start from a constant that was lifted out of the trace. Called with
# numbers, the exported program returns a FakeTensor, which has a shape and no numbers, and raises nothing.
# Output seen: strict False: users of x 0, result FakeTensor; strict True: users of x 0, result FakeTensor.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m pip install --quiet --disable-pip-version-check --target "$folder/packages" torch==2.13.0 numpy==2.4.6
export PYTHONPATH="$folder/packages"
cat > "$folder/gradient.py" <<'PYTHON'
import torch


class Gradient(torch.nn.Module):
    def forward(self, x):
        return torch.func.grad(lambda y: (y**3).sum())(x)


for strict in (False, True):
    exported = torch.export.export(Gradient(), (torch.ones(3),), strict=strict)
    users = next(len(node.users) for node in exported.graph.nodes if node.name == "x")
    result = exported.module()(torch.tensor([1.0, 2.0, 3.0]))
    print(f"strict {strict}: users of x {users}, result {type(result).__name__}")
PYTHON
seen=$(python3 -W ignore "$folder/gradient.py")
echo "$seen"
[ "$seen" = "strict False: users of x 0, result FakeTensor
strict True: users of x 0, result FakeTensor" ]

#!/usr/bin/env bash
# PyTorch exports and runs a model with a CSR input, and cannot save what it exported. With the same matrix in COO it can.
#
# Versions: torch 2.13.0.
# Behaviour: `torch.export.export` takes a sparse compressed tensor (CSR, CSC or BSR) as a sample input, and the exported program
# computes the right product. `torch.export.save` of that program raises an error about strides, which such tensors do not have. The
# program of a COO tensor is saved, and loaded again, it computes the same. So a model that is to be kept in a `.pt2` file takes COO and
# converts it inside.
# Output seen: csr, csc and bsr: exported, not saved (SerializeError); coo: exported, saved, loaded.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m pip install --quiet --disable-pip-version-check --target "$folder/packages" torch==2.13.0 numpy==2.4.6
PYTHONPATH="$folder/packages" python3 -W ignore - <<'PYTHON'
import io
import sys

import torch


class Product(torch.nn.Module):
    def forward(self, a, x):
        return a @ x


dense, x = torch.diag(torch.arange(1.0, 5.0)), torch.ones(4, 2)
layouts = {
    "csr": dense.to_sparse_csr(),
    "csc": dense.to_sparse_csc(),
    "bsr": dense.to_sparse_bsr((2, 2)),
    "coo": dense.to_sparse(),
}
seen = {}
for name, a in layouts.items():
    try:
        program = torch.export.export(Product(), (a, x))
        seen[name] = "exported" if torch.equal(program.module()(a, x), dense @ x) else "exported, differs"
        stream = io.BytesIO()
        torch.export.save(program, stream)
        stream.seek(0)
        again = torch.export.load(stream).module()(a, x)
        seen[name] += ", saved, loaded" if torch.equal(again, dense @ x) else ", saved, differs"
    except Exception as error:
        seen[name] = f"{seen.get(name, 'not exported')}, {type(error).__name__}"
    print(f"{name}: {seen[name]}")
expected = {name: "exported, SerializeError" for name in ("csr", "csc", "bsr")} | {"coo": "exported, saved, loaded"}
sys.exit(seen != expected)
PYTHON

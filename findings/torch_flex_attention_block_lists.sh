#!/usr/bin/env bash
# PyTorch's FlexAttention attends to blocks that its BlockMask does not list, unless it is compiled.
#
# Versions: torch 2.13.0.
# Behaviour: `BlockMask.from_kv_blocks(counts, indices)` without a `mask_mod` lists the blocks of keys of each block of queries. The eager
# `flex_attention` reads the mask_mod of the BlockMask alone, which is true everywhere here, so its result is attention to all keys. The
# compiled function computes the blocks that are listed. The two differ by as much as two attentions do, and neither warns about the lists.
# Output seen: eager, from attention to all keys 0.0, to the listed blocks 0.5; compiled, from attention to all keys 0.5, to the listed blocks 0.0.
# Compiling needs a C++ compiler: without one only the eager half is shown.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m pip install --quiet --disable-pip-version-check --target "$folder/packages" torch==2.13.0 numpy==2.4.6
export PYTHONPATH="$folder/packages" TORCHINDUCTOR_CACHE_DIR="$folder/cache"
cat > "$folder/lists.py" <<'PYTHON'
import sys

import torch
from torch.nn.attention.flex_attention import BlockMask, flex_attention
from torch.nn.functional import scaled_dot_product_attention

torch.manual_seed(0)
q, k, v = (torch.randn(1, 1, 256, 16) for _ in range(3))
counts, indices = torch.ones(1, 1, 2, dtype=torch.int32), torch.tensor([[[[0, 1], [1, 0]]]], dtype=torch.int32)
lists = BlockMask.from_kv_blocks(counts, indices, BLOCK_SIZE=128)
listed = torch.block_diag(torch.ones(128, 128), torch.ones(128, 128)).bool()
attend = torch.compile(flex_attention) if sys.argv[1] == "compiled" else flex_attention
result = attend(q, k, v, block_mask=lists)
for name, mask in (("all keys", None), ("the listed blocks", listed)):
    difference = (result - scaled_dot_product_attention(q, k, v, attn_mask=mask)).abs().max().item()
    print(f"{sys.argv[1]}, from attention to {name} {difference:.1f}")
PYTHON
seen=$(python3 -W ignore "$folder/lists.py" eager)
echo "$seen"
[ "$seen" = "eager, from attention to all keys 0.0
eager, from attention to the listed blocks 0.5" ]
if command -v g++ > /dev/null; then
  seen=$(python3 -W ignore "$folder/lists.py" compiled)
  echo "$seen"
  [ "$seen" = "compiled, from attention to all keys 0.5
compiled, from attention to the listed blocks 0.0" ]
else
  echo 'there is no C++ compiler here: what the compiled function gives is not shown'
fi

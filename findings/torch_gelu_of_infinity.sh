#!/usr/bin/env bash
# PyTorch says that the GELU of infinity is no number where oneDNN computes it with AVX-512, and infinity elsewhere.
#
# Versions: torch 2.13.0.
# Behaviour: on a processor with AVX-512, `torch.nn.functional.gelu` of sixteen infinities in 32-bit floats is NaN. It is infinity, as the limit is, in
# 64-bit floats, with `torch.backends.mkldnn` switched off, and where `ONEDNN_MAX_CPU_ISA` allows oneDNN no more than AVX2. So a test that
# compares with PyTorch passes on one processor and fails on another. Without AVX-512 this script can show the second half alone, and says so.
# Output seen: float32 nan; float64 inf; without oneDNN inf; oneDNN with AVX2 inf.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m pip install --quiet --disable-pip-version-check --target "$folder/packages" torch==2.13.0 numpy==2.4.6
export PYTHONPATH="$folder/packages"
gelu='import torch; print(torch.nn.functional.gelu(torch.full((16,), float("inf")))[0].item())'
wide='import torch; print(torch.nn.functional.gelu(torch.full((16,), float("inf"), dtype=torch.float64))[0].item())'
alone='import torch; torch.backends.mkldnn.set_flags(False); print(torch.nn.functional.gelu(torch.full((16,), float("inf")))[0].item())'
seen="float64 $(python3 -W ignore -c "$wide"); without oneDNN $(python3 -W ignore -c "$alone")"
seen="$seen; oneDNN with AVX2 $(ONEDNN_MAX_CPU_ISA=AVX2 python3 -W ignore -c "$gelu")"
echo "$seen"
[ "$seen" = "float64 inf; without oneDNN inf; oneDNN with AVX2 inf" ]
if grep -q avx512f /proc/cpuinfo; then
  seen=$(python3 -W ignore -c "$gelu")
  echo "float32 $seen"
  [ "$seen" = nan ]
else
  echo 'this processor has no AVX-512: what oneDNN gives there is not shown'
fi

#!/usr/bin/env bash
# SciPy reads numbers of a Matrix Market file that Fortran wrote as others, without a word.
#
# Versions: scipy 1.17.1, numpy 2.4.6.
# Behaviour: Fortran prints a double precision number with the exponent letter D (format descriptor D, and list-directed output of
# some compilers), and collections of matrices have such files. `scipy.io.mmread` stops at the letter, takes what stands before it for
# the number, and skips the rest: 1.5D+02 (150) is read as 1.5. It raises no error and gives no warning.
# Output seen: [150.0, 0.25] in the file is [1.5, 2.5] in memory.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m pip install --quiet --disable-pip-version-check --target "$folder/packages" scipy==1.17.1 numpy==2.4.6
printf '%%%%MatrixMarket matrix coordinate real general\n2 2 2\n1 1 1.5D+02\n2 2 2.5D-01\n' > "$folder/a.mtx"
PYTHONPATH="$folder/packages" python3 -W error - "$folder/a.mtx" <<'PYTHON'
import sys

from scipy.io import mmread

read = mmread(sys.argv[1]).diagonal().tolist()
print(f"the file has [150.0, 0.25], SciPy reads {read}")
sys.exit(read != [1.5, 2.5])
PYTHON

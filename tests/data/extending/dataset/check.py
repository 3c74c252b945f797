"""The data set is found by its name, takes its option, refuses others, and a model runs on it."""

import fuseflow as ff
from fuseflow.errors import DataError
from fuseflow.frontend.data import load_data

data = load_data("ring:nodes=6")
assert (data.nodes, data.edges.nnz, data.classes) == (6, 12, 2)
try:
    load_data("ring:node=6")
except DataError as error:
    assert "nodes" in error.hint
else:
    raise AssertionError("an unknown option is accepted")
result = ff.compile("models/gcn.py", data="ring:nodes=6").run(engine="reference")
assert result.check is not None and result.check.passed

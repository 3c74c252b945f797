"""A spec says the new rule, a model is pruned by it, trains with it and compiles; a tensor that it does not fit is refused."""

import torch

import fuseflow as ff
import fuseflow.sparsity as sp
from fuseflow.errors import SparsityError

spec = sp.parse_sparsify("*.weight=band:1:csr")
assert sp.SparseSpec.from_yaml(spec.to_yaml()) == spec
model = torch.nn.Sequential(torch.nn.Linear(6, 6), torch.nn.ReLU(), torch.nn.Linear(6, 4)).eval()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
handle = sp.attach(model, spec, optimizer)
model(torch.ones(2, 6)).sum().backward()
optimizer.step()
assert [row.kept for row in handle.report()] == [16, 11]
assert torch.equal(model[0].weight != 0, torch.ones(6, 6).triu(-1).tril(1).bool())
result = ff.compile(model, (torch.randn(3, 6),)).run()
assert result.check is not None and result.check.passed
for wrong, word in (("band:-1", "negative"), ("bund:1", "did you mean `band`"), ("band:x", "band")):
    try:
        sp.parse_sparsify(f"w={wrong}")
    except SparsityError as error:
        assert word in str(error), error
    else:
        raise AssertionError(f"{wrong} is accepted")

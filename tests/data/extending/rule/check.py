"""A center whose distances nothing reads is dead; without the rule it is called alive."""

import torch

import fuseflow as ff
from fuseflow.frontend.model_propagation import dependence_rules


class Distances(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.centers, self.out = torch.nn.Parameter(torch.randn(5, 6)), torch.nn.Linear(5, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.out(torch.cdist(x, self.centers))


keep = torch.ones(2, 5, dtype=torch.bool)
keep[:, 1] = False
model, inputs = Distances(), (torch.randn(3, 6),)
dead = {row.name: row.dead for row in ff.attributes.analyse_module(model, inputs, {"out.weight": keep}).rows}
assert (dead["centers"], dead["out.weight"]) == (6, 2), dead
del dependence_rules.RULES["aten._cdist_forward"]
without = {row.name: row.dead for row in ff.attributes.analyse_module(model, inputs, {"out.weight": keep}).rows}
assert without["centers"] == 0, without

"""Two processes train one sparse model: they end alike to the bit, and as one process with the whole batch does."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import torch
from torch import distributed, nn
from torch.nn import functional
from torch.nn.parallel import DistributedDataParallel

import fuseflow.sparsity as sp


def network() -> nn.Sequential:
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 8))


def data() -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    return torch.randn(64, 16, generator=generator), torch.randint(0, 8, (64,), generator=generator)


def fit(model: nn.Module, inner: nn.Module, x: torch.Tensor, y: torch.Tensor) -> dict[str, torch.Tensor]:
    """Train with new masks of the first weight, 2:4 gradients of it, and a fixed mask of the second one."""
    builder = sp.SparsityBuilder()
    builder.set_weight("0.weight", sp.NM(2, 4), inline_sparsifier=sp.NM(2, 4), out_format=sp.NMLayout(2, 4))
    builder.set_weight_grad("0.weight", inline_sparsifier=sp.NM(2, 4))
    builder.set_weight("2.weight", sp.Magnitude(0.75), out_format=sp.CSR)
    optimizer = torch.optim.AdamW(inner.parameters(), lr=0.01)
    handle = sp.attach(inner, builder.spec(), optimizer)
    for _ in range(8):
        optimizer.zero_grad()
        functional.cross_entropy(model(x), y).backward()
        optimizer.step()
    return {**inner.state_dict(), **{f"mask/{name}": mask for name, mask in handle.masks.items()}}


def worker(rank: int, port: int, directory: str) -> None:
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    torch.set_num_threads(1)
    distributed.init_process_group("gloo", rank=rank, world_size=2)
    model, (x, y) = network(), data()
    state = fit(DistributedDataParallel(model), model, x[rank::2], y[rank::2])
    torch.save(state, Path(directory) / f"{rank}.pt")
    distributed.destroy_process_group()


def test_two_processes_end_alike_and_as_one(tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    commands = ([sys.executable, __file__, str(rank), str(port), str(tmp_path)] for rank in (0, 1))
    processes = [subprocess.Popen(command) for command in commands]
    assert [process.wait(timeout=120) for process in processes] == [0, 0]
    first, second = (torch.load(tmp_path / f"{rank}.pt", weights_only=True) for rank in (0, 1))
    model = network()
    one = fit(model, model, *data())
    assert first.keys() == second.keys() == one.keys()
    for name, value in first.items():
        assert torch.equal(value, second[name]), name
        torch.testing.assert_close(value, one[name], atol=1e-5, rtol=0)
    assert torch.equal(first["0.weight"] != 0, first["mask/0.weight"])
    assert int(first["mask/2.weight"].sum()) == 64


if __name__ == "__main__":
    worker(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3])

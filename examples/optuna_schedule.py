"""Optuna searches a schedule of a graph convolutional network on the karate club: what is fused, and how many lanes its loops have.

    pip install optuna
    python examples/optuna_schedule.py          # 60 trials, 20 seconds of one core

Each trial is one simulation. The best schedule is printed as an expression that can be pasted, and checked against PyTorch.
"""

from __future__ import annotations

from pathlib import Path

import click
import optuna

import fuseflow as ff

MODEL = Path(__file__).parents[1] / "models" / "gcn.py"
CUTS = ("none", "layerwise", "full", "best")
LANES = (1, 2, 4, 8)
MOST_LANES = 16
"""The most copies of a loop body: the lanes of all loops around it, multiplied."""


def schedule(trial: optuna.Trial) -> ff.Schedule:
    """Return the schedule that a trial asks for."""
    lanes = {index: trial.suggest_categorical(f"lanes of {index}", LANES) for index in ("i", "j")}
    if lanes["i"] * lanes["j"] > MOST_LANES:
        raise optuna.TrialPruned("too many lanes")
    return ff.Schedule.fuse(trial.suggest_categorical("cut", CUTS)).par(**lanes)


def cycles(trial: optuna.Trial) -> int:
    """Return the cycles of a trial's schedule. One that does not compile or run is pruned."""
    asked = schedule(trial)
    try:
        return ff.compile(MODEL, data="karate", schedule=asked).run(check=False).cycles
    except ff.FuseFlowError as error:
        raise optuna.TrialPruned(str(error)) from error


@click.command()
@click.option("--trials", default=60, show_default=True)
def main(trials: int) -> None:
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=0))
    study.enqueue_trial({"cut": "best", "lanes of i": 1, "lanes of j": 1})  # the schedule that is taken where nothing is said
    study.optimize(cycles, n_trials=trials)
    best = schedule(study.best_trial)
    print(f"without a search: {study.trials[0].value:,.0f} cycles; the best of {trials} trials: {study.best_value:,.0f} cycles")
    print(repr(best))
    result = ff.compile(MODEL, data="karate", schedule=best).run()
    assert result.check is not None and result.check.passed and result.cycles == study.best_value


if __name__ == "__main__":
    main()

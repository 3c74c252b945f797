"""How often the intervals of sampled cycles have the true number: loops with known cycles, 250 seeds each, intervals of
97.5 %.

    PYTHONPATH=tests/support python tools/bench/synthetic_coverage.py

Four laws spread the weights of 20,000 coordinates, and cycles follow from weights in three ways. Nothing is simulated, so that the
intervals are those of the design and the statistics alone.
"""

from __future__ import annotations

import argparse

import numpy as np
from synthetic_loops import measured

COORDINATES, CONSTANT = 20_000, 700
LAWS = ("lognormal", "pareto 1.8", "pareto 1.3", "three kinds")
RELATIONS = ("a step of 14 %", "noise", "one in twenty twice as long")


def weights(law: str, rng: np.random.Generator) -> np.ndarray:
    match law:
        case "lognormal":
            drawn = rng.lognormal(0, 0.5, COORDINATES)
        case "pareto 1.8":
            drawn = np.minimum(rng.pareto(1.8, COORDINATES) + 1, 200)
        case "pareto 1.3":
            drawn = np.minimum(rng.pareto(1.3, COORDINATES) + 1, 2000)
        case _:
            drawn = rng.choice((0.1, 1.0, 6.0), COORDINATES, p=(0.6, 0.3, 0.1))
    return np.asarray(np.ceil(10 * drawn))


def cycles(relation: str, of: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    match relation:
        case "a step of 14 %":
            factor = np.where(of > 3 * of.mean(), 0.92, 1.06)
        case "noise":
            factor = rng.gamma(4, 0.25, COORDINATES)
        case _:
            factor = np.where(rng.random(COORDINATES) < 0.05, 2.0, 1.0)
    return np.asarray(3 * of * factor + 1).astype(int)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=250)
    args = parser.parse_args()
    for law in LAWS:
        for relation in RELATIONS:
            rng = np.random.default_rng(3)
            of = weights(law, rng)
            cost = cycles(relation, of, rng)
            true = CONSTANT + int(cost.sum())
            drawn = [measured(cost, of, seed, CONSTANT, 0.975) for seed in range(args.seeds)]
            covered = sum(c.low <= true <= c.high for c in drawn)
            width = max(c.error for c in drawn)
            print(f"{law:12} {relation:28} {100 * covered / args.seeds:5.1f} % have it, half-widths up to {100 * width:.2f} %")


if __name__ == "__main__":
    main()

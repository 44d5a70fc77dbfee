"""What `jb.tune` costs and how good its choices are.

python benchmarks/tuning.py                all below, about ten minutes on two cores
python benchmarks/tuning.py population     64 settings of EXP3 as one population, beside one sweep a setting
python benchmarks/tuning.py problems       the choice on twelve problems beside the best of a fine grid
python benchmarks/tuning.py quickstart     the best rate for every epsilon of the quickstart, three algorithms
"""

import argparse
import tempfile
import time
from functools import partial

import numpy as np

import jaxbandits as jb
from jaxbandits.statistics import mean_interval

a, e = jb.algorithms, jb.environments
ROUNDS, SETTINGS = 5, 64
SIZES = ((100, 16, False), (1000, 16, False), (1000, 100, False), (1000, 100, True))  # (horizon, seeds, stores)
SEEDS, REPORTED, TRIALS = 3200, 1000, 32  # of the problems
FINE, ALLOWED = 41, 1.10  # values of the fine grid; what the choice may cost over the best of them

MEANS = [0.3, 0.5, 0.5, 0.6]
LOSSES, ARMS = e.bernoulli_losses(means=MEANS), e.bernoulli_arms(means=[0.4, 0.5, 0.5, 0.6])
RNG = np.random.default_rng(0)
ACTIONS = RNG.normal(size=(12, 4))
ACTIONS /= np.linalg.norm(ACTIONS, axis=1, keepdims=True)
# label -> (algorithm, environment, key, range, horizon)
PROBLEMS = {
    "EXP3": (a.exp3, LOSSES, "learning_rate", (1e-3, 1.0), 2000),
    "FTPL": (a.ftpl, LOSSES, "learning_rate", (1e-3, 1.0), 1000),
    "Tsallis-INF": (
        a.tsallis_inf, e.bernoulli_losses(means=[0.4, 0.5, 0.5, 0.5]), "learning_rate", (1e-2, 10.0), 2000,
    ),
    "private batched EXP3": (
        partial(a.private_batched, epsilon=0.2, base=partial(a.exp3, mixing=0.02)), LOSSES, "base.learning_rate",
        (1e-3, 1.0), 2000,
    ),
    "LDP-EXP3": (partial(a.ldp_exp3, epsilon=1.0, mixing=0.02), LOSSES, "learning_rate", (1e-4, 0.1), 2000),
    "policy gradient": (a.gradient_bandit, ARMS, "learning_rate", (1e-2, 10.0), 2000),
    "UCB1": (a.ucb1, ARMS, "bonus_scale", (1e-2, 10.0), 2000),
    "AdaP-UCB": (partial(a.adap_ucb, epsilon=1.0), ARMS, "index_scale", (1e-1, 30.0), 2000),
    "LDP-EXP4": (
        partial(a.local_exp4, epsilon=1.0, mixing=0.02),
        e.rotating_experts(losses=e.fixed_gap_losses(num_arms=4), num_experts=8), "learning_rate", (1e-4, 1.0), 2000,
    ),
    "phased elimination": (
        a.phased_elimination, e.linear_arms(actions=ACTIONS.tolist(), theta=[0.8, 0.4, 0.0, -0.3]), "noise_scale",
        (1e-2, 10.0), 2000,
    ),
    "LinUCB": (a.linucb, e.contextual_linear(num_arms=5, dim=4), "radius_scale", (1e-2, 10.0), 500),
    "Byzantine-UCB": (
        partial(a.byzantine_ucb, corruption_bound=0.2), e.federated_linear(num_agents=5, num_arms=5, dim=3),
        "radius_scale", (1e-3, 3.0), 300,
    ),
}  # fmt: skip


def population() -> None:
    """64 settings of EXP3 in turns: one tuning, and one sweep a setting, in memory and with stores."""
    rates = np.geomspace(1e-3, 1.0, SETTINGS).tolist()
    print(f"{SETTINGS} settings of EXP3, warm, best of {ROUNDS} turns:")
    print("| plays | seeds | stores | jb.tune, its report included | one sweep a setting | ratio |")
    print("|---|---|---|---|---|---|")
    for horizon, seeds, stored in SIZES:
        common = {"horizon": horizon, "seeds": range(1000, 1000 + seeds), "checkpoints": 1, "progress": False}

        def together(place, common=common):
            tuning = jb.tune("exp3", LOSSES, space={"learning_rate": rates}, report_seeds=1, store=place, **common)
            return tuning.trials.regret.values[0]

        def alone(place, common=common):
            stores = [place and f"{place}/{i}" for i in range(SETTINGS)]
            sweeps = [
                jb.sweep(partial(a.exp3, learning_rate=rate), LOSSES, store=store, **common)
                for rate, store in zip(rates, stores, strict=True)
            ]
            return np.stack([ds.regret.values[0, :, -1] for ds in sweeps])

        np.testing.assert_array_equal(together(None), alone(None))  # and everything is compiled
        seconds: dict = {together: [], alone: []}
        for _ in range(ROUNDS):
            for run, taken in seconds.items():
                with tempfile.TemporaryDirectory() as place:
                    began = time.perf_counter()
                    run(place if stored else None)
                    taken.append(time.perf_counter() - began)
        one, each = (min(taken) for taken in seconds.values())
        kept = "yes" if stored else "no"
        print(f"| {horizon} | {seeds} | {kept} | {one:.3f} s | {each:.3f} s | {each / one:.1f} |", flush=True)


def problems(names: list[str]) -> None:
    """The regret of the choice on fresh seeds, over the least of a fine grid on the same seeds."""
    print(f"| problem | key | chosen | best of {FINE} | regret over its best | 95% interval | gain over default |")
    print("|---|---|---|---|---|---|---|")
    ratios = {}
    for name, (algorithm, environment, key, (low, high), horizon) in PROBLEMS.items():
        if names and name not in names:
            continue
        common = {"horizon": horizon, "progress": False, "checkpoints": 1}
        tuning = jb.tune(
            {"it": algorithm}, environment, space={key: (low, high, "log")}, method="halving", trials=TRIALS,
            seeds=range(10_000, 10_000 + SEEDS), report_seeds=REPORTED, **common,
        )  # fmt: skip
        values = np.geomspace(low, high, FINE).tolist()
        fine = jb.sweep({"it": algorithm}, environment, seeds=REPORTED, grid={key: values}, **common)
        fine = fine.regret.values[0, :, :, -1]
        best = int(fine.mean(-1).argmin())
        chosen = tuning.report.regret.sel(algorithm="it").values[:, -1]
        difference = [float(x) / fine[best].mean() for x in mean_interval(chosen - fine[best])]
        row = tuning.best.iloc[0]
        ratios[name] = 1 + difference[0]
        gain = f"{row['gain'] / row['default']:.0%}" if row["default"] else "-"
        print(
            f"| {name} | `{key}` | {row[key]:.3g} | {values[best]:.3g} | {ratios[name]:.3f} | "
            f"[{1 + difference[1]:.3f}, {1 + difference[2]:.3f}] | {gain} |", flush=True,
        )  # fmt: skip
    held = sum(ratio <= ALLOWED for ratio in ratios.values())
    print(f"\nwithin {ALLOWED - 1:.0%} of the best of the fine grid: {held} of {len(ratios)} problems")


def quickstart() -> None:
    """Three algorithms of the quickstart, nine rates at each of six epsilons, reported on 1,000 seeds."""
    rates = [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.4]
    began = time.perf_counter()
    tuning = jb.tune(
        {
            "EXP3": partial(a.private_batched, base=partial(a.exp3, mixing=0.02)),
            "FTPL": partial(a.private_batched, base=a.ftpl),
            "local": partial(a.ldp_exp3, mixing=0.02),
        },
        LOSSES, space={f"{key}learning_rate": rates for key in ("EXP3.base.", "FTPL.base.", "local.")},
        over={"epsilon": [0.02, 0.05, 0.1, 0.2, 0.5, 1.0]}, horizon=20_000, progress=False,
    )  # fmt: skip
    seconds = time.perf_counter() - began
    print(tuning)
    print(f"one call, 100 seeds to choose and 1,000 to report, compilation included: {seconds:.0f} s")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="*", default=["population", "problems", "quickstart"])
    given = parser.parse_args().what
    if "population" in given:
        population()
    if "problems" in given or set(given) & set(PROBLEMS):
        problems([name for name in given if name in PROBLEMS])
    if "quickstart" in given:
        quickstart()


if __name__ == "__main__":
    main()

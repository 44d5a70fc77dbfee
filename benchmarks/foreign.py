"""What it costs to play other people's learners: plays a second of an empty one, and what a second core brings.

    python benchmarks/foreign.py

Seconds of `jb.sweep` on Bernoulli arms, the best of three, starting its processes included. Asked: 10^6 plays a second
and core where `ask` returns a constant and `tell` does nothing; of a learner that takes 20 microseconds a play, two
processes take at most 0.55 of the time of one.
"""

import argparse
import time

import jaxbandits as jb

STEPS = 600  # of a loop that takes about 20 microseconds
ARMS = jb.environments.bernoulli_arms(means=[0.2, 0.8])


class Constant:
    """Does nothing."""

    def __init__(self, num_arms: int) -> None:
        pass

    def ask(self) -> int:
        return 0

    def tell(self, arm: int, reward: float) -> None:
        pass


class Slow(Constant):
    """Takes about 20 microseconds a play."""

    def ask(self) -> int:
        total = 0
        for step in range(STEPS):
            total += step
        return total % 2


def seconds(make: type, horizon: int, seeds: int, cores: int) -> float:
    """The best of three."""
    jb.cores(cores)
    found = []
    for _ in range(3):
        began = time.perf_counter()
        jb.sweep(jb.foreign(make), ARMS, horizon=horizon, seeds=seeds, progress=False)
        found.append(time.perf_counter() - began)
    return min(found)


def main() -> None:
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    print(
        "| learner | plays x runs | one process | two | plays/s of a core | two over one |\n|---|---|---|---|---|---|"
    )
    for make, horizon, seeds in ((Constant, 10**6, 8), (Constant, 10**4, 400), (Slow, 10**4, 100)):
        one, two = (seconds(make, horizon, seeds, cores) for cores in (1, 2))
        rate = f"{horizon * seeds / one:.2g}"
        print(f"| {make.__name__} | {horizon:,} x {seeds} | {one:.2f} s | {two:.2f} s | {rate} | {two / one:.2f} |")


if __name__ == "__main__":
    main()

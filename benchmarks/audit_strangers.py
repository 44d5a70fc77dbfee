"""What an audit finds of other people's learners: ten planted faults, and three honest learners.

    python benchmarks/audit_strangers.py [faults | honest] [--runs N] [--audits N]

`faults`: each planted fault of `tests/private_strangers.py`, audited with 60,000 runs at confidence 99.9%: what is
proven of a claimed epsilon of 1, by which event, and CPU seconds of all processes.

`honest`: small audits of 2,000 runs of each honest learner, with seeds of their own: how many refute the claim.
"""

import argparse
import resource
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from private_strangers import FAULTS, HONEST, audit

from jaxbandits.auditing import epsilon_lower

CONFIDENCE = 0.999


def cpu_seconds() -> float:
    """Of this process and of those that have ended."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def find_faults(runs: int) -> None:
    """A row for each fault."""
    print(
        f"| fault ({runs:,} runs, confidence {CONFIDENCE}) | seen | ε at least | event | CPU s |\n|---|---|---|---|---|"
    )
    for name, row in FAULTS.items():
        began = cpu_seconds()
        found = audit(row, runs, confidence=CONFIDENCE)
        seen = "arms and view" if "view" in row.about else "arms"
        proven = f"{found.epsilon_lower:.2f}{'' if found.refuted else ', not refuted'}"
        print(f"| {name} | {seen} | {proven} | {found.event.score} | {cpu_seconds() - began:.0f} |", flush=True)


def accuse_honest(runs: int, audits: int) -> None:
    """A row for each honest learner."""
    head = f"| honest learner ({audits} audits of {runs:,} runs) | refuted at {CONFIDENCE}"
    print(f"{head} | refuted at 0.95 | mean ε proven at 0.95 |")
    print("|---|---|---|---|")
    for name, row in HONEST.items():
        proven = []
        for seed in range(audits):
            found = audit(row, runs, seed=seed, confidence=CONFIDENCE)
            event = found.event.true_positives, found.event.false_positives, found.event.trials
            # the event that is chosen does not depend on the confidence
            proven.append([epsilon_lower(*event, 0.0, confidence) for confidence in (CONFIDENCE, 0.95)])
        (strict, usual), mean = np.sum(np.array(proven) > 1, axis=0), np.mean(proven, axis=0)[1]
        print(f"| {name} | {strict} | {usual} | {mean:.2f} |", flush=True)


def main() -> None:
    """Measure and print."""
    reading = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    reading.add_argument("sections", nargs="*", choices=[[], "faults", "honest"], metavar="SECTION")
    reading.add_argument("--runs", type=int, help="of an audit (default: 60000 of faults, 2000 of honest learners)")
    reading.add_argument("--audits", type=int, default=200, help="of each honest learner (default: 200)")
    given = reading.parse_args()
    if not given.sections or "faults" in given.sections:
        find_faults(given.runs or 60_000)
    if not given.sections or "honest" in given.sections:
        accuse_honest(given.runs or 2000, given.audits)


if __name__ == "__main__":
    main()

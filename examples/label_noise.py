"""Own data with wrong labels: what mistaken and mistyped labels do to a plain and to a robust learner.

    pip install scikit-learn
    python examples/label_noise.py [DIRECTORY]       under a minute; writes label_noise_*.png there (default: here)

The data are the 569 biopsies of scikit-learn's breast cancer set: a pandas DataFrame of 30 measurements and labels in
words. Every play shows a biopsy, and the learner says which of the two it is. A share of the labels is wrong, which is
contamination of the rewards: `huber` as reward adversary. With two classes kind="swapped" is a label mistaken for the
other; kind="fixed" is a reward typed wrong, 10 in the place of 0 or 1. Regret counts the true labels throughout.

UCB1 averages rewards. Huber-UCB, told that up to a fifth of them may be wrong, limits what one reward can do. LinUCB
sees the biopsy, so its regret is negative, and has no defence.
"""

import sys
from functools import partial
from pathlib import Path

from sklearn.datasets import load_breast_cancer

import jaxbandits as jb

ALGORITHMS = {
    "UCB1": jb.algorithms.ucb1,
    "Huber-UCB, robust": partial(jb.algorithms.huber_ucb, noise_scale=0.5, corruption_bound=0.2),
    "LinUCB, sees the biopsy": jb.algorithms.linucb,
}


def biopsies():
    """The measurements and the labels."""
    data = load_breast_cancer(as_frame=True)
    return data.data, data.target.map(dict(enumerate(data.target_names)))  # "benign" or "malignant"


def study(horizon: int = 1138, seeds: int = 32, algorithms=None):
    """The sweep: two kinds of wrong labels, and shares of them up to a fifth."""
    features, labels = biopsies()
    return jb.sweep(
        algorithms or ALGORITHMS,
        jb.environments.classification(features=features, labels=labels),
        horizon=horizon,
        seeds=seeds,
        checkpoints=40,
        reward_adversary=jb.adversaries.huber,
        grid={"reward_adversary.kind": ["swapped", "fixed"], "reward_adversary.corruption": [0, 0.05, 0.1, 0.2]},
    )


def draw(ds, directory: Path) -> None:
    """A picture for each kind of wrong label, and the table."""
    names = {"reward_adversary.corruption": "share of wrong labels"}
    words = {"swapped": "Labels mistaken for the other class.", "fixed": "Rewards typed wrong: 10 for 0 or 1."}
    for kind, caption in words.items():
        select = {"reward_adversary.kind": kind}
        path = directory / f"label_noise_{kind}.png"
        jb.plot.against(ds, "reward_adversary.corruption", select=select, names=names, caption=caption, path=path)
    print(jb.table(ds.isel({"reward_adversary.corruption": [0, -1]})))


if __name__ == "__main__":
    draw(study(), Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent)

"""Own data and privacy: what a learner that sees the row loses when it may not remember anyone's answer.

    pip install scikit-learn
    python examples/private_labels.py [DIRECTORY]    about a minute; writes private_labels_*.png there (default: here)

The data are those of label_noise.py. Every play is a patient: the learner sees the measurements, names one of the two
classes and learns whether it was right. LinUCB remembers everything. The private two keep (epsilon, delta), with
delta = 1 / plays by default: joint differential privacy (whoever sees the answers given to all others learns little
about one patient; the server is trusted) and local differential privacy (nobody is trusted, noise is added at the
patient).

A promise is about one play. Here the 569 biopsies are shown ten times over, as if ten times as many patients came:
a person who is shown ten times spends up to ten times epsilon.
"""

import sys
from functools import partial
from pathlib import Path

from sklearn.datasets import load_breast_cancer

import jaxbandits as jb

ALGORITHMS = {
    "no privacy": partial(jb.algorithms.linucb, preset="theory", radius_scale=0.1),
    "joint privacy": jb.algorithms.jdp_linucb,
    "local privacy": jb.algorithms.ldp_linucb,
}


def biopsies():
    """The measurements, each in units of its standard deviation (contexts are principal components), and the labels."""
    data = load_breast_cancer(as_frame=True)
    labels = data.target.map(dict(enumerate(data.target_names)))  # "benign" or "malignant"
    return (data.data - data.data.mean()) / data.data.std(), labels


def study(horizon: int = 5690, seeds: int = 20):
    """The sweep over epsilon."""
    features, labels = biopsies()
    return jb.sweep(
        ALGORITHMS,
        jb.environments.classification(features=features, labels=labels),
        horizon=horizon,
        seeds=range(1000, 1000 + seeds),
        checkpoints=40,
        grid={"epsilon": [1, 3, 10, 30, 100]},
    )


def draw(ds, directory: Path) -> None:
    """Regret against epsilon, the share of right answers over time at epsilon = 10, and the table."""
    caption = "569 biopsies, ten passes. Below 0: better than the same answer for everyone."
    jb.plot.against(ds, "epsilon", caption=caption, path=directory / "private_labels_regret.png")
    caption = "Share of right answers at epsilon = 10."
    jb.plot.reward(ds, select={"epsilon": 10}, caption=caption, path=directory / "private_labels_reward.png")
    print(jb.table(ds.sel(epsilon=[1, 10, 100])))


if __name__ == "__main__":
    draw(study(), Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent)

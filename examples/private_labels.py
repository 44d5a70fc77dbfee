"""Own data and privacy: what a learner that sees the row loses when it may not remember anyone's answer.

    pip install scikit-learn
    python examples/private_labels.py [DIRECTORY]    about a minute; writes private_labels.png there (default: here)

The data are those of label_noise.py. Every play is a patient: the learner sees the measurements, names one of the two
classes and learns whether it was right. LinUCB remembers everything. The private two keep (epsilon, delta), with
delta = 1 / plays by default: joint differential privacy (whoever sees the answers given to all others learns little
about one patient; the server is trusted) and local differential privacy (nobody is trusted, noise is added at the
patient). Private learners see five principal components and a bias: fewer features mean less noise.

A promise is about one play. Here the 569 biopsies are shown ten times over, as if ten times as many patients came:
a person who is shown ten times spends more, and the run says how much.
"""

import sys
from functools import partial
from pathlib import Path

from sklearn.datasets import load_breast_cancer

import jaxbandits as jb

ALGORITHMS = {
    "no privacy": jb.algorithms.linucb,
    "trusted server": jb.algorithms.jdp_linucb,
    "nobody trusted": jb.algorithms.ldp_linucb,
}


def study(horizon: int = 5690, seeds: int = 40):
    """The sweep over epsilon."""
    data = load_breast_cancer(as_frame=True)
    labels = data.target.map(dict(enumerate(data.target_names)))  # "benign" or "malignant"
    return jb.sweep(
        ALGORITHMS,
        partial(jb.environments.classification, features=data.data, labels=labels, dim=6),
        horizon=horizon,
        seeds=seeds,
        checkpoints=40,
        grid={"epsilon": [1, 3, 10]},
    )


def right(ds):
    """The share of right answers over all plays: the mean over seeds, and half of its 95% interval."""
    share = ((ds.best_reward - ds.regret) / ds.t).isel(t=-1)
    return share.mean("seed"), 1.96 * share.std("seed", ddof=1) / len(ds.seed) ** 0.5


def draw(ds, directory: Path) -> None:
    """The share of right answers over time at epsilon = 1, and after all plays in numbers."""
    caption = "569 biopsies, ten passes. Share of right answers over plays 1 to t, epsilon = 1."
    jb.plot.reward(ds, select={"epsilon": 1}, caption=caption, path=directory / "private_labels.png")
    mean, half = (x.to_pandas().T.map("{:.3f}".format) for x in right(ds))
    print((mean + " +- " + half).to_string())


if __name__ == "__main__":
    draw(study(), Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent)

"""
Your own data
=============

A DataFrame and its labels are a bandit: a play shows a row, and the arm that is its label pays 1. Here: 569 biopsies of
scikit-learn. The share of right answers, for a learner that sees the measurements and two that do not.
"""

from sklearn.datasets import load_breast_cancer

import jaxbandits as jb

data = load_breast_cancer(as_frame=True)
labels = data.target.map(dict(enumerate(data.target_names)))  # "benign" or "malignant"

ds = jb.sweep(
    {
        "LinUCB, sees the biopsy": jb.algorithms.linucb,
        "Thompson sampling": jb.algorithms.thompson,
        "uniform play": jb.algorithms.uniform,
    },
    jb.environments.classification(features=data.data, labels=labels),
    horizon=1138,
    seeds=50,
    progress=False,
)
figure, data = jb.plot.reward(ds, log="none")

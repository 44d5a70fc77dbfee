"""Real data for digits.toml and digits_models.toml: the 1,797 handwritten digits that scikit-learn brings along.

    pip install scikit-learn
    python examples/digits.py                        a few seconds; writes the two CSV files beside this script
    jaxbandits run examples/digits.toml              which digit is it? Three learners see the pixels, one does not
    jaxbandits run examples/digits_models.toml       which of five classifiers should be trusted?

digits.csv: one row an image, 64 pixels from 0 to 16 and its label. digits_losses.csv: one row a play, one column a
classifier, 1 where it is wrong. A prediction comes from the fold of a five-fold cross-validation that did not see the
image; the plays show every image TURNS times, in a new random order each time.
"""

import sys
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import RidgeClassifier
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.tree import DecisionTreeClassifier

TURNS = 10
MODELS = {
    "constant": DummyClassifier(),
    "small_tree": DecisionTreeClassifier(max_depth=4, random_state=0),
    "naive_bayes": GaussianNB(),
    "linear": RidgeClassifier(),
    "nearest": KNeighborsClassifier(n_neighbors=1),
}


def write(directory: Path) -> None:
    """Write digits.csv and digits_losses.csv into a directory."""
    pixels, labels = load_digits(return_X_y=True)
    header = ",".join([f"pixel_{i}" for i in range(pixels.shape[1])] + ["label"])
    rows = np.column_stack([pixels, labels]).astype(int)
    np.savetxt(directory / "digits.csv", rows, fmt="%d", delimiter=",", header=header, comments="")

    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    wrong = [cross_val_predict(model, pixels, labels, cv=folds) != labels for model in MODELS.values()]
    losses = np.column_stack(wrong).astype(int)
    rng = np.random.default_rng(0)
    plays = np.concatenate([losses[rng.permutation(len(losses))] for _ in range(TURNS)])
    np.savetxt(directory / "digits_losses.csv", plays, fmt="%d", delimiter=",", header=",".join(MODELS), comments="")
    for name, share in zip(MODELS, losses.mean(axis=0), strict=True):
        print(f"{name:12s} wrong on {share:.1%} of the images")


if __name__ == "__main__":
    write(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent)

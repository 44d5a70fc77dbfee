"""`jb.until`: seeds are added until comparisons of algorithms are decided."""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from jaxbandits.formatting import nearest, show
from jaxbandits.validation import declare, integer, number

MAX_SEEDS = 2**31


class Until(NamedTuple):
    """Which comparisons decide how many seeds run. `jb.until` checks and makes it."""

    comparisons: tuple[tuple[str, str], ...]  # labels
    error: float
    most: int
    block: int

    def looks(self) -> Iterator[range]:
        """The blocks of seeds, one after another: comparisons are looked at after each of them.

        A block has between an eighth and a quarter of the seeds before it, a power of two times the first.

        >>> [len(seeds) for seeds in Until((("a", "b"),), 0.05, 1000, 64).looks()]
        [64, 64, 64, 64, 64, 64, 64, 64, 128, 128, 128, 104]
        """
        start, size = 0, self.block
        while start < self.most:
            while 8 * size <= start:
                size *= 2
            stop = min(start + size, self.most)
            yield range(start, stop)
            start = stop

    def check_labels(self, labels: Iterable[str]) -> None:
        """ValueError where a comparison names an algorithm that the sweep does not have."""
        labels = list(labels)
        for label in (label for pair in self.comparisons for label in pair):
            if label not in labels:
                known = ", ".join(labels)
                raise ValueError(f"until names {label!r}{nearest(label, labels)}: the algorithms are {known}")


@declare(check=False)
def until(comparisons: Sequence[Sequence[str]], error: float = 0.05, most: int = 10_000, *, block: int = 64) -> Until:
    """Seeds for `sweep`: add blocks of them until comparisons of algorithms are decided, or a budget ends.

    Args:
        comparisons (list of (str, str)): Pairs of labels of algorithms. Each is compared at every point of the grid, by
            the regret at the horizon.
        error (float): In (0, 1): the probability that any comparison is decided at any time although there is no
            difference, all comparisons and points together. The default: 0.05.
        most (int): The largest number of seeds, at least `block`. A comparison that is open then is undecided. The
            default: 10,000.
        block (int): Seeds before the first look, at least 8. No comparison is decided on fewer seeds in which its two
            regrets differ. More of them make a decision safer where differences are skewed, such as those of an
            algorithm that rarely fails, and keep an accelerator busy. The default: 64.

    Returns:
        Until: To be given as `seeds=` of `sweep`, which runs seeds 0, 1, 2, ... of every algorithm and point until the
            last comparison is decided. `jb.decisions` reads the outcome.

    Raises:
        ValueError: An argument is out of range, or a pair is not two different labels, or comes twice.

    Note:
        A pair's difference is the regret of the first minus that of the second on the same seed; seeds are independent.
        The null hypothesis is that it is symmetric: on every seed as likely to be d as -d, for every d. With S the sum
        of the differences so far, V the sum of their squares, and rho what V was when `block` of them were not zero, ::

            e = sqrt(rho / (V + rho)) exp(S^2 / (2 (V + rho)))

        exceeds 1/p at some time with a probability of at most p under it, for any law of the differences, at any number
        of seeds, however often one looks: given their sizes, signs are fair coins, exp(lambda S - lambda^2 V / 2) is a
        supermartingale for them, and e is its mean over normal lambda of variance 1/rho. The smallest 1/e so far is
        thus a p-value at any time, and Holm's correction of these over all pairs and points is one of the family. Its
        level is used up by no look, so that a run may be stopped, killed and gone on with, and `most` be raised after
        the result is known. Blocks after the first eight grow with the number of seeds, by an eighth to a quarter of
        it.

        The direction is the sign of S. Holm's guarantee is about decisions where there is no difference, and not about
        directions where there is one; a wrong one is rarer still.

        Where differences are skewed and only their mean is zero, the error is that level in the limit of many seeds
        alone, as that of a t test. `docs/concepts.md#as-many-seeds-as-a-comparison-needs` says by how much it may be
        exceeded.

    References:
        Robbins 1970, "Statistical methods related to the law of the iterated logarithm" (mixtures, recalled);
        de la Pena, Klass and Lai 2007, "Pseudo-maximization and self-normalized processes" (symmetric variables);
        Holm 1979, "A simple sequentially rejective multiple test procedure"; Mathieu et al. 2023, "AdaStop" (the same
        question with permutation tests and a number of looks that is fixed before).

    >>> import jaxbandits as jb
    >>> ds = jb.sweep(["ucb1", "uniform"], jb.environments.bernoulli_arms(means=[0.2, 0.8]), horizon=100,
    ...               seeds=jb.until([("ucb1", "uniform")]), checkpoints=1, progress=False)
    >>> ds.sizes["seed"], jb.decisions(ds)[["a", "b", "lower", "seeds"]].values.tolist()
    (64, [['ucb1', 'uniform', 'ucb1', 64]])
    """
    example = "such as [('ucb1', 'moss')]"
    if isinstance(comparisons, str) or not isinstance(comparisons, Sequence) or not len(comparisons):
        raise ValueError(f"comparisons = {show(comparisons)} must be a list of pairs of labels, {example}")
    pairs: list[tuple[str, str]] = []
    for pair in comparisons:
        if isinstance(pair, str) or not isinstance(pair, Sequence) or len(pair) != 2:
            raise ValueError(f"comparisons holds {show(pair)}: give pairs of labels, {example}")
        if not all(isinstance(label, str) for label in pair):
            raise ValueError(f"comparisons holds {show(pair)}: labels are text, {example}")
        if pair[0] == pair[1]:
            raise ValueError(f"comparisons holds {show(pair)}, the same label twice: give two different ones")
        if {*pair} in [{*other} for other in pairs]:
            raise ValueError(f"comparisons holds the pair {pair[0]!r}, {pair[1]!r} twice: leave one out")
        pairs.append((pair[0], pair[1]))
    block = integer("block", block, 8, MAX_SEEDS)
    error = number("error", error, 0.0, 1.0, open_low=True, open_high=True)
    most = integer("most", most, block, MAX_SEEDS, remedy="it is at least one block of seeds")
    return Until(tuple(pairs), error, most, block)


def refuse_until(seeds: object, where: str, remedy: str) -> None:
    """ValueError where seeds come from `until` and cannot."""
    if isinstance(seeds, Until):
        raise ValueError(f"{where} = until(...) adds seeds until a sweep has decided: {remedy}")

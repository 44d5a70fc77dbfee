"""Noise on the sums that agents send: of which scale it is, how it is drawn and what it guarantees.

`docs/formulas/byzantine.md#privacy-noise`; of counters: `docs/formulas/counting.md`.
Axes: [N] agents, [p] = d (d + 1) / 2 packed entries of a symmetric matrix, [d] features.
"""

import math
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from jaxbandits.mechanisms.composition import delta_of_params, gaussian_event, guarantee, view_released
from jaxbandits.mechanisms.counters.counter import form_of
from jaxbandits.mechanisms.counters.form import GivenDraw
from jaxbandits.mechanisms.counters.toeplitz import MOST_RELEASES
from jaxbandits.mechanisms.tree import node_scale, tree, tree_event, tree_levels, tree_scale
from jaxbandits.protocol import Algorithm, Guarantee
from jaxbandits.typing import Scalar

SUMS_IN_WORDS = {
    "blt": "running sums by a buffered Toeplitz counter",
    "tree": "running sums by a binary tree",
    "honaker": "running sums by a tree with Honaker's estimates",
    "square_root": "running sums by the square-root Toeplitz form",
    "banded": "running sums by a banded Toeplitz form",
}


class Drawing(NamedTuple):
    """How noise is drawn, in a program. The functions of a counter are the same objects for equal arguments."""

    kind: Any
    levels: int = 0  # nodes of a tree that a message can lie in; 0 without a tree
    counter: tuple[Callable[..., Any], ...] = ()  # of a counter: begin, move and noise

    def noise_functions(self, shape: tuple[int, ...]) -> tuple[Callable[..., Any], Callable[..., Any]]:
        """dtype -> state; params, state, n, fresh normals -> state, the noise of the sum of n messages."""
        if not self.counter:
            mechanism = tree(2**self.levels - 1, shape, self.kind)
            return mechanism.init, lambda params, state, n, fresh: mechanism.release(state, n, fresh)
        begin, move, noise = self.counter

        def add(params, state, n, fresh):
            state = move(params.sums, state, GivenDraw(fresh), n, shape)
            return state, noise(params.sums, state, n)

        return lambda dtype: begin(shape, dtype), add


class SentNoise(NamedTuple):
    """Noise on every agent's sums, of which the server uses the first `releases`."""

    kind: Any  # "tree": by a binary tree; "increment": on each message; "counter": by a form of `mechanisms.counter`
    releases: int
    counter: str  # the name of the form, and the form; None of other kinds
    form: Any

    def scale(self, window: int, epsilon: Scalar, delta: Scalar, calibration: Any, given: Scalar | None) -> Scalar:
        """s as it is given, or from what may be spent."""
        if given is not None:
            return given
        if self.form is None:
            return tree_scale(window, self.releases, epsilon, delta, calibration=calibration, form=self.kind)
        return self.form.column_norm * node_scale(window, epsilon, delta, calibration) if self.releases else 0.0

    def draws(self) -> tuple[float, float]:
        """Draws in one agent's noise: their mean over the releases, and the most."""
        if self.form is not None:
            each = self.form.deviation(np.arange(1, self.releases + 1)) ** 2 if self.releases else np.zeros(1)
            return float(np.mean(each)), float(np.max(each))
        most = tree_levels(self.releases) if self.kind == "tree" else self.releases
        return most / 2 if self.kind == "tree" else most, most

    def drawing(self) -> Drawing:
        """What a program needs to know."""
        if self.form is not None:
            return Drawing(self.kind, counter=(self.form.begin, self.form.move, self.form.noise))
        return Drawing(self.kind, tree_levels(self.releases) if self.kind == "tree" else 0)

    def claim(self) -> Guarantee:
        """Private is what the server aggregates, for neighbours that differ in one message of one agent."""
        events: Any = partial(_events, self.kind)
        if self.form is not None:
            column_norm = self.form.column_norm if self.releases else 0.0
            events = partial(_counter_events, SUMS_IN_WORDS[self.counter], column_norm)
        claim = guarantee("federated", "message", events, view_released, delta=delta_of_params)
        return claim._replace(noise_share=partial(noise_share, self.draws()[0]))


def make_sent_noise(kind: str, releases: int, counter: str, counter_error: str, buffers: int) -> SentNoise:
    """The noise of `byzantine_ucb`, or a ValueError."""
    if kind != "counter":
        return SentNoise(kind, releases, counter, None)
    if counter == "square_root" and releases > MOST_RELEASES:
        raise ValueError(
            f"counter = 'square_root' keeps every draw, of at most {MOST_RELEASES} episodes; here are {releases}: "
            "give counter='blt', whose noise is the same to 0.2%"
        )
    form = form_of(counter, max(releases, 1), counter_error, buffers)
    return SentNoise(kind, releases, counter, form)


def _events(kind: Any, params: Any) -> tuple[Any, ...]:
    """The server refuses what exceeds the window in norm, so that bounds a message; the last episode's is not used."""
    scale, window = float(params.node_scale * params.mechanism_scale), float(params.constants.window)
    return (tree_event(window, int(params.episodes) - 1, scale, form=kind),)


def _counter_events(what: str, column_norm: float, params: Any) -> tuple[Any, ...]:
    """All noisy sums as one release: a message moves them by the column norm times what it moves one."""
    scale, window = float(params.node_scale * params.mechanism_scale), float(params.constants.window)
    return (gaussian_event(what, math.sqrt(6) * window * column_norm, scale, running=True),)


def noise_share(draws: float, algorithm: Algorithm) -> float:
    """Privacy noise against data at the end of a run.

    The noise: an eigenvalue 2 s sqrt(d m / N) of the mean agent's noise, of m = `draws`. The data: T / d, an
    eigenvalue of the mean agent's information.
    """
    p, config = algorithm.params, algorithm.config
    dim = config["dim"]
    noise = 2 * p.node_scale * p.mechanism_scale * math.sqrt(dim * draws / config["num_agents"])
    return float(noise * dim / config["horizon"])

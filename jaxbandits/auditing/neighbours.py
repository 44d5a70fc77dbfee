"""Neighbouring inputs: two runs that differ in one play's loss vector or reward, in one user, or in one agent's
message.

A run's input is public except for one `Edit`: contexts are those of an environment under a fixed seed, all other
rewards are 0. Two edits of the same play are a pair of neighbours. `edits` lists the candidates of a unit; a user's
own pairs are pairs of `Edit`.

Where inputs react, an edit is a rule instead: what a play pays follows from the arms that were played before it. Two
such edits are neighbours where the rules of all other plays are the same.

Axes: [P] plays of a window, [A] arms, [N] agents, [d] features, [E] edits.
"""

from collections.abc import Iterable
from functools import cache
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from jaxbandits.protocol import Attack, Hints, Program, Score, Truth, World
from jaxbandits.random import Draws
from jaxbandits.validation import integer

UNITS = ("loss_vector", "reward", "user", "message")
# Sizes of rewards that are tried where a claim holds for rewards of any size: somewhere among them the algorithm clips.
REWARD_SIZES = 2.0 ** np.arange(-2, 12.25, 0.25)
# Users' features are tried at so many angles of a plane: among them are 60, 90, 120 and 180 degrees apart.
NUM_ANGLES = 12
# Lengths of these features where a claim holds for any length: somewhere between them the client cuts.
FEATURE_LENGTHS = (1.0, 8.0)
REFUSED_MESSAGES = ((8.0, 0.0), (0.0, 8.0))  # messages that a server has to refuse
# What the plays that are not private pay, where inputs react. "zero": nothing. "echo": 1 where the arm before was not
# arm 0. "chase": 1 for every arm but the one that was played before.
REACTION_RULES = ("zero", "echo", "chase")
# Units whose inputs may react. A user's action may depend on what is private, and agents play several arms at once.
REACTING_UNITS = ("loss_vector", "reward")


# docs/decisions.md#one-edit
class Edit(NamedTuple):
    """What the private part of the input is.

    >>> Edit(play=3, reward=1.0)
    Edit(play=3, reward=1.0, feature=(), message=(), otherwise=(), rule=(), apart=(), arm=())
    """

    play: Any  # int, from 1: the play, or a play of the window, that is private
    reward: Any = 0.0  # of every arm at that play: one loss vector, one reward, one user's answer
    feature: Any = ()  # [d] of every arm at that play (unit "user"), else ()
    # [2] agent 0's window in units of its plays: <e1, gram e1> and <e1, vector> (unit "message"), else ()
    message: Any = ()
    # where inputs react: of every arm at that play, where the arm before was not arm 0 (`reward` is for where it was)
    otherwise: Any = ()
    # where inputs react: what all other plays pay, one of `REACTION_RULES`
    rule: Any = ()
    # unit "user": whether the arms of other users have features of their own, those of the environment, so that what
    # is played may depend on the private one
    apart: Any = ()
    # unit "user": the arm that the private play plays, whatever `act` says; (): what that says
    arm: Any = ()


class Input(NamedTuple):
    """An audited environment's parameters."""

    environment: Any  # the public environment's own parameters
    edit: Any  # the edit of one run


def _public(draws: Draws) -> Draws:
    """The same public input in every run: what the guarantee is not about must not tell runs apart."""
    return Draws(jnp.uint32(0), draws.path, draws.dtype)


@cache
# docs/decisions.md#one-feature
def world_of(world: World, user: bool) -> World:
    """A world whose only private part is the edit.

    user: whether users are private; then all arms of a play have one feature vector, the edit's or e_d, unless the
    edit sets other users' arms apart.
    """

    def init(params, draws):
        return world.init(params.environment, _public(draws))

    def observe(params, state, draws, t):
        context, state = world.observe(params.environment, state, _public(draws), t)
        if user:  # what is played then does not depend on the noise: sums of other users do not blur the private one
            rest = jnp.zeros(context.shape[-1], context.dtype).at[-1].set(1)
            x = jnp.where((t == params.edit.play)[:, None], params.edit.feature, rest)
            one = jnp.broadcast_to(x.reshape(len(t), *(1,) * (context.ndim - 2), -1), context.shape)
            others = (t != params.edit.play).reshape(len(t), *(1,) * (context.ndim - 1))
            apart = params.edit.apart
            context = one if isinstance(apart, tuple) else jnp.where(apart & others, context, one)
        return context, state

    def reward(params, state, draws, t, context, action):
        paid = jnp.where(t == params.edit.play, params.edit.reward, 0).astype(draws.dtype)
        return paid if action.ndim == 1 else jnp.broadcast_to(paid[:, None], (len(t), action.shape[1]))

    def score(params, state, t, context, action):
        return Score(regret=jnp.zeros(t.shape))

    def truth(params, state, t, context):
        return Truth()

    return World(init, observe, reward, score, truth)


def _corrupt(edit, state, draws, t, payload, seen):
    """Agent 0's `Moments` of the window with the edited play."""
    here, plays = jnp.any(seen.play & (t == edit.play)), t.shape[0]
    gram = jnp.zeros_like(payload.gram[0]).at[0, 0].set(plays * edit.message[0])
    vector = jnp.zeros_like(payload.vector[0]).at[0].set(plays * edit.message[1])
    gram = payload.gram.at[0].set(jnp.where(here, gram, payload.gram[0]))
    vector = payload.vector.at[0].set(jnp.where(here, vector, payload.vector[0]))
    return payload._replace(gram=gram, vector=vector), False, state


MESSAGE = Attack(lambda params, draws: (), _corrupt)


@cache
def reacting(size: float) -> Attack:
    """The adversary whose rewards follow from the arms that were played before, as the edit says.

    size: what the rules pay for 1.
    """

    def init(edit, draws):
        return jnp.int32(0)  # the arm before the first play

    def corrupt(edit, state, draws, t, payload, view):
        action = view.action
        before = jnp.concatenate([state[None], action[:-1]])
        rules = jnp.stack([jnp.zeros(t.shape, bool), before != 0, action != before])
        private = jnp.where(before == 0, edit.reward, edit.otherwise)
        paid = jnp.where(t == edit.play, private, jnp.where(rules[edit.rule], size, 0.0))
        used = jnp.sum(view.play, dtype=jnp.int32)
        last = jnp.where(used > 0, action[jnp.maximum(used - 1, 0)], state)
        return paid.astype(payload.dtype), False, last

    return Attack(init, corrupt)


class ShownArm(NamedTuple):
    """Parameters of `with_arm`."""

    params: Any  # the program's own parameters
    play: Any  # the private play
    arm: Any  # what it plays; negative: what the program says


@cache
def with_arm(program: Program) -> Program:
    """The program, whose private play plays the arm of the edit: a user's arm is hers, and says something about her."""

    def own(function):
        return lambda shown, *args: function(shown.params, *args)

    def act(shown, state, draws, t, context):
        action, used, note = program.act(shown.params, state, draws, t, context)
        return jnp.where((t == shown.play) & (shown.arm >= 0), shown.arm, action), used, note

    init, encode, update, relay, close = map(
        own, (program.init, program.encode, program.update, program.relay, program.close)
    )
    return Program(init, act, encode, update, relay, close, hints=Hints(one_arm=program.hints.one_arm))


def edits(
    unit: str, plays: list[int], *, bound: float = np.inf, dim: int = 0, adaptive: bool = False, arms: int = 0
) -> list[Edit]:
    """The candidates of a unit at each of some plays, from 1; two of one play are neighbours.

    "loss_vector" and "reward": rewards of plus and minus the bound (`Guarantee.bound`), and where the claim holds for
    any, rewards of all sizes, infinite and missing ones too. "user": features of a plane, of length 1 (and where the
    claim holds for any, far longer and infinite ones), and rewards. "message": sums of a window of features +-e_1 and
    rewards +-1 that fill the norm a server accepts, and larger ones.

    dim: d of features, for users. arms: K, where a user is shown one of them: some edits say that it is the first or
    the last, whatever the algorithm plays. adaptive: whether inputs react: every rule of the other plays, and at the
    private one the same reward whatever was played before, or the opposite one after arm 0; rewards of any size are
    tried in steps of 2.

    >>> [edit.reward for edit in edits("reward", [4], bound=1.0)]
    [0.0, 1.0, -1.0]
    """
    wide = [float("inf"), float("nan")]
    sizes = REWARD_SIZES[:: 4 if adaptive else 1] if np.isinf(bound) else [bound]
    if unit in ("loss_vector", "reward"):
        rewards = [0.0, *sizes, *(-np.asarray(sizes)), *(wide if np.isinf(bound) else [])]
        if adaptive:
            pays = [(float(r), float(sign * r)) for r in rewards for sign in ((1, -1) if r else (1,))]
            return [Edit(int(t), r, otherwise=s, rule=rule) for t in plays for rule in REACTION_RULES for r, s in pays]
        return [Edit(int(t), float(r)) for t in plays for r in rewards]
    if unit == "user":
        angles = 2 * np.pi * np.arange(NUM_ANGLES) / NUM_ANGLES
        plane = np.zeros((NUM_ANGLES, max(dim, 1)))
        plane[:, 0] = np.cos(angles)
        if dim > 1:
            plane[:, 1] = np.sin(angles)
        rewards = [0.0, 1.0, -1.0, 2.0**10, float("nan")] if np.isinf(bound) else [0.0, bound, -bound]
        features = [size * x for size in (FEATURE_LENGTHS if np.isinf(bound) else (1.0,)) for x in plane]
        if np.isinf(bound):
            features.append(np.full(max(dim, 1), np.inf))
        usual = [Edit(int(t), r, x, apart=False) for t in plays for x in features for r in rewards]
        right = plane[:: NUM_ANGLES // 4]
        some = [Edit(int(t), r, x, apart=True) for t in plays for x in right for r in rewards[1:3]]
        ends = (0, arms - 1) if arms else ()
        return usual + some + [edit._replace(apart=False, arm=arm) for edit in some for arm in ends]
    if unit == "message":
        inside = [(a, b) for a in (-1.0, 0.0, 1.0) for b in (-1.0, 0.0, 1.0)]
        return [Edit(int(t), 0.0, (), np.array(pair)) for t in plays for pair in (*inside, *REFUSED_MESSAGES)]
    raise ValueError(f"unit = {unit!r} must be one of {', '.join(map(repr, UNITS))}")


def check_pairs(
    pairs: Iterable[Any],
    unit: str,
    last: int,
    *,
    bound: float = np.inf,
    dim: int = 0,
    adaptive: bool = False,
    arms: int = 0,
) -> list[tuple[Edit, Edit]]:
    """A user's own pairs, with arrays for sequences.

    last: the last play that a transcript shows; bound, dim, adaptive and arms as in `edits`. Raises ValueError unless
    they are neighbours of `unit` that the claim is about.
    """
    shapes = {"feature": (dim,) if unit == "user" else (0,), "message": (2,) if unit == "message" else (0,)}

    def check_edit(edit: Edit) -> Edit:
        integer("pairs: play", edit.play, 1, last, remedy="a transcript shows no later one")
        if adaptive and (edit.rule not in REACTION_RULES or isinstance(edit.otherwise, tuple)):
            remedy = f"give rule, one of {', '.join(map(repr, REACTION_RULES))}, and otherwise"
            raise ValueError(f"pairs: {edit!r} does not react: {remedy}")
        if not adaptive and (edit.rule, edit.otherwise) != ((), ()):
            raise ValueError(f"pairs: {edit!r} reacts to what was played: give adaptive=True")
        for reward in (edit.reward, edit.otherwise) if adaptive else (edit.reward,):
            if bound < np.inf and not abs(reward) <= bound:
                beyond = f"reward = {reward!r} is beyond the claim, for rewards in [-{bound:g}, {bound:g}]"
                raise ValueError(f"pairs: {beyond}")
        arrays = {name: np.asarray(getattr(edit, name), np.float32) for name in shapes}
        for name, values in arrays.items():
            if values.shape != shapes[name]:
                wanted = f"{shapes[name][0]} numbers" if shapes[name][0] else "left out"
                raise ValueError(f"pairs: {name} = {getattr(edit, name)!r} must be {wanted} for unit {unit!r}")
        if edit.apart != () and unit != "user":
            raise ValueError(f"pairs: apart = {edit.apart!r} is for unit 'user', not {unit!r}: leave it out")
        if not isinstance(edit.arm, tuple) and not arms:
            raise ValueError(f"pairs: arm = {edit.arm!r} is for users to whom an arm is shown: leave it out")
        arm = () if isinstance(edit.arm, tuple) else integer("pairs: arm", edit.arm, 0, arms - 1)
        apart = bool(edit.apart) if unit == "user" else ()
        return edit._replace(apart=apart, arm=arm, **{name: x if x.size else () for name, x in arrays.items()})

    given = [tuple(pair) if isinstance(pair, tuple | list) else (pair,) for pair in pairs]
    for pair in given:
        if len(pair) != 2 or not all(isinstance(edit, Edit) for edit in pair) or pair[0].play != pair[1].play:
            raise ValueError(f"pairs: {pair!r} must be two auditing.Edit of one play: neighbours differ in one")
        if (pair[0].rule, pair[0].apart) != (pair[1].rule, pair[1].apart):
            raise ValueError(f"pairs: {pair!r} have two rules for the other plays: neighbours differ in one play")
    if not given:
        raise ValueError("pairs is empty: give at least one pair of auditing.Edit, or leave it out")
    return [(check_edit(a), check_edit(b)) for a, b in given]


def finer(pair: tuple[Edit, Edit], steps: int = 12) -> list[Edit]:
    """Edits of rewards between a pair's and the next larger that `edits` tries: where exactly does the algorithm clip?

    >>> [round(edit.reward, 3) for edit in finer((Edit(1, 1.0), Edit(1, -2.0)), steps=2)]
    [1.0, 1.091, -2.0, -2.181]
    """
    reacts = pair[0].rule != ()  # the steps of `edits` are then four times as wide
    factors = 2.0 ** (np.arange(4 * steps if reacts else steps) / (4 * steps))
    scaled = [(edit, x, float(edit.otherwise * x) if reacts else ()) for edit in pair for x in factors]
    return [edit._replace(reward=float(edit.reward * x), otherwise=otherwise) for edit, x, otherwise in scaled]

"""One window of a case, function by function, on abstract values: what one returns is what the next is given."""

from collections.abc import Callable, Iterable
from typing import Any

import jax
import jax.numpy as jnp

from jaxbandits.contract import runs_own_code
from jaxbandits.protocol import AdversaryView, Attack, Case, Score, Truth, World
from jaxbandits.sweeps.part_checks.traced_functions import Examination
from jaxbandits.sweeps.wording import (
    array_text,
    as_arrays,
    fits,
    is_array,
    is_scalar,
    row_text,
    shape_text,
    what,
)
from jaxbandits.window import Parts, streams

# A result has variables and axes of these names already: no diagnostic may be called so.
RESERVED_NAMES = (
    "regret", "pulls", "best_reward", "algorithm", "seed", "t", "arm", "arm_name", "horizon", "point",
    "nonfinite_rewards",
)  # fmt: skip


def check_functions(
    label: str,
    parts: Parts,
    case: Case,
    slots: int,
    view: Callable[..., Any] | None = None,
    agents: int | None = None,
    unread: bool = False,
) -> list[str]:
    """Trace every function of a case on windows of `slots` plays and check what it returns.

    Parameters
    ----------
    label : str
        What errors and doubts call the algorithm.
    parts : Parts
        The functions.
    case : Case
        Abstract values of all params.
    slots : int
        Plays of the window.
    view : callable, optional
        The view of a guarantee, where it is a user's.
    agents : int, optional
        How many agents the environment has, where it has any.
    unread : bool
        Also check what this case does not need and others may: truths that nobody reads, rewards that are no floats.

    Returns
    -------
    list of str
        What is doubtful, a line each.

    Raises
    ------
    ValueError
        A function returns something of the wrong form. The text names label, function and line.
    """
    trace, program, world = Examination(label), parts.program, parts.world
    draws = streams(parts, jax.ShapeDtypeStruct((), jnp.uint32))
    alg, outer = draws.child("alg"), draws.child("environment")
    whole = jax.ShapeDtypeStruct((), jnp.int32)
    t, play = jax.ShapeDtypeStruct((slots,), jnp.int32), jax.ShapeDtypeStruct((slots,), jnp.bool_)

    params = case.environment
    first = as_arrays(trace("World.init", world.init, params, outer.child("instance")))
    context, inner = trace("World.observe", world.observe, params, first, outer.child("context"), t)
    trace.same_state("World.observe", world.observe, "init", first, inner)
    truth = None
    if unread or parts.reward_attack is not None or parts.message_attack is not None:
        truth = trace("World.truth", world.truth, params, inner, t, context)
        if not isinstance(truth, Truth):
            raise trace.wrong("World.truth", world.truth, f"must return a Truth, it returns {what(truth)}")

    state = as_arrays(trace("Program.init", program.init, case.algorithm, alg.child("init")))
    action, used, note = trace("Program.act", program.act, case.algorithm, state, alg.child("act"), t, context)
    _check_action(trace, program.act, action, used, slots, agents)
    missing = [name for name in program.hints.kept if not hasattr(state, name)]
    if missing:
        raise trace.wrong(
            "Hints.kept",
            program.init,
            f"names {missing[0]!r}, but the state that init returns is {shape_text(state)}",
        )
    if agents is None and len(action.shape) == 2 and not runs_own_code(world.score):
        raise trace.wrong(
            "Program.act", program.act,
            f"returns actions {array_text(action)}, and this environment has no agents: return one action a play, "
            f"[P] or [1]",
        )  # fmt: skip
    if program.hints.rest is not None:
        arm = trace("Hints.rest", program.hints.rest, case.algorithm, state)
        if not is_scalar(arm, jnp.integer):
            raise trace.wrong(
                "Hints.rest", program.hints.rest, f"must return one arm, int32, it returns {shape_text(arm)}"
            )
    named = _check_diagnostics(trace, "Program", program.diagnose, case.algorithm, state)
    if program.hints.tally:  # rewards come as counts of values from the environment's law: `reward` is not called
        return trace.doubts

    reward = trace("World.reward", world.reward, params, inner, outer.child("reward"), t, context, action)
    many = len(action.shape) == 2
    agents = action.shape[1] if many else None
    if not fits(reward, slots, agents, many) and not runs_own_code(world.reward):
        raise trace.wrong(
            "Program.act", program.act,
            f"returns actions {array_text(action)}, for which this environment pays {shape_text(reward)}: "
            f"where there are agents it must be one action for each of them, [P, N]",
        )  # fmt: skip
    if not fits(reward, slots, agents, many):
        wanted = row_text(slots, agents)
        raise trace.wrong(
            "World.reward", world.reward, f"must return rewards of {wanted}, it returns {shape_text(reward)}"
        )
    if unread and not jnp.issubdtype(reward.dtype, jnp.floating):
        raise trace.wrong(
            "World.reward", world.reward, f"must return floats, it returns {shape_text(reward)}: .astype(draws.dtype)"
        )
    score = trace("World.score", world.score, params, inner, t, context, action)
    _check_score(trace, world, score, slots, agents)
    reward = jax.ShapeDtypeStruct((slots, *reward.shape[1:]), reward.dtype)
    action = jax.ShapeDtypeStruct((slots, *action.shape[1:]), action.dtype)

    def corrupted(attack: Attack, numbers: Any, payload: Any, stream: Any, slot: str) -> Any:
        """The payload after an attack; numbers: the attack's params."""
        attacker = as_arrays(trace("Attack.init", attack.init, numbers, stream))
        if attack.per_arm is not None:
            if parts.arms is None:
                raise trace.wrong(
                    "Attack.per_arm", attack.per_arm,
                    "counts arms, and the environment does not say how many it has: facts['num_arms']",
                )  # fmt: skip
            attacker = as_arrays(trace("Attack.per_arm", attack.per_arm, attacker, parts.arms))
        named.extend(_check_diagnostics(trace, "Attack", attack.diagnose, numbers, attacker, named))

        def corrupt(numbers, attacker, stream, t, payload, *rest):
            params, inner, context, action, play, truth, algorithm, state, note = rest

            def sample(other):
                return world.reward(params, inner, stream.child("reward"), t, context, other)

            def encode(draws, rewards):
                return program.encode(algorithm, note, draws, t, context, action, rewards, play)

            view = AdversaryView(
                t=t,
                context=context,
                action=action,
                play=play,
                truth=truth,
                params=algorithm,
                state=state,
                note=note,
                sample=sample,
                encode=encode if slot == "messages" else None,
            )
            return attack.corrupt(numbers, attacker, stream, t, payload, view)

        rest = (params, inner, context, action, play, truth, case.algorithm, state, note)
        after, hit, attacker_after = trace(
            "Attack.corrupt", attack.corrupt, numbers, attacker, stream, t, payload, *rest, follows=corrupt
        )
        if shape_text(as_arrays(after)) != shape_text(as_arrays(payload)):
            raise trace.wrong(
                "Attack.corrupt", attack.corrupt,
                f"must return {slot} as it receives them, {shape_text(payload)}, it returns {shape_text(after)}",
            )  # fmt: skip
        if not (isinstance(hit, bool) or (is_array(hit) and hit.dtype == jnp.bool_)):
            raise trace.wrong(
                "Attack.corrupt", attack.corrupt,
                f"must return as `hit` False or a mask of agents, booleans, it returns {shape_text(hit)}",
            )  # fmt: skip
        trace.same_state("Attack.corrupt", attack.corrupt, "init", attacker, attacker_after)
        return after

    if parts.reward_attack is not None:
        reward = corrupted(parts.reward_attack, case.reward_adversary, reward, draws.child("contamination"), "rewards")
    message = trace(
        "Program.encode", program.encode, case.algorithm, note, alg.child("encode"), t, context, action, reward, play
    )
    if parts.message_attack is not None:
        message = corrupted(parts.message_attack, case.message_adversary, message, draws.child("attack"), "messages")
    message = trace("Program.relay", program.relay, case.algorithm, alg.child("relay"), whole, message, play)
    update: Any = program.update
    given: tuple[Any, ...] = (case.algorithm, state, alg.child("update"), whole, note, message)
    if used is None and slots == 1:  # the engine passes 1 as a number of Python here, not as an array
        after, released = trace("Program.update", program.update, *given, follows=lambda *xs: update(*xs, 1))
    else:
        after, released = trace("Program.update", program.update, *given, whole)
    trace.same_state("Program.update", program.update, "init", state, after)
    after = trace("Program.close", program.close, case.algorithm, state, alg.child("close"), whole)
    trace.same_state("Program.close", program.close, "init", state, after)
    if view is not None:
        trace("Guarantee.view", view, message, released, action)
    return trace.doubts


def _check_action(
    trace: Examination, act: Callable[..., Any], action: Any, used: Any, slots: int, agents: int | None
) -> None:
    rows = f"[P] (here {slots}){'' if agents is None else f', [P, N] (here {slots}, {agents})'} or [1]"
    if not fits(action, slots, agents, is_array(action) and len(action.shape) == 2):
        raise trace.wrong("Program.act", act, f"must return actions of shape {rows}, it returns {shape_text(action)}")
    if not jnp.issubdtype(action.dtype, jnp.integer):
        raise trace.wrong(
            "Program.act", act,
            f"must return arms as integers, it returns actions of {action.dtype}: .astype(jnp.int32)",
        )  # fmt: skip
    if used is not None and not is_scalar(used, jnp.integer):
        raise trace.wrong(
            "Program.act", act,
            f"must return as `used` None or how many plays it uses, one int32, it returns {shape_text(used)}",
        )  # fmt: skip


def _check_score(trace: Examination, world: World, score: Any, slots: int, agents: int | None) -> None:
    if not isinstance(score, Score):
        raise trace.wrong("World.score", world.score, f"must return a Score, it returns {what(score)}")
    if score.arm is None and score.regret is None:
        raise trace.wrong("World.score", world.score, "must give arm, regret or both, it gives neither")
    kinds: dict[str, Any] = {"arm": jnp.integer, "regret": jnp.number}
    for name, kind in kinds.items():
        value = getattr(score, name)
        if value is None:
            continue
        right = is_array(value) and value.shape[:1] in ((slots,), (1,)) and jnp.issubdtype(value.dtype, kind)
        if not right or len(value.shape) > (1 if name == "arm" or agents is None else 2):
            words = "integers" if name == "arm" else "numbers"
            wanted = row_text(slots, None if name == "arm" else agents)
            raise trace.wrong(
                "World.score", world.score, f"must give {name} of {wanted}, {words}, it gives {shape_text(value)}"
            )
    if score.arm is not None and not world.num_arms:
        raise trace.wrong(
            "World.score", world.score, "gives arms to count, but World.num_arms is 0: say how many arms there are"
        )


def _check_diagnostics(
    trace: Examination, kind: str, diagnose: Callable[..., Any], params: Any, state: Any, taken: Iterable[str] = ()
) -> list[str]:
    """The names of a part's diagnostics. kind: "Program" or "Attack". taken: names that another part gives."""
    where = f"{kind}.diagnose"
    diagnostics = trace(where, diagnose, params, state)
    if not isinstance(diagnostics, dict):
        raise trace.wrong(where, diagnose, f"must return a dict of numbers, not {what(diagnostics)}")
    for name, value in diagnostics.items():
        if name in RESERVED_NAMES or (isinstance(name, str) and (not name.strip() or "/" in name)):
            raise trace.wrong(
                where, diagnose, f"gives {name!r}, which a result cannot hold under that name: call it otherwise"
            )
        if name in taken:
            raise trace.wrong(
                where, diagnose, f"gives {name!r}, and so does another part of this run: call one of them otherwise"
            )
        if not isinstance(name, str) or not (is_scalar(value, jnp.number) or is_scalar(value, jnp.bool_)):
            raise trace.wrong(
                where, diagnose, f"must return {{name: number}}, its entry {name!r} is {shape_text(value)}"
            )
    return list(diagnostics)

"""What a part takes and what it reads: `jaxbandits list`, and what the documentation's catalogue shows.

Nothing here is written down a second time: arguments, ranges and texts are what the factory declares
(`jaxbandits.declared`), the rest is what the part says of itself; the catalogue has an example of each.
"""

import functools
import json
import math
import textwrap
from collections.abc import Callable
from typing import Any

from jaxbandits import adversaries, algorithms, catalogue, environments, papers
from jaxbandits.declared import PLAYS_ON, Argument, Range, sections
from jaxbandits.formatting import brackets, markdown_table, nearest
from jaxbandits.learners.transformations import is_transformation, maker
from jaxbandits.protocol import Adversary, Algorithm, Environment, Rewards
from jaxbandits.recipe import recipe_of, unwrap
from jaxbandits.reports.citations import join_lines, paper
from jaxbandits.sweeps.arguments import jsonable
from jaxbandits.sweeps.assumptions import FATES, interval
from jaxbandits.sweeps.plan import FILLED
from jaxbandits.sweeps.who_plays import OFFERS, offers, what_is_read, what_is_shown
from jaxbandits.validation import plays_on

LISTED_KINDS = {"algorithms": algorithms, "environments": environments, "adversaries": adversaries}
PAGE_WIDTH = 110  # characters of a line


def names(kind: str) -> list[str]:
    """The parts of a kind, in the order of the documentation."""
    return list(LISTED_KINDS[kind].__all__)


def kind_of(name: str) -> str:
    """The kind of a part. ValueError, with the nearest names, where there is none of that name."""
    for kind in LISTED_KINDS:
        if name in names(kind):
            return kind
    known = [*LISTED_KINDS, "papers", *(name for kind in LISTED_KINDS for name in names(kind)), *papers.all_studies()]
    raise ValueError(f"there is nothing called {name!r}{nearest(name, known, 3)}: `jaxbandits list` names all there is")


def factory_of(name: str) -> Any:
    """The factory of a part. ValueError where there is none of that name."""
    return getattr(LISTED_KINDS[kind_of(name)], name)


def example(name: str) -> Algorithm | Environment | Adversary:
    """A part as the catalogue makes it."""
    kind = kind_of(name)
    if kind == "algorithms":
        return catalogue.case(name)[0]
    if kind == "environments":
        return catalogue.ENVIRONMENTS[name].environment()
    row = catalogue.ADVERSARIES[name]
    return next(filter(None, (row.reward_adversary, row.message_adversary)))()


def structure(name: str) -> str:
    """What an algorithm plays on: "arms", "losses", "experts", "contextual", "linear" or "federated"."""
    algorithm, environment = catalogue.case(name)
    kind = PLAYS_ON[plays_on(factory_of(name), algorithm)]
    return "losses" if kind == "arms" and "losses" in environment.facts else kind


def first_paragraph(factory: Callable[..., Any]) -> str:
    """The first paragraph of a docstring."""
    return join_lines(sections(factory.__doc__)[""].partition("\n\n")[0])


def record(name: str) -> dict[str, Any]:
    """All that is known of a part, as JSON.

    Infinities are the texts "inf" and "-inf", as in a result's configuration.
    """
    factory, part = factory_of(name), example(name)
    rows = factory.arguments.values()
    facts: dict[str, Any] = {"name": name, "summary": first_paragraph(factory)}
    facts |= {"arguments": list(map(_argument_record, rows)), "static": [row.name for row in rows if row.static]}
    facts["paper"] = paper(factory)
    if isinstance(part, Algorithm):
        claim = part.guarantee
        facts |= {"model": claim.model, "unit": None if claim.model == "none" else claim.unit}
        facts |= {"structure": structure(name), "rewards": part.rewards and part.rewards._asdict()}
    return jsonable(facts)


def _argument_record(row: Argument) -> dict[str, Any]:
    default, span = None if row.required else row.default, row.range and _range_record(row.range)
    record = {"name": row.name, "default": default, "static": row.static, "range": span}
    return record | {"required": row.required, "text": join_lines(row.about)}


def _range_record(asked: Range) -> dict[str, Any]:
    if asked.kind == "choice":
        return {"kind": asked.kind, "values": list(asked.values)}
    return {key: value for key, value in asked._asdict().items() if key != "values"}


def listing_text(what: str | None) -> str:
    """What `jaxbandits list WHAT` prints. ValueError where nothing is called so."""
    if what is None:
        return "\n".join(overview(kind) for kind in (*LISTED_KINDS, "papers"))
    if what in LISTED_KINDS or what == "papers":
        return overview(what)
    studies = papers.all_studies()
    return f"{what}: {studies[what].title} ({studies[what].source})" if what in studies else page(what)


def plays_text() -> str:
    """Who plays where, as two tables: what the catalogue's environments show, and who plays where that is shown.

    `jaxbandits list --plays` prints it, and it stands in docs/which_plays_where.md.
    """
    where, who = dict[str, list[str]](), dict[tuple[str, ...], list[str]]()
    for name in names("environments"):
        where.setdefault(what_is_shown(catalogue.ENVIRONMENTS[name].environment()), []).append(f"`{name}`")
        if "view" in recipe_of(getattr(environments, name)).arguments:  # beside that of the catalogue's case
            where.setdefault("decision set", []).append(f'`{name}` with `view="blocks"`')
    conversions = list[str]()
    for name in names("algorithms"):
        recipe = recipe_of(factory_of(name))
        if "base" in recipe.arguments and recipe.function.plays_on is None:
            conversions.append(f"`{name}`")
        else:
            reads = what_is_read(recipe)
            who.setdefault(tuple("yes" if offers(shown, reads) else "" for shown in OFFERS), []).append(f"`{name}`")
    shown = [[kind, words, ", ".join(where.get(kind, ["one of your own"]))] for kind, (_, words) in OFFERS.items()]
    rows = [[", ".join(found), *answers] for answers, found in who.items()]
    rows.append([", ".join(conversions), "where their base does", *[""] * (len(OFFERS) - 1)])
    first = markdown_table([["a play shows", "an environment that", "environments"], *shown])
    return "\n\n".join([first, markdown_table([["algorithms", *OFFERS], *rows])])


def as_json(what: str | None) -> str:
    """A part, or the list of a kind's parts, as JSON. ValueError for anything else.

    >>> json.loads(as_json("kl_ucb"))["rewards"]
    {'low': 0.0, 'high': 1.0, 'outside': 'clip'}
    """
    if what is None or what == "papers" or what in papers.all_studies():
        raise ValueError(f"--json lists {', '.join(LISTED_KINDS)}, or one of them by name: name it before --json")
    records = [record(name) for name in names(what)] if what in LISTED_KINDS else record(what)
    return json.dumps(records, indent=2, allow_nan=False)


def reading(rewards: Rewards | None) -> str:
    """The rewards an algorithm reads, in a few words.

    >>> reading(Rewards(0.0, 1.0, "clip")), reading(Rewards())
    ('[0, 1], clipped', 'any')
    """
    if rewards is None:
        return "not declared"
    if math.isinf(rewards.low) and math.isinf(rewards.high):
        return "any"
    outside = {"clip": ", clipped", "zero": ", else 0", "accept": ""}[rewards.outside]
    return interval(rewards.low, rewards.high) + outside


def privacy(algorithm: Algorithm) -> str:
    """The model of an algorithm's privacy, and what it protects one of.

    >>> privacy(example("kl_ucb")), privacy(example("jdp_linucb"))
    ('', 'central, user')
    """
    claim = algorithm.guarantee
    return "" if claim.model == "none" else f"{claim.model}, {claim.unit.replace('_', ' ')}"


def overview(kind: str) -> str:
    """The parts of a kind, a line each: name and first line of the docstring.

    Between them stand the rewards that an algorithm reads and its privacy, as the catalogue's example has both.
    """
    about = "; columns: rewards it reads, and what is private in which model (docs/privacy.md)"
    lines = [f"{kind}{about if kind == 'algorithms' else ''}:"]
    if kind == "papers":
        return "\n".join(lines + [f"  {name:36s} {study.title}" for name, study in papers.all_studies().items()])
    for name in names(kind):
        column = ""
        if kind == "algorithms":
            algorithm = catalogue.case(name)[0]
            column = f"{reading(algorithm.rewards):16s} {privacy(algorithm):20s} "
        first = (getattr(LISTED_KINDS[kind], name).__doc__ or "").strip().splitlines()[0]
        lines.append(f"  {name:24s} {column}{first}")
    return "\n".join(lines)


def page(name: str) -> str:
    """All that is known of a part, as text."""
    factory, part = factory_of(name), example(name)
    rows = factory.arguments.values()
    facts = {}
    if isinstance(part, Algorithm):
        claim = part.guarantee
        unit = f", neighbours differ in one {claim.unit.replace('_', ' ')}"
        bound = recipe_of(catalogue.ALGORITHMS[name].algorithm).bound
        facts["plays on"] = structure(name)
        # rewards and privacy may depend on arguments: they are those of this example
        facts["example"] = f"{name}({', '.join(f'{key}={_value_text(value)}' for key, value in bound.items())})"
        facts["rewards"] = reading(part.rewards)
        if part.rewards is not None and facts["rewards"] != "any":
            facts["rewards"] = f"{interval(part.rewards.low, part.rewards.high)}, {FATES[part.rewards.outside]}"
        facts["privacy"] = claim.model + ("" if claim.model == "none" else unit)
    facts["static"] = ", ".join(row.name for row in rows if row.static)
    facts["paper"] = paper(factory)
    lines = [*textwrap.wrap(f"{name}: {first_paragraph(factory)}", PAGE_WIDTH), ""]
    for title, text in facts.items():
        if text:
            lines += textwrap.wrap(text, PAGE_WIDTH, initial_indent=f"{title:10s}", subsequent_indent=" " * 10)
    lines += ["", "arguments:"]
    shown: dict[str, str] = {}  # texts about several arguments, with the first of them
    for row in rows:
        if row.required:
            default = "from the run" if row.name in (*FILLED, "horizon") else "required"
        else:
            default = f"default {_value_text(row.default)}"
        about = [text for text in (default, range_text(row.range), "static" if row.static else "") if text]
        head = f"{row.name}: {', '.join(about)}"
        lines += textwrap.wrap(head, PAGE_WIDTH, initial_indent="  ", subsequent_indent=" " * 6)
        meaning = join_lines(row.about)
        text = f"see {shown[meaning]}" if meaning in shown else meaning
        lines += textwrap.wrap(text, PAGE_WIDTH, initial_indent=" " * 6, subsequent_indent=" " * 6)
        if meaning:
            shown.setdefault(meaning, row.name)
    return "\n".join(lines)


def _value_text(value: object) -> str:
    """A value as one would write it."""
    if isinstance(value, functools.partial):
        function, keywords, _ = unwrap(value)
        bound = "".join(f", {key}={_value_text(inner)}" for key, inner in keywords.items())
        return f"partial({_value_text(function)}{bound})"
    if isinstance(value, list):
        return f"[{', '.join(map(_value_text, value))}]"
    if is_transformation(value):
        return f"an optax transformation of {maker(value).rpartition('.')[2]}"
    return getattr(value, "__name__", None) or repr(value)


def range_text(asked: Range | None) -> str:
    """A range in words.

    >>> range_text(Range("integer", 2)), range_text(Range("number", 0.0, 1.0, open_low=True))
    ('integer >= 2', 'in (0, 1]')
    """
    if asked is None:
        return ""
    if asked.kind == "choice":
        return "one of " + ", ".join(map(repr, asked.values))
    low, high = math.isfinite(asked.low), math.isfinite(asked.high)
    if low and high:
        inside = brackets(asked.low, asked.high, "{:g}".format, open_low=asked.open_low, open_high=asked.open_high)
        ends = f"in {inside}"
    elif low:
        ends = f"{'>' if asked.open_low else '>='} {asked.low:g}"
    elif high:
        ends = f"{'<' if asked.open_high else '<='} {asked.high:g}"
    else:
        return asked.kind
    return ends if asked.kind == "number" else f"{asked.kind} {ends}"

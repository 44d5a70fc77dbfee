"""What became of every numbered claim of the papers: the page docs/verdicts.md, and the words of each claim elsewhere.

The claims are in jaxbandits/papers/verdicts.toml, with the lines of the studies' tables that are about each. From it
are written the page and the last column of the tables in docs/reproductions, so that a claim has the same words
everywhere. What was measured is not written there: the page quotes those tables, and the audit's table in
docs/privacy.md, and its texts take their figures from `ground_figures`.

`python docs/verdicts.py` writes both, without running a study.
"""

import importlib
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path

import ground_figures
import study_tables as pages

from jaxbandits import papers, theory
from jaxbandits.papers.study import CLAIM_COLUMNS, Study
from jaxbandits.papers.verdicts import (
    CONSTANTS,
    FAILS,
    MEASURED,
    NO_CLAIM,
    NONE_HELPS,
    NOT_CONTRADICTED,
    NOT_READABLE,
    NOT_SETTLED,
    OTHER,
    OURS,
    PROVED,
    RANGE,
    REACHED,
    UNDECIDABLE,
    UNSTATED,
    WORDS,
    Verdict,
    read_verdicts,
    word_finder,
)  # fmt: skip

NO_FIGURE_CHANGES = (PROVED, NOT_READABLE, NOT_SETTLED, NO_CLAIM, OTHER)
OF_A_READING_ALONE, OF_PRINT_ALONE = (OTHER,), (NOT_READABLE, NO_CLAIM)
NEAR = 0.5  # of its bound: an instance at this share of it has reached it
BEGIN, END = "<!-- verdicts: begin -->", "<!-- verdicts: end -->"
COUNTS = "<!-- counts: begin -->", "<!-- counts: end -->"
HEADINGS = ["", "the paper says", "verdict", "why, and under which reading", "measured", "what would change it", ""]
# what relates the two sides of a statement, in signs or in words; our copies have lost most signs
RELATION = re.compile(
    r"[=<>≤≥≲⪯]|\\(?:leq?|geq?|succeq)\b|\bO[ (]|𝒪|at most|at least|\bprivate\b|indistinguishable|\bDP\b|LDP|match|same"
    r"|flexible|eliminated|agnostic"
)
# what shows that something is gone from a copy, as in "τ 1", "Z Lap(", "1 ε", "p T/ε", "is -DP", "= 0" -> words, of
# which `lost` has one
LOSSES = {
    r"(?<![\w.,{\\^_/])[τγεϵδηλαβKNTMnd] \d(?![/\d])|[ετδγϵηλ] \[|\bN K\b": "sign|relation|statement",
    r"[A-Z]\w* Lap\b|ξa Lap": "sign",
    r"\b1 [δα]\b": "sign|relation|fraction|statement",
    r"(?<![\w.])1 [εϵτηTKN]\b": "fraction",
    r"(?<![\w)|])[pq] [A-Z(]|\br \d?T\b": r"\broot|radical|√",
    r"(?<!\S)-DP|[/(] \)|/ ,": "ε",
    r"(?<=[a-z,]) = 0\b(?!\.)": "α",
    r"\bLap (?!\()|\bLap\([^)]*$|Lap\([\d, ]*\d\s": "bracket|scale",
    r"\ba 2 M 1\b": "norm",
}
IN_AN_APPENDIX = {
    r"\\mathcal\{E\}": "ℰ",
    r"\bMaler\b": "Algorithms? 3",
    r"Algorithm 2 under": r"\b7\b",
}  # of numbered ones
NAMED_WORD = re.compile(r": (?:then )?([a-z ]{4,40})[.;]")  # what a figure would have made of a word


EPSILON, DELTA, EXPERTS = 0.1, 1e-5, (3, 16)  # the sizes of `private-adversarial/price-of-privacy`
OF_EXPERTS = (
    partial(theory.experts_bounds, *EXPERTS, epsilon=EPSILON, delta=DELTA),
    f"K = {EXPERTS[0]}, N = {EXPERTS[1]}, ε = {EPSILON}, δ = {DELTA:g}",
)
# name -> the bounds with their constants as a function of T, and the sizes in words
BOUNDS: dict[str, tuple[Callable[..., dict[str, float]], str]] = dict.fromkeys(
    ("bandit_to_experts", "local_exp4", "batched_exp4"), OF_EXPERTS
)


def text_with_words(study: str, docs: Path) -> str:
    """What stands between a study's marks, with the word that each claim has now."""
    about = word_finder(study)
    lines = pages.study_text(study, docs).splitlines()
    cells = {i: found for i, line in enumerate(lines) if len(found := _cells(line)) in (4, 5)}
    words = {i: about(found[0].replace("\\|", "|")) for i, found in cells.items()}
    for i, found in cells.items() if any(words.values()) else ():
        if found[1] == CLAIM_COLUMNS[1]:
            lines[i] = _line(CLAIM_COLUMNS)
        elif set(found) == {"---"}:
            lines[i] = "|" + "---|" * len(CLAIM_COLUMNS)
        else:
            lines[i] = _line([*found[:4], words[i]])
    return "\n".join(lines) + "\n"


def write_verdicts(docs: Path, studies: dict[str, Study]) -> list[Path]:
    """Write the tables into docs/verdicts.md, each claim's word into the reproductions, and their list; the paths.

    ValueError where marks, or what a row names, are not there, or two claims name the same line.
    """
    page = docs / "verdicts.md"
    text = page.read_text(encoding="utf-8")
    for begin, end in (COUNTS, (BEGIN, END)):
        if len(re.findall(f"^{begin}$.*^{end}$", text, flags=re.M | re.S)) != 1:
            raise ValueError(f"{page}: give it one pair of lines, {begin} and {end}")
    for name in studies:
        pages.replace(name, docs, text_with_words(name, docs))
    for (begin, end), new in {COUNTS: verdict_counts(), (BEGIN, END): verdict_tables(docs, studies)}.items():
        text = f"{text.split(begin)[0]}{begin}\n{new}\n{end}{text.split(end)[1]}"
    page.write_text(text, encoding="utf-8")
    return list(
        dict.fromkeys([page, pages.write_overview(studies, docs), *(pages.page_of(name, docs) for name in studies)])
    )


def verdict_counts() -> str:
    """How many claims have each word as printed, and of these with a reading each word, as Markdown."""
    claims = [row for paper in read_verdicts().values() for row in paper["claim"]]
    printed, read = [row.printed for row in claims], [row.reading for row in claims if row.reading]
    rows = [_line([f"of {len(claims)} claims", "in print", "under a reading"]), _line(["---", "---:", "---:"])]
    used = [word for word in WORDS if word in (*printed, *read)]
    return "\n".join([*rows, *(_line([x, f"{printed.count(x)}", f"{read.count(x)}"]) for x in used)])


def verdict_tables(docs: Path, studies: dict[str, Study]) -> str:
    """A heading, a count and a table for every paper, as Markdown. ValueError where `faults` finds one."""
    if found := faults(docs, studies):
        raise ValueError(f"verdicts.toml: {'; '.join(found)}")
    parts = []
    for paper in read_verdicts().values():
        claims = paper["claim"]
        counts = "; ".join(f"{n} {word}" for word in WORDS if (n := sum(row.printed == word for row in claims)))
        table = [
            _line(HEADINGS),
            _line(["---"] * len(HEADINGS)),
            *(_line(verdict_cells(row, docs, studies)) for row in claims),
        ]
        about = f"{paper_source(paper['name'])}\n\n{len(claims)} claims. As printed: {counts}."
        parts.append(f"## {paper['title']}\n\n{about}\n\n" + "\n".join(table))
    return "\n\n".join(parts)


def paper_source(name: str) -> str:
    """Authors, title and where a paper is, from the first line of its studies' package; an arXiv number is a link."""
    first = (importlib.import_module(f"jaxbandits.papers.{name.replace('-', '_')}").__doc__ or "").splitlines()[0]
    return re.sub(r"arXiv ([\d.]+\d)", r"[\g<0>](https://arxiv.org/abs/\1)", first)


PROVABLE = "Theorem|Corollary|Lemma|Proposition|Remark"
KINDS = f"{PROVABLE}|Figure|Table"
NAMED = re.compile(rf"({KINDS})s? ([A-Z0-9]+(?:\.[0-9]+)*)")
OF_PRIVATE_ALGORITHMS = "Lemma 5.1"  # a bound on regret, of algorithms that are private already


def faults(docs: Path, studies: dict[str, Study]) -> list[str]:
    """What rows leave out of what their papers number and our pages name, and where they go against their lines."""
    lines = {name: [x for x in lines_of(name, docs) if x[1] not in (CLAIM_COLUMNS[1], "---")] for name in studies}
    records, found, covered = read_verdicts(), list[str](), set[str]()
    claims = [row for record in records.values() for row in record["claim"]]
    for paper, record in records.items():
        rows, file = record["claim"], f"{paper.replace('-', '_')}.md"
        own = {number for row in rows for number in own_numbers(row)}
        sources = " ".join(study.source for name, study in studies.items() if name.startswith(paper))
        named = named_in(docs / "reproductions" / file) | set(map(" ".join, NAMED.findall(sources)))
        found += [f"{paper}: no row is about {x}" for x in sorted(named | set(record["numbered"])) if x not in own]
        if len(set(record["numbered"]) & named_in(docs / "formulas" / file)) < 4:
            found.append(f"{paper}: docs/formulas/{file} speaks of other statements")
        unquoted = {x for x in record["numbered"] if not any(row.copy for row in rows if x in own_numbers(row))}
        found += [f"{paper}: no row has the characters of {x}" for x in sorted(unquoted)]
        numbers = [row.number for row in rows]
        found += [f"{paper}: two rows are about {x}" for x in sorted(set(numbers)) if numbers.count(x) > 1]
        for half, other in ((", privacy", ", regret"), (", regret", ", privacy")):
            whole = [x.removesuffix(half) for x in numbers if x.endswith(half)]
            found += [f"{paper}: {x}{half} has no row {x}{other}" for x in whole if x + other not in numbers]
        for row in rows:
            found += [f"{row.number}: {what}" for what in _faults_of(row, lines)]
        for name in (name for name in studies if name.startswith(f"{paper}/")):
            without = [x for x, said, *_ in lines[name] if said and not any(row.about(name, x) for row in claims)]
            found += [f"{name}: no row is about {x!r}" for x in without]
        covered |= own
    across = named_in(docs / "reproductions" / "across.md")
    return [*found, *(f"across.md names {x}, which no row is about" for x in sorted(across - covered))]


def _faults_of(row: Verdict, lines: dict[str, list[list[str]]]) -> list[str]:
    found, said = [], set()
    for pattern in row.rows:
        about, name = row._replace(rows=(pattern,)).about, pattern.partition(": ")[0]
        here = {line[3] for line in lines.get(name, []) if about(name, line[0])}
        found += [] if here else [f"no line is {pattern!r}"]
        said |= here
    contradicted, confirmed, words = "**no**" in said, "yes" in said, row.say_words()
    private = re.search("-(locally )?private", row.claim) and row.number != OF_PRIVATE_ALGORITHMS
    open_words, texts = (
        {UNDECIDABLE, NOT_READABLE, NOT_SETTLED, NO_CLAIM},
        f"{row.ground} {row.under} {row.would_change}",
    )
    losses = LOSSES | (IN_AN_APPENDIX if re.match(PROVABLE, row.number) else {})
    found += [
        f"its characters are damaged ({gone[0]!r}): say in `lost` what is lost, one of {words}"
        for pattern, words in losses.items()
        if (gone := re.search(pattern, row.copy)) and not re.search(words, row.lost)
    ]
    wrong = {
        "claim or ground is empty": not (row.claim and row.ground),
        "study and statement go together": bool(row.study) != bool(row.statement),
        "a reading says which one it is, and its evidence": bool(row.reading) != bool(row.under),
        f"{row.printed} is a word of readings": row.printed in OF_A_READING_ALONE,
        f"{row.reading} is no word of readings": row.reading in OF_PRINT_ALONE,
        "what stands in the place of a loss is a reading": row.lost and row.printed != NOT_READABLE,
        "its characters have no relation: say in `lost` what is lost": row.copy
        and re.match(KINDS, row.number)
        and not (row.lost or row.printed == NO_CLAIM or RELATION.search(row.copy)),
        "at most, or least, over what: `here` names no range": re.search(r"at (most|least|worst) here\b", texts),
        "give the characters of our copy": not row.copy,
        "its characters are cut within a formula": any(
            part.count("{") != part.count("}") or part.count("$") % 2 for part in row.copy.split("[...]")
        ),
        "would_change names no word of the list": any(
            not word.startswith(WORDS) for word in NAMED_WORD.findall(row.would_change)
        ),
        "ground: say in `lost` what our copy has lost": not row.lost and re.search(r"lost in our copy|garbled", texts),
        "privacy and regret are two rows": private and "regret" in row.claim,
        f"constants = {row.constants!r} is none of {', '.join(CONSTANTS)}": row.constants not in CONSTANTS,
        f"{words}, and its constants are not stated": row.constants == UNSTATED
        and (UNDECIDABLE not in row.both_words or not open_words.issuperset(row.both_words)),
        f"{UNDECIDABLE}: say whether its constants are stated": UNDECIDABLE in row.both_words and not row.constants,
        "constants of ours need a proof": row.constants == OURS and PROVED not in row.both_words,
        "where no constant helps it fails": row.constants == NONE_HELPS and not {FAILS, RANGE} & {*row.both_words},
        f"{MEASURED}, and no line says yes": MEASURED in row.both_words and not confirmed,
        f"{words}, and a line says no": contradicted and not {FAILS, RANGE, OTHER} & {*row.both_words},
        f"{words}, and a line says yes": confirmed and open_words.issuperset(row.both_words),
        f"{words}, and no line says no": row.both_words == (FAILS,) and row.rows and not contradicted,
        "figures are those of its text": set(re.findall(r"\{(\w+)\}", texts)) != set(row.figures),
    }
    return [*found, *(words for words, is_so in wrong.items() if is_so)]


def named_in(page: Path) -> set[str]:
    """The numbered statements that a page names."""
    return set(map(" ".join, NAMED.findall(page.read_text(encoding="utf-8"))))


def own_numbers(row: Verdict) -> set[str]:
    """The statements that a row is about, and its own name."""
    return numbers_of(row.number) | {row.number}


def numbers_of(text: str) -> set[str]:
    """What a row is about, such as {"Lemma A.3", "Lemma A.4"} for "Lemmas A.3 and A.4", with those between for "to"."""
    kind, found = "", set()
    for word, number in re.findall(rf"(?:({KINDS}|Corollarie)\w*,? )?\b([A-Z]?[0-9.]*\d)\b", text):
        kind = word.replace("Corollarie", "Corollary") or kind
        found.add(f"{kind} {number}")
    ends = re.search(r"([A-Z]\.)(\d+) to [A-Z]\.(\d+)", text)
    return found | ({f"{kind} {ends[1]}{n}" for n in range(int(ends[2]), int(ends[3]) + 1)} if ends else set())


def verdict_cells(row: Verdict, docs: Path, studies: dict[str, Study]) -> list[str]:
    """The cells of a row, as Markdown with line breaks and pictures. ValueError where it names what is not there."""
    if unknown := set(row.both_words) - set(WORDS):
        raise ValueError(f"{row.number}: {unknown}: give words of {', '.join(WORDS)}")
    if bool(row.would_change) == (set(row.both_words) <= set(NO_FIGURE_CHANGES)):
        what = "name the figure that would have changed it" if not row.would_change else "no figure would change it"
        raise ValueError(f"{row.number}: {row.say_words()}, would_change = {row.would_change!r}: {what}")
    measured, picture = [], ""
    if row.study:
        if row.study not in studies:
            raise ValueError(f"{row.number}: there is no study {row.study!r}")
        if not row.about(row.study, row.statement):
            raise ValueError(f"{row.number}: rows leave out {row.study}: {row.statement!r}, which it shows")
        measured.append(_quote_measurement(row, docs) + (_seed_range(studies[row.study]) if row.drawn else ""))
        measured.append(f"`jaxbandits reproduce {row.study} --full`")
        if row.picture:
            paper, figure = row.study.split("/")
            place = f"figures/{paper}/{figure}-{row.picture}.png"
            if row.picture not in studies[row.study].figures:
                raise ValueError(f"{row.number}: {row.study} has no picture {row.picture!r}")
            picture = f"![{row.number}]({place})"
    if row.audited:
        measured.append(f"{_audit(row, docs)}; `jaxbandits audit {row.audited}`")
    ground, under, change = (ground_figures.fill(text, row, docs) for text in (row.ground, row.under, row.would_change))
    if row.bound:
        bounds, sizes = BOUNDS[row.bound]
        plays = useful_from(lambda horizon: bounds(horizon=horizon)[row.bound])
        step = 10 ** max(0, len(str(plays)) - 2)
        plays += -plays % step  # two digits, rounded up
        useful = f" With constants the bound is below T only from {plays:,} plays on ({sizes})."
        ground, under = (ground, under + useful) if under else (ground + useful, under)
    claim, words = row.claim, [f"**{word}**" for word in row.both_words]
    words[-1] += evidence(row, docs)
    if row.under:
        ground += f"\n*Under a reading:* {under}"
    first = [row.number, claim, "\nunder a reading: ".join(words), ground]
    first = [text.replace("|", "\\|").replace("<", "&lt;").replace("\n", "<br>") for text in first]
    if row.copy:
        lost = f", which has lost, among others, {row.lost}" if row.lost else ""
        first[1] += f"<br>*In our copy{lost}:* {_verbatim(row.copy)}"
    return [*first, "<br>".join(measured), change.replace("<", "&lt;"), picture]


def _verbatim(copy: str) -> str:
    """The characters of our copy, as code, so that none of them is markup."""
    text = copy.replace("`", "'").replace("|", "\\|")
    return f"`{text}`"


def evidence(row: Verdict, docs: Path) -> str:
    """In brackets, how many lines about a claim could have contradicted it and do not, and their largest ratio.

    Where a line has a share of a radius, that is a median over runs, and the words say so. ValueError where there are
    none, one contradicts the claim, or the largest ratio asks for another word.
    """
    word = next((word for word in row.both_words if word in (REACHED, NOT_CONTRADICTED)), "")
    if not word:
        return ""
    ratios, over_runs = [], ""
    for study in dict.fromkeys(pattern.partition(": ")[0] for pattern in row.rows):
        for statement, _, measured, here in lines_of(study, docs):
            if not row.about(study, statement) or here not in ("yes", "**no**"):
                continue
            ratio = re.search(r"([\d.]+) of (?:it|the bound|the (radius))\b", measured)
            if here == "**no**" or not ratio:
                raise ValueError(f"{row.number}: {word}: {study}: {statement!r} has {here}, {measured}")
            ratios.append(float(ratio[1]))
            over_runs = "median " if ratio[2] else over_runs
    if not ratios or (max(ratios) >= NEAR) != (word == REACHED):
        raise ValueError(f"{row.number}: {word}: its lines have ratios {ratios}: {REACHED} is from {NEAR} on")
    instances = "1 instance" if len(ratios) == 1 else f"{len(ratios)} instances"
    return f" ({instances}; largest {over_runs}ratio {max(ratios):g})"


def lines_of(study: str, docs: Path) -> list[list[str]]:
    """The first four cells of every line of a study's table."""
    return [cells[:4] for cells in map(_cells, pages.study_text(study, docs).splitlines()) if len(cells) >= 4]


def useful_from(bound: Callable[[int], float]) -> int:
    """From how many plays on a bound that grows more slowly than T is below it, to one per cent."""
    low, high = 1, 2
    if bound(high) < high:
        raise ValueError("the bound is below T at once")
    while bound(high) >= high:
        low, high = high, 2 * high
    while high > 1.01 * low + 1:
        middle = (low + high) // 2
        low, high = (low, middle) if bound(middle) < middle else (middle, high)
    return high


def _quote_measurement(row: Verdict, docs: Path) -> str:
    """What the page of a study says about the row's statement."""
    for statement, _, measured, _ in lines_of(row.study, docs):
        if statement == row.statement:
            return measured
    raise ValueError(f"{row.number}: {pages.page_of(row.study, docs)} has no row {row.statement!r} of {row.study}")


def _cells(line: str) -> list[str]:
    """The cells of a line of a Markdown table, as they are written."""
    return [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]


def _line(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _seed_range(study: Study) -> str:
    """How many seeds the sweeps of a study have at full size, in brackets: the fewest and the most."""
    given = [one.settings["seeds"] for one in study.sweeps(True).values()]
    numbers = [x if isinstance(x, int) else len(x) for x in given]
    ends = dict.fromkeys(f"{x:,}" for x in (min(numbers), max(numbers))) if numbers else ()
    return f" ({' to '.join(ends)} seeds)" if ends else ""


def _audit(row: Verdict, docs: Path) -> str:
    """The audit of an algorithm, from the table of docs/privacy.md."""
    for line in (docs / "privacy.md").read_text(encoding="utf-8").splitlines():
        found = _cells(line)
        if len(found) == 8 and found[0] == f"`{row.audited}`":
            return f"audited: at least {found[6]} of a claimed ε of {found[3]} is spent (10⁶ runs, 95%)"
    raise ValueError(f"{row.number}: docs/privacy.md has no audit of {row.audited!r}")


if __name__ == "__main__":
    print("\n".join(map(str, write_verdicts(Path(__file__).resolve().parent, papers.all_studies()))))

"""What became of every numbered claim of the papers: the page docs/verdicts.md, and the word of each claim elsewhere.

The claims are in docs/verdicts.toml, with the lines of the studies' tables that are about each. From it are written the
page and the last column of the tables in docs/reproductions, so that a claim has one word. What was measured is not
written there: the page quotes those tables, and the audit's table in docs/privacy.md.

`python docs/verdicts.py` writes both, without running a study.
"""

import importlib
import re
import tomllib
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

import study_tables as pages

from jaxbandits import papers, theory
from jaxbandits.papers.study import CLAIM_COLUMNS, Study

PROVED, REACHED, NOT_CONTRADICTED = "proved or enumerated here", "reached", "not contradicted"
NOT_READABLE, NOT_SETTLED, NO_CLAIM = "cannot be read from our copy", "not settled", "no claim"
WORDS = (
    PROVED, REACHED, NOT_CONTRADICTED, "holds under a reading", "true from a range on", "fails",
    "fails; true of another algorithm", "cannot be decided", NOT_READABLE, NOT_SETTLED, NO_CLAIM,
)  # fmt: skip
NO_FIGURE_CHANGES = (PROVED, NOT_READABLE, NOT_SETTLED, NO_CLAIM)
NEAR = 0.5  # of its bound: an instance at this share of it has reached it
BEGIN, END = "<!-- verdicts: begin -->", "<!-- verdicts: end -->"
COUNTS = "<!-- counts: begin -->", "<!-- counts: end -->"
HEADINGS = ["", "the paper says", "verdict", "why, and under which reading", "measured", "what would change it", ""]


class Verdict(NamedTuple):
    """One numbered claim of a paper, and what became of it."""

    number: str  # as the paper numbers it
    claim: str  # in one line
    verdict: str  # one of WORDS
    ground: str  # why; the reading that makes it true; what forbids a decision
    lost: str = ""  # what our copy of the claim has lost
    would_change: str = ""  # the measurement that would have changed the word
    rows: tuple[str, ...] = ()  # "PAPER/FIGURE: statement" of what is measured about it; * is any text
    study: str = ""  # PAPER/FIGURE, of the line that is shown
    statement: str = ""  # that line
    picture: str = ""  # of that study
    bound: str = ""  # one of `BOUNDS`
    audited: str = ""  # an algorithm whose privacy was audited
    drawn: bool = True  # whether the line that is shown comes from seeds

    def about(self, study: str, statement: str) -> bool:
        """Whether a line of a study's table is about this claim."""
        patterns = (pattern.partition(": ")[::2] for pattern in self.rows)
        likes = (".*".join(map(re.escape, text.split("*"))) for name, text in patterns if name == study)
        return any(re.fullmatch(like, statement) for like in likes)


EPSILON, DELTA, ARMS, EXPERTS = 0.1, 1e-5, (8,), (3, 16)  # the sizes of `private-adversarial/price-of-privacy`
OF_ARMS = (partial(theory.arms_bounds, *ARMS, epsilon=EPSILON, corrected=False), f"K = {ARMS[0]}, ε = {EPSILON}")
OF_EXPERTS = (
    partial(theory.experts_bounds, *EXPERTS, epsilon=EPSILON, delta=DELTA),
    f"K = {EXPERTS[0]}, N = {EXPERTS[1]}, ε = {EPSILON}",
)
# name -> the bounds with their constants as a function of T, and the sizes in words
BOUNDS: dict[str, tuple[Callable[..., dict[str, float]], str]] = dict.fromkeys(("htinf", "exp3", "ftpl"), OF_ARMS)
BOUNDS |= dict.fromkeys(("bandit_to_experts", "local_exp4", "batched_exp4"), OF_EXPERTS)


def read_verdicts(docs: Path) -> dict[str, dict]:
    """{paper: its record in docs/verdicts.toml: title, numbered, and claim, a list of `Verdict`}."""
    found = tomllib.loads((docs / "verdicts.toml").read_text(encoding="utf-8"))["paper"]
    return {paper["name"]: paper | {"claim": [Verdict(**claim) for claim in paper["claim"]]} for paper in found}


def word_finder(study: str, docs: Path) -> Callable[[str], str]:
    """A function of a line's statement: the claim it is about and its word, or nothing. ValueError where it has two."""
    claims = [(name, row) for name, paper in read_verdicts(docs).items() for row in paper["claim"]]

    def about(statement: str) -> str:
        found = [(paper, row) for paper, row in claims if row.about(study, statement)]
        if len(found) > 1:
            numbers = ", ".join(row.number for _, row in found)
            raise ValueError(f"docs/verdicts.toml: {numbers} name {study}: {statement!r}: leave one of them")
        of_paper = study.split("/")[0]
        names = [row.number if paper == of_paper else f"{paper}, {row.number}" for paper, row in found]
        return f"{names[0]}: {found[0][1].verdict}" if found else ""

    return about


def text_with_words(study: str, docs: Path) -> str:
    """What stands between a study's marks, with the word that each claim has now."""
    about = word_finder(study, docs)
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
    for (begin, end), new in {COUNTS: verdict_counts(docs), (BEGIN, END): verdict_tables(docs, studies)}.items():
        text = f"{text.split(begin)[0]}{begin}\n{new}\n{end}{text.split(end)[1]}"
    page.write_text(text, encoding="utf-8")
    return list(
        dict.fromkeys([page, pages.write_overview(studies, docs), *(pages.page_of(name, docs) for name in studies)])
    )


def verdict_counts(docs: Path) -> str:
    """How many claims have each word, as Markdown."""
    said = [row.verdict for paper in read_verdicts(docs).values() for row in paper["claim"]]
    rows = [_line([f"of {len(said)} claims", ""]), _line(["---", "---:"])]
    return "\n".join([*rows, *(_line([word, f"{said.count(word)}"]) for word in WORDS if word in said)])


def verdict_tables(docs: Path, studies: dict[str, Study]) -> str:
    """A heading, a count and a table for every paper, as Markdown. ValueError where `faults` finds one."""
    if found := faults(docs, studies):
        raise ValueError(f"docs/verdicts.toml: {'; '.join(found)}")
    parts = []
    for paper in read_verdicts(docs).values():
        claims = paper["claim"]
        counts = "; ".join(f"{n} {word}" for word in WORDS if (n := sum(row.verdict == word for row in claims)))
        table = [
            _line(HEADINGS),
            _line(["---"] * len(HEADINGS)),
            *(_line(verdict_cells(row, docs, studies)) for row in claims),
        ]
        about = f"{paper_source(paper['name'])}\n\n{len(claims)} claims. {counts}."
        parts.append(f"## {paper['title']}\n\n{about}\n\n" + "\n".join(table))
    return "\n\n".join(parts)


def paper_source(name: str) -> str:
    """Authors, title and where a paper is, from the first line of its studies' package; an arXiv number is a link."""
    first = (importlib.import_module(f"jaxbandits.papers.{name.replace('-', '_')}").__doc__ or "").splitlines()[0]
    return re.sub(r"arXiv ([\d.]+\d)", r"[\g<0>](https://arxiv.org/abs/\1)", first)


KINDS = "Theorem|Corollary|Lemma|Proposition|Figure|Table|Remark"
NAMED = re.compile(rf"({KINDS})s? ([A-Z0-9]+(?:\.[0-9]+)*)")
UNCONTRADICTED = (PROVED, REACHED, NOT_CONTRADICTED, "cannot be decided")
OF_PRIVATE_ALGORITHMS = "Lemma 5.1"  # a bound on regret, of algorithms that are private already


def faults(docs: Path, studies: dict[str, Study]) -> list[str]:
    """What rows leave out of what their papers number and our pages name, and where they go against their lines."""
    lines = {name: [x for x in lines_of(name, docs) if x[1] not in (CLAIM_COLUMNS[1], "---")] for name in studies}
    records, found, covered = read_verdicts(docs), list[str](), set[str]()
    claims = [row for record in records.values() for row in record["claim"]]
    for paper, record in records.items():
        rows, file = record["claim"], f"{paper.replace('-', '_')}.md"
        own = {number for row in rows for number in numbers_of(row.number)} | {row.number for row in rows}
        sources = " ".join(study.source for name, study in studies.items() if name.startswith(paper))
        named = named_in(docs / "reproductions" / file) | set(map(" ".join, NAMED.findall(sources)))
        found += [f"{paper}: no row is about {x}" for x in sorted(named | set(record["numbered"])) if x not in own]
        if len(set(record["numbered"]) & named_in(docs / "formulas" / file)) < 4:
            found.append(f"{paper}: docs/formulas/{file} speaks of other statements")
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
        about = row._replace(rows=(pattern,)).about
        here = {line[3] for name, of_study in lines.items() for line in of_study if about(name, line[0])}
        found += [] if here else [f"no line is {pattern!r}"]
        said |= here
    contradicted, confirmed, fails = "**no**" in said, "yes" in said, row.verdict.startswith("fails")
    private = re.search("-(locally )?private", row.claim) and row.number != OF_PRIVATE_ALGORITHMS
    wrong = {
        "claim or ground is empty": not (row.claim and row.ground),
        "study and statement go together": bool(row.study) != bool(row.statement),
        "it fails by a text that our copy lost": fails and row.lost,
        "ground: say in `lost` what our copy has lost": re.search(r"lost in our copy|garbled", row.ground),
        "privacy and regret are two rows": private and "regret" in row.claim,
        f"{row.verdict}, and a line says no": row.verdict in UNCONTRADICTED and contradicted,
        f"{row.verdict}, and a line says yes": row.verdict == "cannot be decided" and confirmed,
        f"{row.verdict}, and no line says no": fails and row.rows and not contradicted,
    }
    return [*found, *(words for words, is_so in wrong.items() if is_so)]


def named_in(page: Path) -> set[str]:
    """The numbered statements that a page names."""
    return set(map(" ".join, NAMED.findall(page.read_text(encoding="utf-8"))))


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
    if row.verdict not in WORDS:
        raise ValueError(f"{row.number}: verdict = {row.verdict!r}: give one of {', '.join(WORDS)}")
    if bool(row.would_change) == (row.verdict in NO_FIGURE_CHANGES):
        what = "name the figure that would have changed it" if not row.would_change else "no figure would change it"
        raise ValueError(f"{row.number}: {row.verdict}, would_change = {row.would_change!r}: {what}")
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
    ground = row.ground
    if row.bound:
        bounds, sizes = BOUNDS[row.bound]
        plays = useful_from(lambda horizon: bounds(horizon=horizon)[row.bound])
        step = 10 ** max(0, len(str(plays)) - 2)
        plays += -plays % step  # two digits, rounded up
        ground += f" With constants the bound is below T only from {plays:,} plays on ({sizes})."
    claim = f"{row.claim} *[lost in our copy: {row.lost}]*" if row.lost else row.claim
    word = f"**{row.verdict}**{evidence(row, docs)}"
    first = [text.replace("|", "\\|").replace("<", "&lt;") for text in (row.number, claim, word, ground)]
    return [*first, "<br>".join(measured), row.would_change.replace("<", "&lt;"), picture]


def evidence(row: Verdict, docs: Path) -> str:
    """In brackets, how many lines about a claim could have contradicted it and do not, and their largest ratio.

    ValueError where there are none, one contradicts the claim, or the largest ratio asks for another word.
    """
    if row.verdict not in (REACHED, NOT_CONTRADICTED):
        return ""
    ratios = []
    for study in dict.fromkeys(pattern.partition(": ")[0] for pattern in row.rows):
        for statement, _, measured, here in lines_of(study, docs):
            if not row.about(study, statement) or here not in ("yes", "**no**"):
                continue
            ratio = re.search(r"([\d.]+) of (?:it|the bound|the radius)\b", measured)
            if here == "**no**" or not ratio:
                raise ValueError(f"{row.number}: {row.verdict}: {study}: {statement!r} has {here}, {measured}")
            ratios.append(float(ratio[1]))
    if not ratios or (max(ratios) >= NEAR) != (row.verdict == REACHED):
        raise ValueError(f"{row.number}: {row.verdict}: its lines have ratios {ratios}: {REACHED} is from {NEAR} on")
    instances = "1 instance" if len(ratios) == 1 else f"{len(ratios)} instances"
    return f" ({instances}; largest ratio {max(ratios):g})"


def lines_of(study: str, docs: Path) -> list[list[str]]:
    """The first four cells of every line of a study's table."""
    return [cells[:4] for cells in map(_cells, pages.study_text(study, docs).splitlines()) if len(cells) >= 4]


def useful_from(bound: Callable[[int], float]) -> int:
    """From how many plays on a bound that grows more slowly than T is below it, to one per cent."""
    low, high = 1, 2
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

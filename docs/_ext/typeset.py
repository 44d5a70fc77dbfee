"""Formulas of docstrings, typeset on the site.

A docstring is read in a terminal first, by `help` and in editors: its formulas are plain text, such as
``mean + sqrt(2 ln t / n)``. Here a parser finds what is a whole formula in the text of the reference, and makes TeX of
it. What it cannot read to its end, or what touches an operator that it cannot read, stays as it is.
"""

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from docutils import nodes
from sphinx import addnodes
from sphinx.ext.autosummary import autosummary_table
from sphinx.transforms import SphinxTransform
from sphinx.util import logging

GREEK = (
    "alpha beta gamma delta eta theta lambda mu nu pi rho sigma tau phi iota kappa psi omega xi zeta "
    "Gamma Delta Theta Lambda Sigma Phi Psi Omega Upsilon"
).split()
SYMBOLS = {name: rf"\{name}" for name in GREEK}
SYMBOLS |= {"epsilon": r"\varepsilon", "eps": r"\varepsilon", "lam": r"\lambda", "inf": r"\infty"}
FUNCTIONS = {name: rf"\{name}" for name in ("log", "ln", "exp", "max", "min", "det", "sin", "cos", "tanh")}
FUNCTIONS |= {"sqrt": r"\sqrt", "sum": r"\sum", "argmax": r"\arg\max", "argmin": r"\arg\min", "log2": r"\log_2"}
ENCLOSE = {"ceil": (r"\lceil ", r" \rceil"), "floor": (r"\lfloor ", r" \rfloor")}
RELATIONS = {"=": "=", "<": "<", ">": ">", "<=": r"\le", ">=": r"\ge"}
BINARY = {"+": "+", "-": "-", "/": "/", "*": r"\cdot", "mod": r"\bmod"}
OPERATORS = {*BINARY, *RELATIONS, "^"}
OPENING = ("(", "[", "{", "|", "<")
TOKEN = re.compile(
    r"(?P<number>\d+(?:,\d{3})+(?!\d)|\d+(?:\.\d+)?(?:e[+-]?\d+)?)"
    r"|(?P<name>[A-Za-z]\w*(?:(?<=[a-z]{2})[-'/][A-Za-z]\w*)*~?(?:'(?!\w))*(?:\*(?=[\s,.;:)\]^]|$))?)"
    r"|(?P<sign><=|>=|[-+*/^=<>()\[\]{}|,])"
    r"|(?P<space>\s+)|(?P<other>.)",
    re.DOTALL,
)
SHORTEST = 3  # tokens of a formula
INDEXED = re.compile(rf"[A-Za-z]_(\w|{'|'.join(SYMBOLS)})?")  # a letter with a subscript: a formula alone
# what MathJax cannot set, or sets as something else: an index without its text, or two; a name's underscore as an index
FAULT = re.compile(
    r"(?<!\\)[_^]\s*(?:[}&$]|$)|(?<!\\)_(\w|\{[^{}]*\})\s*_|\\math(?:rm|tt)\{[^{}]*(?<!\\)[_^]|\\(?:min|max)_\{\\mathrm"
)
LONG = 30  # letters of one that may be broken
BREAK = "\n"  # where a long formula may go on in the next line


class Token(NamedTuple):
    kind: str
    text: str
    start: int
    end: int
    # whether a space stands before it
    apart: bool


class NoFormula(Exception):
    pass


def tokens(text: str) -> list[Token]:
    found, apart = [], True
    for match in TOKEN.finditer(text):
        kind = match.lastgroup or ""
        if kind != "space":
            found.append(Token(kind, match[0], match.start(), match.end(), apart))
        apart = kind == "space"
    return found


class Parser:
    """Reads the longest formula from a token on, and writes it as TeX.

    named: arguments of the function that the text is about. quantities: words that stand beside an operator somewhere
    in the text, which are quantities inside of brackets too.
    """

    def __init__(self, found: list[Token], named: set[str], quantities: set[str]) -> None:
        self.tokens, self.named, self.quantities = found, named, quantities
        # depth: of brackets; called: whether the innermost are those of a function
        self.at, self.depth, self.called = 0, 0, False

    def formula(self, start: int) -> tuple[str, int]:
        """TeX, and the place behind its last token."""
        self.at, self.depth, self.called = start, 0, False
        return self.relation(), self.at

    def peek(self, ahead: int = 0) -> Token:
        place = self.at + ahead
        return self.tokens[place] if place < len(self.tokens) else Token("end", "", 0, 0, True)

    def chain(self, part: Callable[[], str], signs: dict[str, str]) -> str:
        """Parts with signs between; a sign without a part behind it ends the chain before it."""
        tex = part()
        while (sign := self.peek().text) in signs and self.binary():
            place, breaks = self.at, sign in RELATIONS or sign in ("+", "-")
            self.at += 1
            try:
                tex += f" {signs[sign]}{BREAK if breaks and not self.depth else ' '}{part()}"
            except NoFormula:
                self.at = place
                break
        return tex

    def binary(self) -> bool:
        """Whether a sign stands between two parts: no bracket, no sign of the next number, no hyphen or arrow."""
        before, after = self.peek().apart, self.peek(1).apart
        if self.peek().text in ("<", ">", "="):
            return before and after
        word = self.peek(1).kind == "name" and len(self.peek(1).text) > 1 and self.peek(1).text not in SYMBOLS
        return self.peek().text != "-" or (before == after and (before or not word))

    def relation(self) -> str:
        return self.chain(self.sum, RELATIONS)

    def sum(self) -> str:
        return self.chain(self.product, BINARY)

    def product(self) -> str:
        """Factors with nothing but a space between."""
        tex = ""
        if self.peek().text == "-" and not self.peek(1).apart:
            tex, self.at = "-", self.at + 1
        tex += self.power()
        while self.peek().kind in ("number", "name") or self.peek().text in OPENING:
            place = self.at
            if self.peek().text == "|" and not self.opens_bar():
                break
            try:
                more = self.power()
            except NoFormula:
                self.at = place
                break
            part = {one.text for one in self.tokens[place : self.at]}
            if (self.tokens[place].text == "(" and part & {*RELATIONS}) or re.match(r"-?\[[^]]*,", tex):
                self.at = place  # a remark in brackets, or the shape of what follows
                break
            tex += rf"\, {more}"
        return tex

    def opens_bar(self) -> bool:
        """Whether a bar has a space before it and none behind, as `2 |x|`, or an expectation's letter."""
        return (self.peek().apart or self.tokens[self.at - 1].text == "E") and not self.peek(1).apart

    def power(self) -> str:
        tex = self.factor()
        while self.peek().text == "^":
            self.at += 1
            tex = f"{tex}^{{{self.exponent()}}}"
        return tex

    def exponent(self) -> str:
        sign = ""
        if self.peek().text == "-":
            sign, self.at = "-", self.at + 1
        if self.peek().text == "(":
            return sign + self.inside("(", ")")
        return sign + self.factor()

    def inside(self, opening: str, closing: str, called: bool = False) -> str:
        """What stands between two signs, without them."""
        self.take(opening)
        self.depth += 1
        outside, self.called = self.called, called
        body = self.relation()
        while (sign := self.peek().text) in (",", ";"):
            self.at += 1
            body += f"{sign} {self.relation()}"
        self.depth, self.called = self.depth - 1, outside
        self.take(closing)
        return body

    def take(self, signs: str) -> str:
        token = self.peek()
        if token.kind != "sign" or token.text not in signs.split():
            raise NoFormula
        self.at += 1
        return token.text

    def factor(self) -> str:
        token = self.peek()
        if token.kind == "number":
            self.at += 1
            return number(token.text)
        if token.kind == "name":
            return self.name(token)
        if token.text in ("(", "[", "{"):
            return self.bracket(token.text)
        if token.text == "|":
            return rf"|{self.inside('|', '|')}|"
        if token.text == "<" and not self.peek(1).apart:
            return rf"\langle {self.inside('<', '>')} \rangle"
        raise NoFormula

    def bracket(self, opening: str) -> str:
        depth, place, called = self.depth, self.at, self.called
        try:
            body = self.inside(opening, "}" if opening == "{" else ") ]")
        except NoFormula:
            self.depth, self.at, self.called = depth, place, called
            raise
        closing = self.tokens[self.at - 1].text
        return "".join("\\" * (part in "{}") + part for part in (opening, body, closing))

    def name(self, token: Token) -> str:
        text, following = token.text, self.peek(1)
        called = following.text in ("(", "[") and not following.apart
        head = text.split("_")[0]
        if re.fullmatch("[A-Za-z]_", text) and called and following.text == "(":
            self.at += 1
            return f"{text}{{{self.inside('(', ')')}}}"  # n_(m + 1)
        if text in ENCLOSE and called:
            self.at += 1
            left, right = ENCLOSE[text]
            return f"{left}{self.inside('(', ')')}{right}"
        if head in FUNCTIONS and len(text) - len(head) < 5:  # max_a, and not max_horizon
            self.at += 1
            below = f"_{{{subscript(text[len(head) + 1 :])}}}" if "_" in text else ""
            if head == "sqrt":
                return rf"\sqrt{{{self.inside('(', ')') if self.peek().text == '(' else self.factor()}}}"
            if self.peek().text == "^":
                self.at += 1
                below += f"^{{{self.exponent()}}}"
            if head == "sum" and not self.is_quantity(self.peek(), beside=False) and self.peek().kind == "name":
                raise NoFormula  # `sum total + new`
            if self.peek().kind in ("number", "name") or self.peek().text in OPENING:
                argument = self.power()
                if head == "sum" and ", " in argument:
                    raise NoFormula
                return FUNCTIONS[head] + below + (argument if argument[0] in "([" else f" {argument}")
            raise NoFormula
        if not (called or self.is_quantity(token)):
            raise NoFormula
        self.at += 1
        tex = symbol(text, self.named)
        if called:
            closing = ")" if following.text == "(" else "]"
            tex += f"{following.text}{self.inside(following.text, closing, called=True)}{closing}"
        return tex

    def is_quantity(self, token: Token, beside: bool = True) -> bool:
        """Whether a name is one of a formula, not a word of the sentence. beside: by its neighbours, too."""
        text = re.sub(r"[~'*]+$", "", token.text)
        head = text.split("_")[0]
        if len(head) <= 1 or re.fullmatch(r"[A-Za-z]\d", text) or head in SYMBOLS or text in self.named:
            return True
        if re.search(r"[-'/]", text):
            return False
        place = self.tokens.index(token, self.at)
        neighbours = [self.tokens[i] for i in (place - 1, place + 1) if 0 <= i < len(self.tokens)]
        operator = any(is_operator(self.tokens, i) for i in (place - 1, place + 1))
        barred = [one.text for one in neighbours] == ["|", "|"]
        argument = self.called and all(one.text in ("(", ",", ")") for one in neighbours)
        return (
            (beside and (operator or barred or argument)) or "_" in text or (self.depth > 0 and text in self.quantities)
        )


def number(text: str) -> str:
    mantissa, _, exponent = text.partition("e")
    digits = mantissa.replace(",", "{,}")
    if not exponent:
        return digits
    power = f"10^{{{int(exponent)}}}"
    return power if digits == "1" else rf"{digits} \cdot {power}"


def subscript(text: str) -> str:
    return SYMBOLS.get(text) or (text if len(text) == 1 or text.isdigit() else rf"\mathrm{{{text}}}")


def symbol(text: str, named: set[str]) -> str:
    """A quantity, with what stands below and above it."""
    marks = re.search(r"[~'*]*$", text)[0]
    text = text.removesuffix(marks)
    head, _, below = text.partition("_")
    if text in named and len(text) > 1 and text not in SYMBOLS:
        tex = rf"\mathtt{{{text}}}".replace("_", r"\_")
    elif re.fullmatch(r"[A-Za-z]\d+", text):
        tex = f"{text[0]}_{{{text[1:]}}}"
    elif below and (len(below) <= 3 or len(head) == 1 or head in SYMBOLS) and "_" not in below:
        base = symbol(head, named)
        tex = f"{base}_{{{subscript(below)}}}"
    elif below:
        tex = rf"\mathtt{{{text}}}".replace("_", r"\_")
    else:
        tex = SYMBOLS.get(text) or (text if len(text) == 1 else rf"\mathrm{{{text}}}")
    if "~" in marks:
        tex = rf"\tilde{{{tex}}}"
    return tex + marks.count("'") * "'" + ("^{*}" if "*" in marks else "")


def is_operator(found: list[Token], at: int) -> bool:
    """Whether a token is an operator between two parts."""
    if not 0 <= at < len(found) or found[at].text not in OPERATORS:
        return False
    after = at + 1 == len(found) or found[at + 1].apart
    return (found[at].apart and after) if found[at].text in ("<", ">", "=", "-") else True


def formulas(text: str, named: set[str] = frozenset()) -> Iterator[tuple[int, int, str]]:
    """Where a text has formulas, and their TeX."""
    found = tokens(text)
    quantities = {
        one.text
        for i, one in enumerate(found)
        if one.kind == "name" and (is_operator(found, i - 1) or is_operator(found, i + 1))
    }
    parser, i = Parser(found, set(named), quantities), 0
    while i < len(found):
        try:
            tex, end = parser.formula(i)
        except NoFormula:
            i += 1
            continue
        start, end = i, trimmed(found, i, end)
        while end - start > 1 and article(found, start, set(named)):
            start += 1
        i = end
        short = end - start < SHORTEST and not any(INDEXED.fullmatch(one.text) for one in found[start:end])
        if short or touched(found, start, end):
            continue
        if start != i or end != parser.at:
            try:
                tex, after = Parser(found[:end], set(named), quantities).formula(start)
            except NoFormula:
                continue
            if after != end:
                continue
        if worth(found[start:end]):
            yield found[start].start, found[end - 1].end, tex


def article(found: list[Token], at: int, named: set[str]) -> bool:
    """Whether a first token belongs to the sentence: `a`, or a word that no operator follows."""
    token, following = found[at], found[at + 1]
    if token.kind != "name" or following.text in OPERATORS or not following.apart:
        return False
    word = len(token.text) > 1 and token.text not in SYMBOLS and token.text not in FUNCTIONS and "_" not in token.text
    return token.text in ("a", "A") or (word and not re.fullmatch(r"[A-Za-z]['~]|[A-Za-z]\d", token.text))


def trimmed(found: list[Token], start: int, end: int) -> int:
    """The end without an article, as in `2^k a play`."""
    last = found[end - 1]
    if end - start > 1 and last.text in ("a", "A") and found[end - 2].text not in OPERATORS:
        if end < len(found) and found[end].kind == "name":
            return end - 1
    return end


def touched(found: list[Token], start: int, end: int) -> bool:
    """Whether a formula is a part of a larger one that could not be read, or ends with a percentage."""
    before = found[start - 1] if start else None
    behind, next_one = (found[i] if i < len(found) else None for i in (end, end + 1))
    operators = OPERATORS - {"mod"}
    if before and (is_operator(found, start - 1) or (before.text in ("|", "_", ".") and not found[start].apart)):
        return True
    if behind and (is_operator(found, end) or (behind.text in ("%", *OPENING) and not behind.apart)):
        return True
    if behind and behind.text in FUNCTIONS and next_one and next_one.text in OPENING:
        return True
    if behind and next_one and behind.text in OPENING and mathematical(next_one):
        return True
    around = enclosing(found, start)
    if around is None:
        return False
    outside = found[around - 1] if around else None
    closing = next((i for i in range(end, len(found)) if found[i].text in (")", "]", "}")), None)
    after = found[closing + 1] if closing is not None and closing + 1 < len(found) else None
    return bool(
        (outside and (outside.text in operators or not found[around].apart or mathematical(outside)))
        or (after and after.text in operators)
    )


def enclosing(found: list[Token], at: int) -> int | None:
    """The bracket that is open where a token stands."""
    depth = 0
    for i in range(at - 1, -1, -1):
        depth += (found[i].text in ("(", "[", "{")) - (found[i].text in (")", "]", "}"))
        if depth > 0:
            return i
    return None


def mathematical(token: Token) -> bool:
    """Whether a token alone looks like a part of a formula."""
    head = token.text.split("_")[0]
    return token.kind == "number" or head in FUNCTIONS or head in SYMBOLS or (token.kind == "name" and len(head) == 1)


def worth(part: list[Token]) -> bool:
    """Whether typesetting shows more than the text does."""
    texts = {one.text for one in part}
    if "sqrt" in texts or any(INDEXED.fullmatch(text) for text in texts):
        return True
    if "^" not in texts and not any(one.kind == "name" for one in part):
        return False
    heads = {re.sub(r"[~'*]+$|_.*", "", one.text) for one in part if one.kind == "name"}
    called = heads & {*FUNCTIONS, *ENCLOSE} and "(" in texts
    symbols = heads & {*FUNCTIONS, *ENCLOSE, *SYMBOLS} or any(len(head) == 1 for head in heads)
    return bool(texts & {"^", "/", "*", "+"} or called or (symbols and texts & {*RELATIONS, "-"}))


def fault(tex: str) -> str:
    """What is wrong with TeX that would be set wrongly, or not at all; nothing where it is good."""
    bare = re.sub(r"\\[\\{}]", "", tex)
    if bare.count("{") != bare.count("}"):
        return "braces do not match"
    return found[0] if (found := FAULT.search(tex)) else ""


class Typeset(SphinxTransform):
    """Replace the formulas in the descriptions of functions and classes, and in the tables that list them."""

    default_priority = 500  # before the domains count which pages have formulas

    def apply(self, **more) -> None:
        for description in list(self.document.findall(addnodes.desc_content)):
            for node in list(description.findall(nodes.Text)):
                if within(node, description):
                    self.replace(node, arguments(description.parent))
        for table in list(self.document.findall(autosummary_table)):
            for node in list(table.findall(nodes.Text)):
                if within(node, table):
                    self.replace(node, set())
        for node in self.document.findall(lambda one: isinstance(one, (nodes.math, nodes.math_block))):
            if found := fault(node.astext()):
                logging.getLogger(__name__).warning("formula %r: %s", node.astext(), found, location=node)

    def replace(self, node: nodes.Text, named: set[str]) -> None:
        text, at, parts = node.astext(), 0, []
        for start, end, tex in formulas(text, named):
            pieces = tex.split(BREAK) if end - start >= LONG else [tex]
            parts.append(nodes.Text(text[at:start]))
            for piece in pieces[:-1]:
                parts += [nodes.math("", f"{piece}{{}}"), nodes.Text(" ")]
            parts.append(nodes.math("", pieces[-1]))
            at = end
        if parts:
            place = node.parent.index(node)
            node.parent[place : place + 1] = [*parts, nodes.Text(text[at:])]


def arguments(description: addnodes.desc) -> set[str]:
    """Names of arguments in a description's signature."""
    return {
        one.astext().split("=")[0].split(":")[0].strip("* ") for one in description.findall(addnodes.desc_parameter)
    }


def within(node: nodes.Text, description: nodes.Element) -> bool:
    """Whether a text is a sentence of this description: no code, link, heading or term."""
    above = node.parent
    while above is not description:
        if above is None or isinstance(
            above,
            (nodes.literal, nodes.literal_block, nodes.doctest_block, nodes.reference, nodes.rubric, nodes.strong,
             nodes.emphasis, nodes.field_name, nodes.math, nodes.raw, addnodes.pending_xref, addnodes.desc_signature,
             addnodes.desc_content),
        ):  # fmt: skip
            return False
        above = above.parent
    return True


def setup(app):
    app.add_transform(Typeset)
    return {"parallel_read_safe": True, "parallel_write_safe": True}

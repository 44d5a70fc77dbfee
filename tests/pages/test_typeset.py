"""Formulas in docstrings become TeX on the site; sentences stay sentences."""

import importlib.util
import inspect
import re
from pathlib import Path

import pytest

import jaxbandits as jb

spec = importlib.util.spec_from_file_location("typeset", Path(__file__).parents[2] / "docs/_ext/typeset.py")
typeset = importlib.util.module_from_spec(spec)
spec.loader.exec_module(typeset)


def shown(text: str, *named: str) -> str:
    """A text with its formulas as TeX between dollars."""
    for start, end, tex in reversed(list(typeset.formulas(text, set(named)))):
        text = f"{text[:start]}${tex.replace(typeset.BREAK, ' ')}${text[end:]}"
    return text


def test_formulas_are_typeset():
    for text, wanted in (
        ("index mean + sqrt(2 ln t / N): play", r"index $\mathrm{mean} + \sqrt{2\, \ln t / N}$: play"),
        ("float, min(1e-5, 1 / horizon).", r"float, $\min(10^{-5}, 1 / \mathtt{horizon})$."),
        ("for a half-width of 2^-l.", "for a half-width of $2^{-l}$."),
        ("of R^(dim - 1) and", r"of $R^{\mathtt{dim} - 1}$ and"),
        ("largest <x, y> + w_t sqrt(x' P x) is", r"largest $\langle x, y \rangle + w_{t}\, \sqrt{x'\, P\, x}$ is"),
        ("P = (V + rho I)^-1 and theta = P u", r"$P = (V + \rho\, I)^{-1}$ and $\theta = P\, u$"),
        ("b = floor(g log^2(d / 2) / W^2)", r"$b = \lfloor g\, \log^{2}(d / 2) / W^{2} \rfloor$"),
        ("A reward is exp(m + sigma Z), Z normal", r"A reward is $\exp(m + \sigma\, Z)$, Z normal"),
        ("known: E|X|^k <= u, and means", r"known: $E\, |X|^{k} \le u$, and means"),
        ("q with N d(mean, q) <= ln t, d the", r"q with $N\, d(\mathrm{mean}, q) \le \ln t$, d the"),
        ("gap D has n = lambda / D^2 pulls", r"gap D has $n = \lambda / D^{2}$ pulls"),
        ("of T = 20,000 / (2 x) plays", r"of $T = 20{,}000 / (2\, x)$ plays"),
        ("at most d ln(1 + T / (d ridge)) and", r"at most $d\, \ln(1 + T / (d\, \mathtt{ridge}))$ and"),
        ("exactly sqrt(2 rho)-GDP;", r"exactly $\sqrt{2\, \rho}$-GDP;"),
        ("theta~ = V0^-1 u once", r"$\tilde{\theta} = V_{0}^{-1}\, u$ once"),
        ("draws M max_a [n r* + c]", r"draws $M\, \max_{a}[n\, r^{*} + c]$"),
        ("n_(m+1) is alpha n_m, and n_1 first.", r"$n_{m + 1}$ is $\alpha\, n_{m}$, and $n_{1}$ first."),
        ("n d_eps(p, q) by D_m(p, q; n), which", r"$n\, d_{\varepsilon}(p, q)$ by $D_{m}(p, q; n)$, which"),
        ("while N < ceil(min_pulls ln t).", r"while $N < \lceil \mathtt{min\_pulls}\, \ln t \rceil$."),
        ("and min_eigenvalue 2^(i - 1)", r"and $\mathtt{min\_eigenvalue}\, 2^{i - 1}$"),  # no argument of its own
    ):  # fmt: skip
        assert shown(text, "horizon", "dim", "ridge", "min_pulls") == wanted


def test_sentences_and_halves_stay():
    for text in (
        "The seed, in [0, 5], of a play.",
        "Clopper-Pearson bounds and/or a mean; 1/2 of them (at most 3%).",
        "Asi, Raman and Talwar 2025, Theorem 3.5; 200 seeds.",
        "An arm's sum total and its epsilon, delta or T.",
        "Called with epsilon=None or x=2, from a to b.",
        # parts of what cannot be read to its end
        "alpha + sqrt(d) / ",
        "1 - (1 - alpha)^(its size)",
        "+ 2 sqrt(x) / n",
        "sigma / (1 - 2 alpha) (sqrt(4 ln t / N) + ",
        "3 + x%",
        "x is 2 T (recalled) or y (the mean)",
        "",
    ):
        assert shown(text, "epsilon", "delta") == text


def test_long_formulas_break_between_their_parts_and_help_keeps_its_text():
    ((_, _, tex),) = typeset.formulas("w = L B + R sqrt(2 x + 1) t^(1 + k)")
    assert tex.split(typeset.BREAK) == ["w =", r"L\, B +", r"R\, \sqrt{2\, x + 1}\, t^{1 + k}"]
    assert r"\sqrt" not in jb.algorithms.ucb1.__doc__ and "sqrt(" in jb.algorithms.moss.__doc__


@pytest.mark.parametrize(
    "tex", [r"\mathrm{n_}(m)", r"\min_{\mathrm{pulls}} t", r"\mathrm{a_b}", "x^{", "x_1_2", "x_", "{x^}"]
)
def test_tex_that_would_be_set_wrongly_is_found(tex):
    assert typeset.fault(tex)


def test_all_docstrings_become_good_tex():
    assert typeset.fault(r"\mathtt{min\_pulls}\, \max_{a} x_{1}^{2} + \{n_i\} \mathrm{mean}_{i}") == ""
    texts = []
    for room in (jb.algorithms, jb.environments, jb.adversaries, jb.theory, jb.estimators, jb.learners, jb.mechanisms):
        for value in (getattr(room, name) for name in room.__all__):
            named = set(inspect.signature(value).parameters) if inspect.isfunction(value) else set()
            sentences = re.split(r"`[^`]*`|\n\s*\n|\n *\w+:", inspect.getdoc(value) or "")
            texts += [tex for text in sentences for *_, tex in typeset.formulas(" ".join(text.split()), named)]
    assert len(texts) > 500 and [tex for tex in texts for part in tex.split(typeset.BREAK) if typeset.fault(part)] == []

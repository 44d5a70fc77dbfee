"""Studies across the papers, see docs/reproductions/across.md."""

from jaxbandits.papers.across import before_after, believed, counting, coverage, named_epsilon

STUDIES = {
    "named-epsilon": named_epsilon.STUDY,
    "coverage": coverage.STUDY,
    "believed": believed.STUDY,
    "counting": counting.STUDY,
    "before-after": before_after.STUDY,
}

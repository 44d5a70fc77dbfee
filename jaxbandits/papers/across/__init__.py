"""Studies across the papers, see docs/reproductions/across.md."""

from jaxbandits.papers.across import believed, coverage, named_epsilon

STUDIES = {
    "named-epsilon": named_epsilon.STUDY,
    "coverage": coverage.STUDY,
    "believed": believed.STUDY,
}

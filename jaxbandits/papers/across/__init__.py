"""Studies across the papers, see docs/reproductions/across.md."""

from jaxbandits.papers.across import (
    atlas,
    before_after,
    believed,
    better_counting,
    coverage,
    named_epsilon,
    plain_thompson,
    trust,
    worst_case,
)

STUDIES = {
    "named-epsilon": named_epsilon.STUDY,
    "coverage": coverage.STUDY,
    "believed": believed.STUDY,
    "counting": better_counting.STUDY,
    "before-after": before_after.STUDY,
    "trust": trust.STUDY,
    "atlas": atlas.STUDY,
    "plain-thompson": plain_thompson.STUDY,
    "worst-case": worst_case.STUDY,
}

"""What is said of wrong parts stays as it is, word for word: `wrong_parts.json`.

PYTHONPATH=tests python tests/parts/test_wrong_parts.py writes the file anew, after a text was changed on purpose
"""

import json
from pathlib import Path

import jax
import pytest
from dealt import dealt
from wrong_parts import said_by_check, said_by_sweep, wrong_parts

SAID = Path(__file__).with_name("wrong_parts.json")
GROUPS = 8


def said_of(name: str) -> list[list[str]]:
    """What a sweep says of a part, and what a check does where that is not the same."""
    wrong = wrong_parts()[name]
    sweep, check = said_by_sweep(wrong), said_by_check(wrong)
    return [sweep] if _words(sweep) == _words(check) else [sweep, check]


def _words(texts: list[str]) -> list[str]:
    """Texts without who says them, where, and of whom."""
    found = []
    for text in texts:
        text = text.partition(": ")[2]
        for head in ("'own': ", "'own' ", "own: "):
            text = text.removeprefix(head)
        found.append(text.replace(" (<", ", <").replace(", <", " <").replace(")", "").replace(" ()", ""))
    return found


@pytest.mark.planted("a user's algorithm, environment or adversary", "a text that is lost or changed")
@pytest.mark.parametrize("group", dealt(range(GROUPS), 8))
def test_what_is_said_of_a_wrong_part(group):
    said = json.loads(SAID.read_text())
    assert list(said) == list(wrong_parts()) and len(said) > 600
    for name in list(said)[group::GROUPS]:
        assert said_of(name) == said[name], name


if __name__ == "__main__":
    jax.config.update("jax_numpy_dtype_promotion", "strict")  # as in conftest.py
    jax.config.update("jax_numpy_rank_promotion", "raise")
    lines = [f"{json.dumps(name)}: {json.dumps(said_of(name))}" for name in wrong_parts()]
    SAID.write_text("{\n" + ",\n".join(lines) + "\n}\n")

"""Loops that are made one, and loops that must not be."""

import numpy as np
import pytest

from jaxbandits.kernels.arrays import linear, minus, plus, times, weave_index
from jaxbandits.kernels.merged import MERGE_DISTANCE, merge_loops, without_unread_arrays
from jaxbandits.kernels.text import Assign, Block, Entry, Let, Name, Part, indent_lines


def let(name, text=""):
    """A number, or an array where nothing is said of what it begins with."""
    array = name[0] == "a"
    return Let(Name(name, np.float32), text, changing=array, size=9 if array else 0)


def load(name, array, place):
    return let(name, Entry(array, place))


def store(array, place, value="v0", test=""):
    return Assign(Entry(array, place), value, test)


def loop(i, *body, length=9):
    return Block(f"ONCE for (int {i} = 0; {i} < {length}; ++{i})", list(body), i, length)


def stored(i, array, place=None, value="v0"):
    return loop(i, store(array, i if place is None else place, value))


def loaded(i, place=None):
    """A loop that copies what lies at a place."""
    return loop(i, load("v9", "a1", i if place is None else place), store("a2", i, "v9"))


def texts(body):
    return "\n".join(indent_lines(merge_loops(body))).split("\n")


def row(i, n, k=0):
    return plus(times(i, n), k)


ONE = {
    "at the same place": [stored("i1", "a1"), loaded("i2")],
    "with something else between": [stored("i1", "a1"), let("v3", "v0 + 1"), loaded("i2")],
    "with what the second needs between": [stored("i1", "a1"), let("a2"), let("v3", "v0 + 1"), loop(
        "i2", load("v9", "a1", "i2"), let("v8", "v9 + v3"), store("a2", "i2", "v8"))],
    "with what reads the first one's between": [
        stored("i1", "a1"), load("v3", "a1", "v0"), let("a2"), loaded("i2")],
    "in rows of a turn": [
        loop("i1", store("a1", row("i1", 2)), store("a1", row("i1", 2, 1), "v1")), loaded("i2", row("i2", 2, 1))],
    "from a place on": [loop("i3", stored("i2", "a1", row("i3", 9, "i2")), loaded("i4", row("i3", 9, "i4")), length=3)],
    "a loop in a loop": [loop("i3", stored("i1", "a1"), loaded("i2"))],
    "rows that a loop in it runs over": [
        loop("i1", loop("i3", store("a1", row("i1", 4, "i3")), length=4)), loaded("i2", row("i2", 4))],
    "three in a row": [stored("i1", "a1"), stored("i3", "a3"), loop(
        "i2", load("v9", "a1", "i2"), load("v8", "a3", "i2"), let("v7", "v8 + v9"), store("a2", "i2", "v7"))],
}  # fmt: skip
APART = {
    "of another length": [stored("i1", "a1"), loop("i2", load("v9", "a1", "i2"), store("a2", "i2", "v9"), length=8)],
    "at another place": [stored("i1", "a1"), loaded("i2", plus("i2", 1))],
    "anywhere": [stored("i1", "a1"), loaded("i2", "v5")],
    "anywhere, both": [stored("i1", "a1", "v5"), loaded("i2", "v5")],
    "from anywhere on": [stored("i1", "a1", plus("v5", "i1")), loaded("i2", plus("v5", "i2"))],
    "from a row on that is anywhere": [
        stored("i1", "a1", plus(row("v5", 9), "i1")), loaded("i2", plus(row("v5", 9), "i2"))],
    "rows of a loop in it, of one name": [
        loop("i1", loop("i3", store("a1", plus(row("i3", 9), "i1")), length=4)), loop("i2", loop(
            "i3", load("v9", "a1", plus(row("i3", 9), "i2")), Assign("v1", "v9"), length=4))],
    "places that depend on a loop in it": [
        loop("i1", loop("i3", store("a1", plus("i3", "i1")), length=4)), loop("i2", loop(
            "i4", load("v9", "a1", plus("i4", "i2")), Assign("v1", "v9"), length=4))],
    "places that go round": [
        stored("i1", "a1", plus(Part("i1", "%", 4), "i1")), loaded("i2", plus(Part("i2", "%", 4), "i2"))],
    "rows of another length": [stored("i1", "a1", row("i1", 2)), loaded("i2", row("i2", 3))],
    "a part of the next row": [stored("i1", "a1", row("i1", 2)), loaded("i2", row("i2", 2, 2))],
    "the rows that another loop runs over": [
        loop("i1", loop("i3", store("a1", row("i1", 4, "i3")), length=5)), loaded("i2", row("i2", 4))],
    "the sum of all": [
        loop("i1", let("v3", "v1 + v0"), store("a1", "i1", "v3"), Assign("v1", "v3")),
        loop("i2", load("v9", "a1", "i2"), let("v4", "v9 / v1"))],
    "where the loop around them ends": [stored("i1", "a1"), "if (v0) break;", loaded("i2")],
    "what others change between": [
        loop("i1", load("v3", "a3", "i1"), store("a1", "i1", "v3")), store("a3", 0), load("v4", "a1", 0),
        store("a2", 0, "v4"), loaded("i2")],
    "a table between": [
        stored("i1", "a1"), load("v3", "a1", 0), Assign(Entry("a4", ""), "{v3}", "TABLE float "),
        loop("i2", load("v9", "a1", "i2"), load("v8", "a4", "i2"), store("a2", "i2", "v8"))],
    "what the first one still reads": [
        loop("i1", load("v3", "a2", plus("i1", 1)), store("a1", "i1", "v3")), loaded("i2")],
    "a loop that ends by itself": [loop("i1", store("a1", "i1"), "if (v0) break;"), loaded("i2")],
    "what others read": [stored("i1", "a1"), loop("i2", load("v9", "a1", "i2"), "(out0 + 1)[i2] = v9;")],
}  # fmt: skip


@pytest.mark.parametrize("name", ONE)
def test_one_loop(name):
    nested = name in ("a loop in a loop", "rows that a loop in it runs over", "from a place on")
    found = texts(ONE[name])
    assert sum("for (" in line for line in found) == 1 + nested
    if name != "rows that a loop in it runs over":
        assert not any("a1[i" in line and "= a1" in line for line in found)  # nothing is loaded


@pytest.mark.parametrize("name", APART)
def test_apart(name):
    assert texts(APART[name]) == list(indent_lines(APART[name]))


def test_what_is_set_before_stays_and_what_is_stored_under_a_condition_is_loaded():
    """An array is filled with zeros in a loop of its own, and then in part by one that goes with an earlier loop."""
    zeros = loop("i3", store("a2", "i3", "0"), length=12)
    found = texts([stored("i1", "a1"), load("v3", "a1", 0), let("a2"), zeros, loaded("i2")])
    assert found.index("    a2[i3] = 0;") < next(k for k, line in enumerate(found) if line.endswith("a2[i2] = v9;"))
    found = texts([loop("i1", store("a1", "i1"), store("a1", "i1", "v1", "if (v5) ")), loaded("i2")])
    assert sum("for (" in line for line in found) == 1 and "    const float v9 = a1[i1];" in found


@pytest.mark.parametrize("between", [MERGE_DISTANCE - 1, MERGE_DISTANCE])
def test_loops_that_are_far_apart_stay_apart(between):
    others = [let(f"v{k}", "v0 + 1") for k in range(20, 20 + between)]
    found = texts([stored("i1", "a1"), *others, loaded("i2")])
    assert sum("for (" in line for line in found) == (1 if between < MERGE_DISTANCE else 2)


@pytest.mark.parametrize("found, wanted", [
    (plus(2, 3), 5), (plus(0, "i1"), "i1"), (plus("i1", 0), "i1"), (plus(1, "i1"), Part(1, "+", "i1")),
    (plus("i1", 1), Part("i1", "+", 1)), (minus(5, 3), 2), (minus("i1", 0), "i1"), (minus("i1", 1), Part("i1", "-", 1)),
    (minus(3, "i1"), Part(3, "-", "i1")), (minus(0, "i1"), Part(0, "-", "i1")), (times(3, 4), 12), (times("i1", 0), 0),
    (times("i1", 1), "i1"), (times("i1", 3), Part("i1", "*", 3)), (linear((1, 2, 3), (9, 5, 4)), 31),
    (linear(("i1", 2), (3, 4)), Part(Part("i1", "*", 4), "+", 2)), (linear((0, "i1"), (3, 4)), "i1"),
    (linear((), ()), 0),
    (weave_index("ab", (1, 3), "xy"), ["a", "x", "b", "y"]), (weave_index("ab", (2, 0), "xy"), ["y", "a", "x", "b"]),
])  # fmt: skip
def test_parts_of_an_index(found, wanted):
    assert found == wanted and type(found) is type(wanted)


def test_arrays_that_nothing_reads_go():
    body = [let("a1"), let("a2"), loop("i1", store("a1", "i1"), store("a2", "i1")), load("v3", "a2", 4)]
    assert list(indent_lines(without_unread_arrays(body))) == [
        "  float a2[9];", "  ONCE for (int i1 = 0; i1 < 9; ++i1) {", "    a2[i1] = v0;", "  }",
        "  const float v3 = a2[4];",
    ]  # fmt: skip

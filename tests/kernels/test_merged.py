"""Loops that are made one, and loops that must not be."""

import numpy as np
import pytest

from jaxbandits.kernels.merged import merge_loops, without_unread_arrays
from jaxbandits.kernels.text import Block, Let, Name, indent_lines


def let(name, text=""):
    """A number, or an array where nothing is said of what it begins with."""
    array = name[0] == "a"
    return Let(Name(name, np.float32), text, changing=array, size=9 if array else 0)


def loop(i, *body, length=9):
    return Block(f"ONCE for (int {i} = 0; {i} < {length}; ++{i})", list(body))


def stored(i, array, value="v0"):
    return loop(i, f"{array}[{i}] = {value};")


def loaded(i, place, array="a2"):
    """A loop that copies what lies at a place."""
    return loop(i, let("v9", place), f"{array}[{i}] = v9;")


def texts(body):
    return "\n".join(indent_lines(merge_loops(body))).split("\n")


ONE = {
    "at the same place": [stored("i1", "a1"), loaded("i2", "a1[i2]")],
    "with something else between": [stored("i1", "a1"), let("v3", "v0 + 1"), loaded("i2", "a1[i2]")],
    "with what the second needs between": [stored("i1", "a1"), let("a2"), let("v3", "v0 + 1"), loop(
        "i2", let("v9", "a1[i2]"), let("v8", "v9 + v3"), "a2[i2] = v8;")],
    "with what reads the first one's between": [
        stored("i1", "a1"), let("v3", "a1[v0]"), let("a2"), loaded("i2", "a1[i2]")],
    "in rows of a turn": [
        loop("i1", "a1[(i1 * 2)] = v0;", "a1[((i1 * 2) + 1)] = v1;"), loaded("i2", "a1[((i2 * 2) + 1)]")],
    "from a place on": [loop(
        "i3", loop("i2", "a1[((i3 * 9) + i2)] = v0;"), loaded("i4", "a1[((i3 * 9) + i4)]"), length=3)],
    "a loop in a loop": [loop("i3", stored("i1", "a1"), loaded("i2", "a1[i2]"))],
    "rows that a loop in it runs over": [
        loop("i1", loop("i3", "a1[((i1 * 4) + i3)] = v0;", length=4)), loaded("i2", "a1[(i2 * 4)]")],
    "three in a row": [stored("i1", "a1"), stored("i3", "a3"), loop(
        "i2", let("v9", "a1[i2]"), let("v8", "a3[i2]"), let("v7", "v8 + v9"), "a2[i2] = v7;")],
}  # fmt: skip
APART = {
    "of another length": [stored("i1", "a1"), loop("i2", let("v9", "a1[i2]"), "a2[i2] = v9;", length=8)],
    "at another place": [stored("i1", "a1"), loaded("i2", "a1[(i2 + 1)]")],
    "anywhere": [stored("i1", "a1"), loaded("i2", "a1[v5]")],
    "anywhere, both": [loop("i1", "a1[v5] = v0;"), loaded("i2", "a1[v5]")],
    "places that depend on a loop in it": [
        loop("i1", loop("i3", "a1[(i3 + i1)] = v0;", length=4)), loop("i2", loop(
            "i4", let("v9", "a1[(i4 + i2)]"), "v1 = v9;", length=4))],
    "places that go round": [loop("i1", "a1[((i1 % 4) + i1)] = v0;"), loaded("i2", "a1[((i2 % 4) + i2)]")],
    "rows of another length": [loop("i1", "a1[(i1 * 2)] = v0;"), loaded("i2", "a1[(i2 * 3)]")],
    "a part of the next row": [loop("i1", "a1[(i1 * 2)] = v0;"), loaded("i2", "a1[((i2 * 2) + 2)]")],
    "the rows that another loop runs over": [
        loop("i1", loop("i3", "a1[((i1 * 4) + i3)] = v0;", length=5)), loaded("i2", "a1[(i2 * 4)]")],
    "the sum of all": [
        loop("i1", let("v3", "v1 + v0"), "a1[i1] = v3;", "v1 = v3;"),
        loop("i2", let("v9", "a1[i2]"), let("v4", "v9 / v1"))],
    "where the loop around them ends": [stored("i1", "a1"), "if (v0) break;", loaded("i2", "a1[i2]")],
    "what others change between": [
        loop("i1", let("v3", "a3[i1]"), "a1[i1] = v3;"), "a3[0] = v0;", let("v4", "a1[0]"), "a2[0] = v4;",
        loaded("i2", "a1[i2]")],
    "a table between": [
        stored("i1", "a1"), let("v3", "a1[0]"), "TABLE float a4[] = {v3};",
        loop("i2", let("v9", "a1[i2]"), let("v8", "a4[i2]"), "a2[i2] = v8;")],
    "what the first one still reads": [
        loop("i1", let("v3", "a2[(i1 + 1)]"), "a1[i1] = v3;"), loaded("i2", "a1[i2]")],
    "a loop that ends by itself": [
        loop("i1", "a1[i1] = v0;", "if (v0) break;"), loaded("i2", "a1[i2]")],
    "what others read": [
        loop("i1", "a1[i1] = v0;"), loop("i2", let("v9", "a1[i2]"), "(out0 + 1)[i2] = v9;")],
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


def test_what_is_set_before_stays_before():
    """An array is filled with zeros in a loop of its own, and then in part by one that goes with an earlier loop."""
    body = [stored("i1", "a1"), let("v3", "a1[0]"), let("a2"), stored("i3", "a2", "0"), loaded("i2", "a1[i2]")]
    body[3] = loop("i3", "a2[i3] = 0;", length=12)
    found = texts(body)
    assert found.index("    a2[i3] = 0;") < next(k for k, line in enumerate(found) if line.endswith("a2[i2] = v9;"))


def test_what_is_stored_under_a_condition_is_loaded():
    found = texts([loop("i1", "a1[i1] = v0;", "if (v5) a1[i1] = v1;"), loaded("i2", "a1[i2]")])
    assert sum("for (" in line for line in found) == 1 and "    const float v9 = a1[i1];" in found


def test_arrays_that_nothing_reads_go():
    body = [let("a1"), let("a2"), loop("i1", "a1[i1] = v0;", "a2[i1] = v0;"), let("v3", "a2[4]")]
    assert list(indent_lines(without_unread_arrays(body))) == [
        "  float a2[9];", "  ONCE for (int i1 = 0; i1 < 9; ++i1) {", "    a2[i1] = v0;", "  }",
        "  const float v3 = a2[4];",
    ]  # fmt: skip

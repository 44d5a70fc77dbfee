"""The text of a C program by hand: numbers, names, statements in blocks, and what is counted of them."""

import numpy as np
import pytest

from jaxbandits.kernels.text import (
    Assign,
    Block,
    Entry,
    Let,
    Name,
    Part,
    TooLong,
    Writer,
    changes,
    each_branch,
    flatten,
    indent_lines,
    reads,
    rename,
    rewrite,
    text_of,
)

X, Y = Name("v1", np.float32), Name("v2", np.int32)


@pytest.mark.parametrize(("number", "text"), [
    (X, "v1"), (np.bool_(True), "true"), (np.bool_(False), "false"),
    (np.float32(1.5), "0x1.8000000000000p+0f"), (np.float64(1.5), "0x1.8000000000000p+0"),
    (np.float32(-0.0), "(-0x0.0p+0f)"), (np.float32(0.0), "0x0.0p+0f"), (np.float64(-2.0), "(-0x1.0000000000000p+1)"),
    (np.float32(np.nan), "NAN_f32"), (np.float64(np.nan), "NAN_f64"), (np.float32(np.inf), "INF_f32"),
    (np.float64(np.inf), "INF_f64"), (np.float32(-np.inf), "(-INF_f32)"), (np.float64(-np.inf), "(-INF_f64)"),
    (np.int32(7), "7"), (np.int32(-7), "(-7)"), (np.uint32(2**32 - 1), "4294967295u"), (np.int64(-1), "(-1ll)"),
    (np.uint64(3), "3ull"),
    (np.int32(-(2**31)), "((int)(-2147483647ll - 1))"), (np.int8(-128), "((signed char)(-127ll - 1))"),
])  # fmt: skip
def test_numbers_stand_in_the_text_to_the_bit(number, text):
    assert text_of(number) == text


def lines(body):
    return [line.strip() for line in indent_lines(body)]


def test_a_writer_writes_what_is_computed_twice_once_and_stops_at_its_most():
    writer = Writer(most=6)
    first = writer.let("x + 1", np.float32)
    assert writer.let("x + 1", np.float32) is first and writer.let("x + 1", np.float64) != first
    with writer.loop(3) as i:
        assert writer.let("x + 1", np.float32) is first  # known outside
        inside = writer.let("x * 2", np.float32)
    assert writer.let("x * 2", np.float32) != inside  # what is made in a block ends with it
    assert lines(writer.body) == [
        f"const float {first} = x + 1;", "const double v2 = x + 1;", f"ONCE for (int {i} = 0; {i} < 3; ++{i}) {{",
        f"const float {inside} = x * 2;", "}", "const float v5 = x * 2;",
    ]  # fmt: skip
    writer.variable(None, np.int32)  # the sixth
    with pytest.raises(TooLong):
        writer.variable(np.int32(3), np.int32)
    assert lines(writer.body)[-2:] == ["int v6;", "int v7 = 3;"]


def test_an_element_that_is_written_over_is_read_anew():
    writer, a, b = Writer(), Name("a1", np.float32), Name("a2", np.float32)
    before = [writer.let(Entry(array, 0), np.float32) for array in (a, b)]
    writer.forget(a)
    assert [writer.let(Entry(array, 0), np.float32) == x for array, x in zip((a, b), before, strict=True)] == [
        False,
        True,
    ]


def test_variables_that_change_places_are_assigned_all_at_once():
    writer, z = Writer(), Name("v3", np.int32)
    writer._numbered = 3
    writer.assign([Y, z, X], [z, Y, X])
    assert lines(writer.body) == ["const int v4 = v2;", "const int v5 = v3;", "v2 = v5;", "v3 = v4;"]


def test_what_statements_read_and_change():
    element, read = Entry("a1", Part(Name("v3", np.int32), "+", 1)), Let(X, "v4 * 2")
    assert str(Assign(element, "v5", "if (v6) ")) == "if (v6) a1[(v3 + 1)] = v5;"
    assert (reads(read), changes(read)) == ({"v4"}, {"v1"})
    write = Assign(element, "v5")
    assert (reads(write), changes(write)) == ({"a1", "v3", "v5"}, {"a1"}) and changes("f(v1);") == set()
    block = Block("if (v7)", [read, write, Assign("v2", "v1")])
    assert reads(block) == {"v7", "v4", "a1", "v3", "v5", "v2"} and changes(block) == {"v1", "a1", "v2"}
    either = Block("", [block, Block("else", [write])])
    assert [*each_branch([either, read])] == [*either.body, read]
    assert [*flatten([either])][1:3] == [block, read] and len([*flatten([either])]) == 7
    kept = rewrite([either], lambda x: None if x == write else x)
    assert kept == [Block("", [Block("if (v7)", [read, Assign("v2", "v1")]), Block("else", [])])]
    renamed = rename(read, {"v1": "v9", "v4": "v1"})
    assert str(renamed) == "const float v9 = v1 * 2;" and renamed.name.dtype == np.float32

"""What `validation.declare` makes of a declaration: checks, docstring and signature."""

import functools
import inspect
import textwrap
from typing import Annotated, Any, Literal, NamedTuple, Required, TypedDict, Unpack

import jax
import jax.numpy as jnp
import pytest
from annotated_doc import Doc
from annotated_types import Ge, Gt
from docstring_parser import ParseError

import jaxbandits as jb
from jaxbandits.declared import LATER, STATIC, TRACED, Axes, Base, Default, Kind, declaration, sections
from jaxbandits.protocol import Algorithm
from jaxbandits.typing import AlgorithmFactory, Float, Scalar, Vector
from jaxbandits.validation import declare, factory


class Group(TypedDict, total=False):
    """Two numbers.

    Args:
        size: How many.
    """

    size: Required[Annotated[int, Ge(1)]]
    share: Annotated[Scalar, Ge(0), Default(0.5), Doc("Of all.")]


Length = Annotated[float, Doc("In metres.")]


@declare
def length(
    gaps: Annotated[Vector, Axes(1, "array of float [K]"), Ge(0), Doc("Between them.")],
    scale: Annotated[Scalar, Gt(0), LATER, Doc("Of whatever kind.")] = 1.0,
    *,
    kind: Literal["sum", "mean"] = "sum",
    **group: Unpack[Group],
) -> Length:
    """How long it is.

    Args:
        kind: Of what.
    """
    return float(gaps[0] * group["size"] * group["share"])


def test_values_are_checked_by_position_and_by_name():
    assert length([2.0], size=3) == length(gaps=[2.0], size=3.0, share=0.5) == 3.0
    assert length([2.0], "anything", size=1) == 1.0
    for wrong, message in (
        ({"gaps": [-1.0]}, r"gaps\[0\] = -1.0 must be finite and in \[0, inf\]"),
        ({"size": 0}, "size = 0 must be an integer of at least 1"),
        ({"share": "x"}, r"share = 'x' must be a number in \[0, inf\)"),
        ({"kind": "max"}, "kind = 'max' must be one of 'sum', 'mean'"),
    ):
        with pytest.raises(ValueError, match=message):
            length(**{"gaps": [1.0], "size": 1} | wrong)
    with pytest.raises(TypeError, match=r"length\(\) missing a required argument: 'size'"):
        length([1.0])
    with pytest.raises(TypeError, match=r"unexpected keyword argument 'seize'"):
        length([1.0], size=1, seize=1)


def test_the_docstring_says_all_of_it():
    found = sections(length.__doc__)
    assert found["Parameters"] == (
        "\ngaps : array of float [K]\n    Between them. At least 0.\n"
        "scale : float, default 1.0\n    Of whatever kind. Greater than 0.\n"
        'kind : {"sum", "mean"}, default "sum"\n    Of what.\n'
        "size : int\n    How many. At least 1.\nshare : float, default 0.5\n    Of all. At least 0.\n\n"
    )
    assert found["Returns"].strip() == "float\n    In metres."
    assert inspect.signature(length).return_annotation is float


def test_sections_say_errors_and_returned_values():
    assert "Raises" in sections(length.__doc__)
    assert "Raises" not in sections(jb.mechanisms.gaussian_event.__doc__)
    assert "Raises" in sections(jb.mechanisms.gaussian_scale.__doc__)
    bound = sections(jb.theory.byzantine_ucb_bound.__doc__)
    assert bound["Returns"].strip() == f"float\n    {bound[''].splitlines()[0]}"
    assert "It may exceed T." in sections(jb.theory.htinf_bound.__doc__)["Returns"]


@declare(source="A page of a paper.")
def root(
    x: Annotated[Scalar | jax.Array, TRACED, Ge(0), Kind("number"), Doc("Of what.")],
) -> Annotated[Float[jax.Array, ""], Doc("Its root.")]:
    """Take a root.

    Note:
        Of any number.

    >>> float(root(4.0))
    2.0
    """
    return jnp.sqrt(x)


def test_source_and_example_need_no_title():
    found = sections(root.__doc__)
    assert list(found) == ["", "Parameters", "Returns", "Raises", "Notes", "References", "Examples"]
    assert found["Parameters"].strip() == "x : number\n    Of what. At least 0. It may be traced."
    assert found["Returns"].strip() == "float array of shape []\n    Its root."
    assert found["References"].strip() == "A page of a paper."
    assert found["Examples"].strip() == ">>> float(root(4.0))\n2.0"


@declare
def cut(x: Annotated[Scalar, Ge(0)], low: Scalar, high: Scalar, rows: list[str]) -> dict[str, float]:
    """Cut a number.

    sizes: no argument.

    Args:
        x: First and more of it.

            A second paragraph.
        low, high: The ends.
        rows (sequence of str, optional): Names: three.

    Returns:
        dict of float: By name,
            one for each.
        count (int): Of all.

    Raises:
        ValueError: Where low is above high,
            and so on.
        TypeError: Never.

    Note:
        x: no entry.

            as(it.stands)

        Second.
    """
    return {}


def test_sections_become_numpydoc_s():
    assert cut.__doc__ == textwrap.dedent("""\
        Cut a number.

        sizes: no argument.

        Parameters
        ----------
        x : float
            First and more of it. At least 0.

            A second paragraph.
        low, high : float
            The ends.
        rows : sequence of str, optional
            Names: three.

        Returns
        -------
        dict of float
            By name,
            one for each.
        count : int
            Of all.

        Raises
        ------
        ValueError
            Where low is above high,
            and so on.
        TypeError
            Never.

        Notes
        -----
        x: no entry.

            as(it.stands)

        Second.
    """)


def test_traced_values_and_annotations_for_type_checkers_are_left_alone():
    with pytest.raises(ValueError, match=r"x = -1.0 must be a number in \[0, inf\)"):
        root(-1.0)
    assert float(jax.jit(root)(4.0)) == 2.0
    parameter = inspect.signature(jb.learners.from_optax).parameters["transformation"]
    assert parameter.annotation == "optax.GradientTransformation"


def on_an_alias(base: Base, others: "AlgorithmFactory | Algorithm | None" = None) -> "Algorithm": ...


def test_an_annotation_that_cannot_be_read_raises():
    """Its argument would not be checked."""

    def scale(*, by: Any) -> float: ...

    misspelt = {"Skalar": NameError, "Annotated[Skalar, Ge(0)]": NameError, "Ge(0) | None": TypeError}
    for annotation, error in misspelt.items():
        scale.__annotations__["by"] = annotation
        for decorator in (factory, declare):
            with pytest.raises(error) as raised:
                decorator(scale)
            assert "the annotation of by, an argument of" in raised.value.__notes__[0]
    assert declaration(on_an_alias).arguments["base"].marks == (STATIC,)
    assert declaration(on_an_alias).arguments["others"].hint == "AlgorithmFactory | Algorithm | None"


@declare(check=False)
class Point(NamedTuple):
    """A point.

    Args:
        x, y (float): Where.
    """

    x: float
    y: float


def test_a_tuple_has_sections_too():
    assert Point.__doc__ == "A point.\n\nParameters\n----------\nx, y : float\n    Where.\n"
    assert Point(1.0, 2.0) == (1.0, 2.0) and not hasattr(Point, "arguments")


# what stands below "Do it.", and what the error shows of it
OUTSIDE = {
    "Args:\n    size: Of it.\n\nParams:\n    size: Of it.": "'Params: size: Of it.'",  # a title that there is not
    "Args:\n    size: Of it.\n\nIt is large.": "'It is large.'",  # prose after a section
    "Note:\n    One.\n\nNote:\n    Two.": "'One. Two.'",  # a title that comes twice: the parser keeps the last
    "Parameters\n----------\nsize\n    Of it.": "'Parameters'",  # the dialect that users see
    "Args:\n    seize: Of it.": "seize, which is no argument",
    "Args:\n    size of it": "Expected a colon",
}


@pytest.mark.parametrize("text", OUTSIDE)
@pytest.mark.parametrize("decorator", [factory, declare, declare(check=False)])
def test_what_is_in_no_section_raises(text, decorator):
    def do(*, size: Annotated[int, Ge(1)]) -> None: ...

    do.__doc__ = f"Do it.\n\n{text}"
    with pytest.raises((ValueError, ParseError), match=OUTSIDE[text]):
        decorator(do)


def test_a_docstring_without_declared_arguments_stays():
    def build(*, size=1):
        """Build it.

        Parameters
        ----------
        size
            Of it.
        """

    text = build.__doc__
    assert factory(build).__doc__ == text


def test_what_wraps_a_declared_function_has_its_docstring():
    assert declare(check=False)(functools.wraps(root)(lambda x: root(x))).__doc__ == root.__doc__

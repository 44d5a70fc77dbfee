"""What `make quick` takes first: distances by what names what, changes as git tells them, the last line."""

import types

import pytest
import quick


def nearest(*changed):
    """Test functions by their distance from a change."""
    found = quick.Change(dict(map(quick.lines_of, changed))).distances
    tests = [
        (d, f"{module.rpartition('.')[2]}.{name}") for (module, name), d in found.items() if name.startswith("test_")
    ]
    return dict(map(reversed, sorted(tests)))


def test_an_inner_module_is_reached_through_its_public_door():
    near = nearest("jaxbandits/mechanisms/counters/unknown_horizon.py")
    counters = [d for name, d in near.items() if name.startswith("test_counter.")]
    assert len(counters) > 5 and near["test_counter.test_an_unknown_horizon"] == min(counters) == 3
    assert "test_statistics.test_holm" not in near


def test_a_function_changes_those_that_name_it_and_no_other():
    holm = nearest("jaxbandits/statistics.py::holm")
    slope = nearest("jaxbandits/statistics.py::slope")
    assert holm.keys() != slope.keys() and min(holm.values()) == min(slope.values()) == 1
    assert nearest("jaxbandits/statistics.py").keys() >= holm.keys() | slope.keys()
    # a test that names it is one step away, one that names who calls it two, one behind the public door and the
    # rule of its derivative five
    reach = nearest("jaxbandits/estimators/geometric_median.py::_reach")
    assert reach["test_geometric_median.test_certificates_of_the_two_hard_cases"] == 2
    assert reach["test_geometric_median.test_each_certificate_is_what_its_formula_says"] == 1
    assert reach["test_geometric_median.test_by_hand"] == 5


def test_a_rule_is_reached_by_what_it_is_handed_to():
    near = nearest("jaxbandits/estimators/m_estimators.py::_")  # two rules of derivatives, which nothing names
    assert near["test_derivatives.test_huber_by_hand"] == 3
    m = "jaxbandits.estimators.m_estimators"
    one, other = (name for name in quick.definitions(m) if name[:2] == "_ ")
    assert [*quick.handed_to(m, quick.definitions(m)[one])] == ["_root"]
    assert [*quick.handed_to(m, quick.definitions(m)[other])] == ["_of_all"]


def test_a_kernel_is_reached_by_the_name_of_its_module():
    near = nearest("jaxbandits/kernels/filter_kernel.py::one_lane_filter")
    assert sum(name.startswith("test_spectral_filter.") for name in near) > 5


def test_a_command_is_reached_by_the_name_of_its_module():
    near = nearest("jaxbandits/commands/offline.py::run")
    assert near["test_command.test_rows_in_order_and_another_estimator"] == 3  # by `main`, which calls it


def test_calls_of_a_table_reach_what_they_call():
    assert nearest("jaxbandits/searching/tune.py::tune")["test_wrong_calls.test_wrong_calls_end_in_one_line"] == 2


def test_a_program_that_a_test_starts_names_what_stands_in_it():
    stopped = "test_an_interrupt_while_programs_are_compiled_is_answered_and_a_second_one_waits_for_nothing"
    assert f"test_faults.{stopped}" in nearest("jaxbandits/sweeps/engines/local.py::LocalRun")


def test_a_study_is_reached_by_its_name_in_the_table():
    assert quick.studies()["byzantine/isolated"] == ("jaxbandits.papers.byzantine.regret", "ISOLATED")
    near = nearest("jaxbandits/papers/ldp_contextual/figure_1.py::width_claims")
    assert near["test_study_statistics.test_claims_on_invented_results_are_those_of_the_page_and_keep_their_units"] == 4
    change = quick.Change(dict([quick.lines_of("jaxbandits/papers/ldp_contextual/figure_1.py::width_claims")]))
    reached = {name for name, place in quick.studies().items() if place in change.distances}
    assert reached == {"ldp-contextual/widths"}


def test_tests_of_the_changed_study_come_first_and_of_others_last(monkeypatch):
    monkeypatch.setattr(quick, "pytest", types.SimpleNamespace(Function=types.SimpleNamespace))
    change = quick.Change(dict([quick.lines_of("jaxbandits/papers/ldp_contextual/figure_1.py::width_claims")]))

    def place(study, marker=None):
        test = "test_claims_on_invented_results_are_those_of_the_page_and_keep_their_units"
        path, marked = quick.ROOT / "tests/pages/test_study_statistics.py", lambda name: name == marker
        item = types.SimpleNamespace(name=f"{test}[{study}]", path=path, cls=None, originalname=test, fixturenames=[])
        item.get_closest_marker = marked
        return change.item(item, None)

    assert place("ldp-contextual/widths") == 0 < place("ldp-contextual/widths", "pages") < quick.OTHER_STUDY
    assert place("ldp-contextual/widths-a second argument") == 0
    assert place("across/atlas") > quick.OTHER_STUDY < place("across/atlas-a second argument")


def test_lines_of_a_change_are_the_definitions_that_hold_them():
    diff = """\
diff --git a/jaxbandits/statistics.py b/jaxbandits/statistics.py
--- a/jaxbandits/statistics.py
+++ b/jaxbandits/statistics.py
@@ -{line} +{line} @@
-    x
+    y
@@ -1,2 +1,0 @@
-x
-y
diff --git a/README.md b/README.md
@@ -3 +3,2 @@""".replace("{line}", str(quick.definitions("jaxbandits.statistics")["holm"].lineno + 1))
    lines = quick.lines_of_diff(diff.split("\n"))
    assert {path: len(found) for path, found in lines.items()} == {"jaxbandits/statistics.py": 2, "README.md": 1}
    assert quick.Change(lines).changed == {("jaxbandits.statistics", "holm"), ("jaxbandits.statistics", "")}


def test_parts_of_a_case_are_nearer_than_the_engine():
    change = quick.Change(dict([quick.lines_of("jaxbandits/algorithms/stochastic/ucb1.py")]))
    assert change.case("ucb1") == quick.CASES and change.case("exp3") is None
    engine = quick.Change(dict([quick.lines_of("jaxbandits/simulator.py")]))
    assert engine.case("ucb1") >= quick.CASES and engine.case("exp3") >= quick.CASES


@pytest.mark.parametrize(("skipped", "line"), [(0, "all 3 tests run"), (2, "no time for 2 of 5 tests")])
def test_the_last_line_counts_what_there_was_no_time_for(skipped, line):
    told = []
    late = types.SimpleNamespace(longrepr=("file", 1, f"Skipped: {quick.NO_TIME}"))
    absent = types.SimpleNamespace(longrepr=("file", 1, "Skipped: no GPU"))
    reporter = types.SimpleNamespace(
        stats={"passed": [1], "failed": [1], "skipped": [absent] + [late] * skipped}, write_line=told.append
    )
    config = types.SimpleNamespace(change=types.SimpleNamespace(files={f"file_{k}" for k in range(8)}))
    quick.pytest_terminal_summary(reporter, config)
    assert told[-1] == line and told[0].endswith("file_5 and 2 more")

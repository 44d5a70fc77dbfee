"""The benchmarks behind the pages at tiny sizes: they run, count what there is, and write what the pages show."""

import ctypes
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import audit
import families
import gpu
import gpu_peers
import gpu_static
import jax
import jax.numpy as jnp
import numpy as np
import parts
import performance
import pytest
import sweeps
from jax import lax

import jaxbandits as jb
from jaxbandits.catalogue import ALGORITHMS
from jaxbandits.random import Draws
from jaxbandits.reports import layout

pytest.importorskip("numba")
pytestmark = pytest.mark.pages
ROOT = Path(__file__).parents[2]


def run(*arguments: object, script: str = "families.py", code: int = 0) -> subprocess.CompletedProcess:
    command = [sys.executable, str(ROOT / "benchmarks" / script), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == code, done.stderr
    return done


def test_both_sides_of_a_row_agree(tmp_path):
    file = tmp_path / "rows.json"
    done = run("--turns", 1, "--lanes", 128, "--json", file, "ucb1-lane-by-lane")
    (row,) = json.loads(file.read_text())
    assert row["name"] == "ucb1-lane-by-lane"
    assert row["ratio"] == pytest.approx(row["ours"] / row["numba"])
    # 375 is UCB1's mean regret on these arms; both means have a standard error of about 2.5
    for side in ("ours", "numba"):
        assert abs(row[f"regret_{side}"] - 375) < 5 * row[f"regret_{side}_se"] < 25
    assert not any(line.endswith("!") for line in done.stdout.splitlines())


def test_an_unknown_row_is_refused_in_one_line():
    done = run("ucb2", code=2)
    assert done.stdout == ""
    (line,) = done.stderr.splitlines()
    assert "'ucb2'" in line and "kl_ucb" in line


def counts_of(function, *arguments) -> dict[str, float]:
    """What `parts.evaluate` counts while it runs a function, without what is not there."""
    traced = jax.make_jaxpr(function)(*arguments)
    found, counts = jax.jit(lambda *leaves: parts.evaluate(traced.jaxpr, traced.consts, leaves, False))(*arguments)
    assert jnp.allclose(jnp.asarray(found[0]), function(*arguments))
    return {kind: float(n) for kind, n in zip(parts.KINDS, counts.sum(0), strict=True) if n}


def test_loops_count_as_often_as_they_turn_and_branches_where_they_are_taken():
    x = jnp.linspace(0.1, 0.9, 8)
    assert counts_of(jnp.exp, x) == {"exp": 8}
    found = counts_of(lambda x, n: lax.fori_loop(0, n, lambda _, x: jnp.log(x + 2), x), x, jnp.int32(5))
    assert found["log"] == 5 * 8
    step = lambda x, wanted: lax.cond(wanted, lambda: jnp.exp(x), lambda: jnp.sqrt(x))
    assert "exp" in counts_of(step, x, jnp.bool_(True)) and "exp" not in counts_of(step, x, jnp.bool_(False))
    halved = lambda x: lax.while_loop(lambda x: x > 1, lambda x: x / 2, x)  # its end differs between lanes
    assert counts_of(jax.vmap(halved), jnp.array([1.0, 8.0, 3.0]))["division"] == 3 * 3


def test_a_draw_is_a_threefry_block():
    def drawn(seeds, t):
        return jax.vmap(lambda seed: Draws(seed, "alg").uniform(t))(seeds)

    found = counts_of(drawn, jnp.arange(4_000, dtype=jnp.uint32), jnp.int32(3))
    assert found["threefry"] == pytest.approx(4_000, rel=0.11)  # of which the first rounds see no seed


def test_counts_of_a_play_tell_the_learner_from_the_rest():
    counts = parts.counted(parts.sweep_of(ALGORITHMS["exp3"], 50, 16, checkpoints=2))
    learner, rest = (dict(zip(parts.KINDS, row, strict=True)) for row in counts)
    assert learner["threefry"] == pytest.approx(1, rel=0.2) and rest["threefry"] == pytest.approx(1, rel=0.2)
    assert 4 <= learner["exp"] <= 6 and rest["exp"] == 0  # of four weights, and of few numbers beside them


HLO = """HloModule one

%body.1 (p: (s32[], f32[64])) -> (s32[], f32[64]) {
  %p = (s32[], f32[64]{0}) parameter(0)
  %i = s32[] get-tuple-element(%p), index=0
  %x = f32[64]{0} get-tuple-element(%p), index=1
  %y = f32[64]{0} fusion(%x), kind=kLoop, calls=%inside
  %z = f32[64]{0} fusion(%x, %y), kind=kLoop, calls=%inside
  ROOT %out = (s32[], f32[64]{0}) tuple(%i, %z)
}

ENTRY %main (a: f32[64]) -> f32[64] {
  %a = f32[64]{0} parameter(0)
  %w = (s32[], f32[64]{0}) while(%a), condition=%test, body=%body.1
  ROOT %r = f32[64]{0} get-tuple-element(%w), index=1
}
"""


def test_kernels_are_counted_with_the_bytes_that_they_touch():
    assert parts.kernels_of(HLO, 1) == (2, 4 * 64 * (2 + 3))


def test_a_bound_names_the_fewest_parts_that_bring_a_row_below_one():
    taken = {"rewards": 3.0, "draws": 1.0, "functions": 2.0, "linear algebra": 0.5}
    assert families.bound(taken, 2.0) == "rewards: 0.67"
    assert families.bound(taken, 4.0) == "rewards + functions: 0.80"
    assert families.bound(taken, 13.0) == "none: 2.00"


@pytest.mark.dealt(8)
def test_the_parts_of_a_play_are_printed(tmp_path):
    file = tmp_path / "costs.json"
    done = run("--costs", "--turns", 1, "--lanes", 32, "--horizon", 100, "--json", file, "exp3_ix")
    (row,) = json.loads(file.read_text())
    for part in ("rewards", "draws", "functions", "linear algebra"):
        assert row["parts"][part] > 0, part
    assert min(row["parts"].values()) >= 0 and row["play"] > 0 and row["kernels"] > 1
    (line,) = [line for line in done.stdout.splitlines() if line.startswith("| `exp3_ix`")]
    assert len(line.split("|")) == len(done.stdout.splitlines()[2].split("|"))


def test_performance_writes_its_figures(tmp_path):
    done = run("machine", "roofline", "--small", "--out", tmp_path, script="performance.py")
    found = json.loads((tmp_path / "performance.json").read_text())
    assert min(found["machine"]["operations"].values()) > 0
    for name in ("ucb1", "exp3", "linucb"):
        assert sum(found["roofline"][name]["needed"].values()) > 0 and found["roofline"][name]["play"] > 0
        assert f"| `{name}` |" in done.stdout
    assert (tmp_path / "performance-roofline.png").stat().st_size > 10_000


def test_a_picture_of_rates_has_no_texts_that_collide(tmp_path, monkeypatch):
    drawn = []
    monkeypatch.setattr(layout, "save", lambda figure, path: drawn.append(figure))
    for name, curve in performance.curves().items():
        lines = {label: [[n, 1e8 / n] for n in numbers] for label, (_, numbers) in curve.lines.items()}
        performance.draw_curve(name, lines, tmp_path / "rates.png")
    assert [layout.overlaps(figure) for figure in drawn] == [[]] * len(drawn)


@pytest.mark.parametrize("page, name", [("scaling.md", "costs"), ("performance.md", "roofline")])
def test_every_algorithm_stands_in_the_table_of_costs(page, name):
    text = (ROOT / "docs" / page).read_text()
    table = text.split(f"<!-- {name}: begin -->")[1].split(f"<!-- {name}: end -->")[0]
    rows = re.findall(r"^\| `(\w+)` ", table, flags=re.M)
    assert rows and set(rows) <= set(ALGORITHMS)  # one without a row was not measured yet


def test_a_table_is_put_between_its_marks(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- costs: begin -->\nold\n<!-- costs: end -->\nafter\n")
    sweeps.put_between(page, "costs", "| new |\n")
    assert page.read_text() == "before\n<!-- costs: begin -->\n\n| new |\n\n<!-- costs: end -->\nafter\n"
    sweeps.put_between(page, "costs", "| name | ns |\n|---|---|\n| `a` | 1 |\n| `b` | 2 |\n")
    sweeps.put_rows(page, "costs", "| name | ns |\n|---|---|\n| `b` | 3 |\n| `c` | 4 |\n")
    assert "\n| name | ns |\n|---|---|\n| `a` | 1 |\n| `b` | 3 |\n| `c` | 4 |\n" in page.read_text()


def test_a_gpu_is_modelled_without_one(tmp_path):
    file = tmp_path / "rows.json"
    done = run("--json", file, "ucb1", "adap_ucb", "shuffle_linucb", "robust_ucb", script="gpu_static.py")
    kernel, windows, long, large = json.loads(file.read_text())["rows"]
    assert (kernel["name"], kernel["form"], kernel["reason"]) == ("ucb1", "kernel", "")
    assert kernel["host_syncs_per_segment"] == 0 and kernel["kernels_per_play"] < 0.01
    # three counts of eight numbers of 4 bytes, read and written once in 10,000 plays, and a row a checkpoint: under 1
    assert 0 < kernel["bytes_per_play"] < 1
    # an H200 takes 64 integer operations a cycle in each of 132 multiprocessors, at 1.98 GHz
    units = kernel["units_per_play"] or {"integer": kernel["operations_per_play"]}
    most = 132 * 64 * 1.98e9 / units["integer"]
    rates = kernel["modelled_plays_per_second"]
    assert list(rates) == ["100,000", "1,000,000"] and all(0.8 * most < rate <= most for rate in rates.values())
    assert kernel["bound_plays_per_second"] >= most and kernel["repeats"] == 1 < large["repeats"]
    assert (windows["form"], windows["plays_per_window"]) == ("kernel", 8)  # the work of a window is that of its plays
    assert windows["operations_per_play"] < kernel["operations_per_play"]
    assert (long["form"], large["form"]) == ("kernel", "kernel")
    assert (kernel["arrays"], large["arrays"]) == ("written out", "loops")
    assert done.stdout.count("\n") == 6
    assert len({line.count("|") for line in done.stdout.splitlines()}) == 1


def test_a_tpu_has_no_kernels(tmp_path):
    file = tmp_path / "rows.json"
    run("--json", file, "--target", "tpu_v5e", "uniform", script="gpu_static.py")
    (row,) = json.loads(file.read_text())["rows"]
    assert row["form"] == "xla" and row["modelled_plays_per_second"] is None
    assert row["operations_per_play"] > 0


@pytest.mark.parametrize("name", ["ucb2", "ucb1-x", "ucb1-3-4", "maler-3-4"])
def test_an_unknown_algorithm_is_refused_by_the_model(monkeypatch, capsys, name):
    monkeypatch.setattr(sys, "argv", ["gpu_static.py", name])
    with pytest.raises(SystemExit):
        gpu_static.main()
    assert f"no algorithm {name!r}" in capsys.readouterr().err


def test_the_loop_over_plays_is_found_in_machine_code():
    def code(*lines):
        return "\n".join(x if x.endswith(":") else f"        /*{i:04x}*/  {x} ;" for i, x in enumerate(lines))

    # around it the loop over checkpoints, inside of it a shorter loop
    text = code(
        "MOV R1", ".L_x_1:", "LDG R2", ".L_x_2:", "FADD R3", ".L_x_3:", "FMUL R4", "@P0 BRA `(.L_x_3)", "NOP",
        "IADD R5", "@P1 BRA `(.L_x_2)", "STG R6", "@P2 BRA `(.L_x_1)", "EXIT",
    )  # fmt: skip
    found = gpu_static.instructions_of(text)
    assert gpu_static.loop_over_plays(found) == (2, 6)  # FADD to the branch back
    assert gpu_static.loop_over_plays(found, single=False) == (1, 8)
    # the way past a branch that is seldom taken, and the unit of each instruction on it
    text = code(
        ".L_x_1:", "FFMA R1", "@P0 BRA `(.L_x_2)", "MUFU.LG2 R2", "DADD R4", "@!P3 IADD3 R5", ".L_x_2:", "LDG R6",
        "@P1 BRA `(.L_x_1)",
    )  # fmt: skip
    found = gpu_static.instructions_of(text)
    way = gpu_static.shortest_way(found, *gpu_static.loop_over_plays(found))
    assert sorted(way) == [0, 1, 5, 6]
    assert gpu_static.by_unit([found.lines[i] for i in way], 2) == {"start": 2, "memory": 0.5, "product": 0.5}
    assert [gpu_static.unit_of(found.lines[i]) for i in (2, 3, 4)] == ["special", "double", "integer"]
    units = {"I2FP.F32.S32 R1": "integer", "I2F R1": "special", "@P0 BRA X": "other"}
    assert {x: gpu_static.unit_of(x) for x in units} == units


def test_a_loop_of_known_length_repeats_its_statements():
    text = """
    void program(int lane) {
      int before = 1;
      for (;;) {
        a = 1;
        ONCE for (int i = 0; i < 10; ++i) {
          if (a) {
            b = 2;
          }
          for (; b < end; ) {
            c = 3;
          }
        }
      }
    }
    #ifdef __CUDACC__
    """
    assert gpu_static.repeats(text, of_play=True) == (1 + 10 + 10) / 3
    assert gpu_static.repeats(text, of_play=False) == (1 + 1 + 10 + 10) / 4
    four = text.replace("ONCE", "FOUR")  # four turns are written out: as many statements more
    assert gpu_static.repeats(four, of_play=True) == (1 + 10 + 10) / (1 + 4 + 4)


def test_few_registers_and_lanes_bound_the_modelled_rate():
    counts = {"start": 100, "integer": 20, "product": 80}
    row = {"operations_per_play": 100, "repeats": 1.0, "registers": 64, "bytes_per_play": 1e-6}
    target = gpu_static.TARGETS["h100"]

    def rates(**changes):
        found = gpu_static.modelled(row | changes, gpu_static.Code({}, counts, counts), target)
        return found["modelled_plays_per_second"]["1,000,000"], found["bound_plays_per_second"], found["bound"]

    # four instructions of warps a cycle and multiprocessor, with eight blocks of four warps each
    all_taken = 132 * 1.98e9 * 128 / 100
    assert rates()[0] == pytest.approx(all_taken, rel=0.02)
    assert rates()[1:] == (pytest.approx(all_taken), "start")
    # 228 registers leave two blocks: each of eight warps starts an instruction every fourth cycle
    assert rates(registers=228)[0] == pytest.approx(all_taken / 2, rel=0.02)
    assert rates(bytes_per_play=1e3) == (3.35e9, 3.35e9, "bandwidth")


@pytest.mark.parametrize("name", ["thompson-10", "online_ucb-6-3", "geometric_median-10-4", "maler-3"])
def test_sizes_are_in_a_name(name):
    found = gpu_static.counted(name)
    assert found.kernel is not None and not found.reason
    assert found.of == ("call" if gpu_static.is_estimator(name) else "play")


def test_the_sizes_of_a_name_are_those_of_its_world():
    facts = gpu_static.program("linucb-7-5").environment().facts
    assert (facts["num_arms"], facts["dim"]) == (7, 5)
    assert gpu_static.program("byzantine_ucb-10").environment().facts["num_agents"] == 10
    assert gpu_static.program("ucb1-12").environment().world.num_arms == 12
    for name in gpu_static.SIZES:
        gpu_static.estimator(name) if gpu_static.is_estimator(name) else gpu_static.program(name)


def test_without_a_gpu_nothing_is_measured():
    assert run(script="gpu.py").stdout == "no GPU here: nothing was measured\n"


@pytest.fixture
def day(tmp_path):
    """Runs `gpu.py` in tiny sizes where some libraries cannot be imported: what it printed, and its rows."""

    def ran(*arguments, without=("h5netcdf", "h5py", "shtab")):
        blocked = "".join(f"sys.modules[{name!r}] = None\n" for name in without)
        (tmp_path / "sitecustomize.py").write_text(f"import sys\n{blocked}")
        command = [sys.executable, str(ROOT / "benchmarks" / "gpu.py"), "--tiny", "--out", str(tmp_path / "day")]
        done = subprocess.run(
            [*command, "--lanes", "64", *arguments], env=os.environ | {"PYTHONPATH": str(tmp_path)}, text=True,
            capture_output=True, timeout=900,
        )  # fmt: skip
        return done, [json.loads(line) for line in (tmp_path / "day" / "report.jsonl").read_text().splitlines()]

    return ran


def test_a_gpu_day_says_what_it_could_not_do(day):
    done, rows = day(without=("xarray",))
    assert done.returncode == 1 and "no sweep runs here" in done.stderr and "xarray" in done.stderr
    assert [row["part"] for row in rows] == ["first", "day"]
    done, rows = day("--minutes", "0", "--parts", "rates")
    assert done.returncode == 0, done.stderr
    assert {"part": "rates", "name": "ucb1", "note": "no time was left"} in rows


def test_a_gpu_day_measures_what_it_says(day):
    """Without the libraries for files and completion, which a machine with a GPU may lack."""
    done, rows = day("--parts", "rates", "grid")
    assert done.returncode == 0, done.stderr
    rates = {row["form"]: row["rate"] for row in rows if row["part"] == "rates" and row["name"] == "ucb1"}
    assert rates.keys() == {"cc", "scan"} and min(rates.values()) > 0
    turns = [row["name"] for row in rows if row["part"] == "grid"]
    assert turns == [f"private_batched {turn}" for turn in ("first", "second", "second process")]
    assert "| `ucb1` | 64 | " in done.stdout


@pytest.mark.dealt(8)
def test_a_gpu_day_runs_to_its_end(day):
    done, rows = day("--minutes", "15")
    assert done.returncode == 0, done.stderr
    assert {row["part"] for row in rows} == {"first", "day", *(part.name for part in gpu.DAY)}
    assert not [row for row in rows if "note" in row or any(key.startswith("error") for key in row)]
    assert all(row["near"] == 1 for row in rows if row["part"] == "catalogue")
    assert all(row["right"] for row in rows if row["part"] == "correct")
    played = {row["by"]: row["same_game"] for row in rows if row["part"] == "peers" and "missing" not in row}
    assert played.keys() >= {"our kernel", "our scan", "JAX, threefry", "JAX, rbg"} and all(played.values())


def test_what_waits_for_a_card_fits_into_six_minutes(monkeypatch, tmp_path):
    assert sum(part.seconds for part in gpu.FIRST) <= gpu.FIRST_SECONDS == 360
    began = []

    def run(command, **_):
        began.append(command[command.index("--part") + 1])
        return subprocess.CompletedProcess(command, 0)

    monkeypatch.setattr(gpu.subprocess, "run", run)
    for minutes, expected in ((6, gpu.FIRST), (10, gpu.DAY)):
        began.clear()
        assert gpu.day(tmp_path, 60 * minutes, True, [64], [], str(tmp_path)) == []
        assert began == ["first", *(part.name for part in expected)]


@pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler (cc)")
@pytest.mark.parametrize(("name", "regret"), [("ucb1", 94.0), ("exp3", 81.4)])
def test_peers_in_c_play_what_we_play(name, regret, tmp_path):
    """Text for a card, by a C compiler. `our_ucb1` and `our_exp3` have these means on 4,096 lanes of 500 plays."""
    words = "static struct { int x; } blockIdx, blockDim = {1}, threadIdx;\n"
    words += "typedef struct { unsigned x, y, z, w; } uint4;\n#define make_uint4(...) ((uint4){__VA_ARGS__})\n"
    (wrote,) = (texts for by, (_, _, texts) in gpu_peers.peers(name).items() if by.startswith("CuPy"))
    text = "".join(wrote[:2]).replace('extern "C" __global__', "static").replace("__device__", "static")
    lanes = "for (; blockIdx.x < lanes; blockIdx.x++) play(means, plays, seed, lanes, out);"
    given = "const float *means, int plays, unsigned seed, int lanes, float *out"
    head = "#include <math.h>\n#include <stdbool.h>\n"
    (tmp_path / "peer.c").write_text(f"{head}{words}{text}void all({given}) {{ {lanes} }}\n")
    command = ["cc", "-O1", "-shared", "-fPIC", "-w", "-o", tmp_path / "peer.so", tmp_path / "peer.c", "-lm"]
    subprocess.run(command, check=True)
    means, out = np.float32(gpu_peers.MEANS), np.zeros((20, 4096), np.float32)
    play = ctypes.CDLL(str(tmp_path / "peer.so")).all
    play(means.ctypes.data_as(ctypes.c_void_p), 500, 0, 4096, out.ctypes.data_as(ctypes.c_void_p))
    assert out[-1].mean() == pytest.approx(regret, abs=0.6)  # a standard error is 0.1
    assert np.all(np.diff(out, axis=0) >= 0) and out[0].max() <= 25 * 0.8001


def test_the_table_of_peers():
    assert gpu_peers.table([]) == "No card has played these yet: their rows are to come.\n"
    assert gpu_peers.count_lines(("int x;\n\n// why\n  return x;\n", gpu_peers.why_missing)) == 2 + 9
    shared = {"part": "peers", "name": "ucb1", "lanes": 128, "lines": 4}
    played = shared | {"same_game": True, "rate": 4e9, "to_numpy": 1e9, "first": 2.0}
    rows = [
        played | {"by": "our kernel"},
        played | {"by": "our scan", "rate": 5e9},
        played | {"by": "Numba, xoroshiro128p", "rate": 2e9, "first": 0.5},
        played | {"by": "JAX, rbg", "rate": 9e9, "same_game": False},
        shared | {"by": "CuPy, Philox", "missing": "ModuleNotFoundError: No module named 'cupy'"},
    ]
    found = gpu_peers.table(rows)
    assert "| `ucb1` | 128 | Numba, xoroshiro128p | 2e+09 | 1e+09 | 0.5 | 4 |" in found
    assert "| JAX, rbg | plays something else | - | - | 4 |" in found
    assert "| CuPy, Philox | ModuleNotFoundError: No module named 'cupy' | - | - | 4 |" in found
    assert found.endswith("xoroshiro128p to the end of its first call (4.0 times, `ucb1`, 128 lanes).\n")


def test_the_table_of_a_gpu_day():
    rows = [
        {"part": "about", "name": "device", "kind": "NVIDIA H200", "jax": "0.11.2"},
        {"part": "rates", "name": "ucb1", "lanes": 131_072, "form": "kernel", "rate": 6e10},
        {"part": "rates", "name": "ucb1", "lanes": 131_072, "form": "scan", "rate": 3e9},
        {"part": "sweeps", "name": "ucb1", "lanes": 131_072, "rate": 1.4e10, "scan": 2e9},
        {"part": "rates", "name": "thompson", "lanes": 131_072, "form": "scan", "rate": 4e8},
        {"part": "rates", "name": "thompson", "lanes": 131_072, "form": "kernel", "error": "out of memory"},
    ]
    found = gpu.table(rows)
    assert found.startswith("NVIDIA H200, jax 0.11.2")
    assert "| `ucb1` | 131,072 | 6e+10 | 3e+09 | 20.0 | 1.4e+10 |" in found
    assert "| `thompson` | 131,072 | - | 4e+08 | - | - |" in found


@pytest.mark.dealt(8)
def test_noise_that_does_not_keep_what_it_is_given():
    shown = json.loads((ROOT / "docs" / "figures" / "audit.json").read_text())["published"]
    claims = audit.published()
    assert list(claims) == list(shown)
    for name, one in claims.items():
        assert one.spent > 1.1 * one.claimed[0] or one.spent == float("inf"), name
        spent = "inf" if one.spent == float("inf") else pytest.approx(one.spent, rel=1e-6)
        assert shown[name]["spent"] == spent, name
        told = jb.audit(one.algorithm, runs=40_000, whole=one.whole)
        assert told.claimed == pytest.approx(one.claimed)
        assert told.refuted == shown[name]["refuted"], name
        assert told.epsilon_lower < one.spent

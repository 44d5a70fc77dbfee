"""Sweeps that are killed, interrupted and robbed of their machines end bitwise like those that were not.

    KILLS=20 python -m pytest tests/sweeps/test_faults.py -s

prints what happened at full size; without KILLS the same happens on a small scale.
"""

import json
import os
import random
import re
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import fresh_process
import numpy as np
import pytest
from dealt import dealt

import jaxbandits as jb
from jaxbandits.cli import main
from jaxbandits.reports import output
from jaxbandits.sweeps.compilation.caller import Caller, CallerLeft
from jaxbandits.sweeps.engines.local import LocalRun
from jaxbandits.sweeps.engines.strangers import StrangerRun

KILLS = int(os.environ.get("KILLS", "4"))
HERE = Path(__file__).parent
CHUNK = re.compile(r"[0-9a-f]{64}\.\d+-\d+\.npz")

# A second of work on one core, in calls of a fraction of it.
FILE = """
horizon = {horizon}
seeds = 256
checkpoints = 50
memory = "600KB"
environment = {{name = "bernoulli_losses", means = [0.2, 0.4, 0.5, 0.6, 0.8]}}
algorithm = ["private_batched", "htinf", {{name = "exp3", learning_rate = 0.01, mixing = 0.1}}]
grid = {{epsilon = [0.1, 0.3, 1.0]}}
"""
# A child that says what it is doing, one line each, as it does it.
CHILD = """
import os, signal, sys
# a job in the background of a shell ignores it, and so do its children
signal.signal(signal.SIGINT, signal.default_int_handler)
log = os.open(sys.argv[1], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
def say(*words):
    os.write(log, (" ".join(map(str, words)) + "\\n").encode())
from jaxbandits import cli
from jaxbandits.sweeps import estimate
from jaxbandits.sweeps.engines import local, one_call
from jaxbandits.sweeps.storage import store
from jaxbandits.reports import output
import jaxbandits as jb
output.draw = lambda *args, **options: []
jb.cores(1)
one_call.KEEP_SECONDS, one_call.KEEP_SHARE = 0.1, 0.5
printed = estimate.print_progress
def to_the_log(text):
    say(text)
    printed(text)
estimate.print_progress = to_the_log
play, write = local.play_call, store.Store.write_file
def play_call(task, *args, **keywords):
    say("play", task.cells, task.first, keywords["begun"][0].window if keywords.get("begun") else 0)
    made = play(task, *args, **keywords)
    say("played", task.cells, task.first)
    return made
def write_file(self, path, content):
    say("write", path.name)
    write(self, path, content)
    say("written", path.name)
local.play_call, store.Store.write_file = play_call, write_file
sys.exit(cli.main(sys.argv[2:]))
"""


def start(log, *arguments, config=None):
    return fresh_process.start(CHILD, log, *arguments, cwd=HERE, config=config)


def lines(log):
    return log.read_text().splitlines() if log.exists() else []


def doing(said):
    """What a process was about when its log ended."""
    open_calls = sum(line.startswith("play ") for line in said) - sum(line.startswith("played ") for line in said)
    open_writes = sum(line.startswith("write ") for line in said) - sum(line.startswith("written ") for line in said)
    return "writing" if open_writes else "computing" if open_calls else "between" if said else "starting"


def wait_for(log, word, process, beyond=0, patience=120):
    """Until the log holds more than `beyond` lines that begin with a word, or the process is over."""
    until = time.monotonic() + patience
    while time.monotonic() < until and process.poll() is None:
        if sum(line.startswith(word) for line in lines(log)) > beyond:
            return True
        time.sleep(0.005)
    return False


@pytest.fixture(scope="module", autouse=True)
def _nothing_is_drawn():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(output, "draw", lambda *args, **options: [])
        yield


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    path = tmp_path_factory.mktemp("sweep") / "run.toml"
    path.write_text(FILE.format(horizon=100_000 if KILLS > 10 else 5_000))
    return path


@pytest.fixture(scope="module")
def whole(file):
    """The bytes of an uninterrupted run's results."""
    out = file.parent / "whole"
    assert main(["run", str(file), "--out", str(out), "--quiet"]) == 0
    return (out / "results.nc").read_bytes()


def results(out):
    return (out / "results.nc").read_bytes()


@pytest.mark.compiles(20)  # and what the uninterrupted run compiles, whose bytes are kept
def test_kill_9_at_random_moments(file, whole, tmp_path):
    out, chance, states, kills = tmp_path / "out", random.Random(7), Counter(), 0
    logs, resumed = [], 0
    while True:
        logs.append(tmp_path / f"log{len(logs)}")
        child = start(logs[-1], "run", file, "--out", out, "--quiet")
        if kills < KILLS and wait_for(logs[-1], "play", child):
            if kills % 4 == 3:  # one in four just after a write began: within milliseconds of work
                wait_for(logs[-1], "write ", child, beyond=chance.randrange(3))
            else:
                time.sleep(chance.uniform(0.0, 1.2 if KILLS > 10 else 0.2))
            if child.poll() is None:
                child.kill()
                kills += 1
        child.wait()
        said = lines(logs[-1])
        resumed += any(re.match(r"play .* [1-9]\d*$", line) for line in said)
        if child.returncode == 0:
            break
        assert child.returncode == -signal.SIGKILL, child.output[1]
        states[doing(said)] += 1
    print(f"\n{kills} kills while {dict(states)}; {resumed} of {len(logs)} runs went on inside a horizon")
    assert results(out) == whole
    seen = [lines(log) for log in logs]
    begun = Counter(x.split()[1] for said in seen for x in said if x.startswith("write ") and CHUNK.search(x))
    cut_off = Counter(said[-1].split()[1] for said in seen if said and said[-1].startswith("write "))
    kept = [path.name for path in (out / "chunks").rglob("*.npz")]
    assert kept and all(1 <= begun[name] <= 1 + cut_off[name] for name in kept)  # only what was in flight is done again
    seeds = Counter((name[:64], s) for name in kept for s in range(*map(int, name[65:-4].split("-"))))
    assert set(seeds.values()) == {1} and len(seeds) == 5 * 256
    assert kills >= min(KILLS, 3) and sum(states[s] for s in ("computing", "writing")) >= 0.75 * kills


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM"])
def test_an_interrupted_run_says_how_to_go_on(file, whole, tmp_path, name):
    out, log = tmp_path / "out", tmp_path / "log"
    child = start(log, "run", file, "--out", out, "--quiet")
    assert wait_for(log, "written ", child, beyond=3)
    child.send_signal(getattr(signal, name))
    code, said = child.wait(60), child.output[1]
    assert code == 130 and "Traceback" not in said, said
    assert said.strip().splitlines()[-1].endswith(f"Go on with: jaxbandits run {file} --out {out}")
    before = {p for p in (out / "chunks").rglob("*.npz")}
    assert before and not (out / "results.nc").exists()
    assert main(said.strip().splitlines()[-1].split("jaxbandits ", 1)[1].split()) == 0
    assert results(out) == whole


STUCK = CHILD.replace(
    "play, write =",
    """import time
def compiling(*_):
    say("compiling")
    time.sleep(3600)
local._compile = compiling
play, write =""",
)


def test_an_interrupt_while_programs_are_compiled_is_answered_and_a_second_one_waits_for_nothing(file, tmp_path):
    """What compiles cannot be stopped, so that the first one is answered in words."""
    out, log = tmp_path / "out", tmp_path / "log"
    child = fresh_process.start(STUCK, log, "run", file, "--out", out, "--quiet", cwd=HERE)
    assert wait_for(log, "compiling", child) and wait_for(log, "written ", child, beyond=3)
    child.send_signal(signal.SIGINT)
    assert wait_for(log, "stopping", child)
    child.send_signal(signal.SIGINT)
    assert child.wait(60) == 130 and "Traceback" not in child.output[1]
    assert "\nstopping after what is being compiled; Ctrl-C again stops now\n" in "\n" + child.output[1]


def test_two_workers_and_one_is_killed(file, whole, tmp_path):
    out, logs = tmp_path / "out", [tmp_path / "log0", tmp_path / "log1"]
    workers = [start(log, "worker", file, "--shard", f"{i}/2", "--out", out, "--quiet") for i, log in enumerate(logs)]
    assert wait_for(logs[1], "written ", workers[1], beyond=3)
    workers[1].kill()
    assert workers[0].wait(timeout=300) == 0
    workers[1].wait()
    there = len(list((out / "chunks").rglob("*.npz")))
    last = tmp_path / "log2"
    child = start(last, "run", file, "--out", out, "--quiet")
    assert child.wait(timeout=300) == 0, child.output[1]
    names = [line.split()[1] for log in (*logs, last) for line in lines(log) if line.startswith("written ")]
    chunks = [n for n in names if CHUNK.fullmatch(n)]
    assert len(set(chunks)) == len(chunks) and there > 0
    assert results(out) == whole
    shards = [{n for n in lines(log) if n.startswith("written ")} for log in logs]
    assert shards[0] and shards[1]


def test_two_runs_at_once_do_no_harm(file, whole, tmp_path):
    out, logs = tmp_path / "out", [tmp_path / "log0", tmp_path / "log1"]
    runs = [start(log, "run", file, "--out", out, "--quiet") for log in logs]
    for run in runs:
        assert run.wait(timeout=300) == 0, run.output[1]
    assert results(out) == whole and not list(out.rglob("*.bad"))


def test_devices_share_a_store(file, whole, tmp_path):
    """Begun on two forced devices, gone on with on four, merged on one."""
    out = tmp_path / "out"
    for devices in (2, 4):
        log = tmp_path / f"log{devices}"
        child = start(log, "run", file, "--out", out, "--quiet", config={"jax_num_cpu_devices": devices})
        assert wait_for(log, "written ", child, beyond=2)
        child.kill()
        child.wait()
    assert main(["run", str(file), "--out", str(out), "--quiet"]) == 0
    assert results(out) == whole


CLUSTER = """
import json, os, signal, sys, threading, time
import ray
from ray.cluster_utils import Cluster
import jaxbandits as jb
from jaxbandits.sweeps.toml_file import read_config
from jaxbandits.sweeps.storage.store import Store

file, out, shared, faults = sys.argv[1], sys.argv[2], sys.argv[3] == "shared", sys.argv[4] == "faults"
cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
nodes = [cluster.add_node(num_cpus=1) for _ in range(2)]
ray.init(address=cluster.address, log_to_driver=False)
done = []

def workers():
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            if open(f"/proc/{pid}/cmdline", "rb").read().startswith(b"ray::_call"):
                found.append(int(pid))
        except OSError:
            pass
    return found

def finished():
    return len([1 for _, _, names in os.walk(os.path.join(out, "chunks")) for n in names if n.endswith(".npz")])

def strike():
    while finished() < 2 or not (running := workers()):  # asked once: between two calls a worker has another name
        time.sleep(0.01)
    os.kill(running[0], signal.SIGKILL)
    done.append("worker")
    before = finished()
    while finished() < before + 2:
        time.sleep(0.01)
    struck = finished()
    cluster.remove_node(nodes[0], allow_graceful=False)
    done.append("node")
    done.append(struck)

if not shared:  # workers that see another directory under this name
    Store.token = "elsewhere"
if faults:
    threading.Thread(target=strike, daemon=True).start()
settings = read_config(file)
ds = jb.sweep(**settings, store=out, engine="ray", progress=False)
print(json.dumps({"done": done[:2], "left": finished() - done[2] if faults else None}), flush=True)
ray.shutdown()
cluster.shutdown()
os._exit(0)
"""


@pytest.mark.parametrize("shared, faults", dealt([("shared", "faults"), ("apart", "calm")], 4, [("shared", "faults")]))
def test_a_ray_cluster(file, whole, tmp_path, shared, faults):
    """Three nodes. With faults: a worker and then a node are killed mid-sweep."""
    pytest.importorskip("ray")
    if not sys.platform.startswith("linux"):
        pytest.skip("finds Ray's workers through /proc")
    out = tmp_path / "out"
    command = [sys.executable, "-c", CLUSTER, str(file), str(out), shared, faults]
    done = subprocess.run(command, capture_output=True, text=True, timeout=400, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    said = json.loads(next(line for line in done.stdout.splitlines() if line.startswith("{")))
    assert said["done"] == (["worker", "node"] if faults == "faults" else []), done.stderr[-3000:]
    assert faults == "calm" or said["left"] > 0  # there was something left to compute when the node was lost
    assert results(out) == whole


@pytest.mark.dealt(4)
def test_ray_reports_errors_of_python_at_the_end(tmp_path):
    """An error inside a user's algorithm is not tried again; the rest is kept."""
    pytest.importorskip("ray")
    script = """
import sys, jaxbandits as jb, ray, os
sys.path.insert(0, sys.argv[2])
import my_module
ray.init(address="local", num_cpus=2, log_to_driver=False, include_dashboard=False)
arms = jb.environments.bernoulli_arms(means=[0.2, 0.8])
try:
    jb.sweep({"mine": my_module.mine, "broken": my_module.broken}, arms, horizon=50, seeds=16, checkpoints=4,
             store=sys.argv[1], engine="ray", progress=False)
except jb.SweepError as error:
    print(error)
    print(error.failures[0][3], flush=True)
ray.shutdown()
"""
    (tmp_path / "my_module.py").write_text(
        "import jax\nimport jaxbandits as jb\n\n\ndef mine(*, num_arms, horizon):\n"
        "    return jb.algorithms.ucb1(num_arms=num_arms, horizon=horizon)\n\n\n"
        # only for the seeds of a call: what fails for one lane, or for two points, is said before the run
        "@jax.custom_batching.custom_vmap\ndef closing(x):\n    return x\n\n\n"
        "@closing.def_vmap\ndef _(lanes, batched, x):\n    if lanes in range(16, 1000):\n"
        "        raise ZeroDivisionError('never closed')\n    return x, batched[0]\n\n\n"
        "def close(params, state, draws, t):\n    return jax.tree.map(closing, state)\n\n\n"
        "def broken(*, num_arms, horizon):\n    made = mine(num_arms=num_arms, horizon=horizon)\n"
        "    span = made.schedule[0]._replace(close=True)\n"
        "    return made._replace(program=program._replace(close=close), schedule=(span,), "
        "version=('broken', 1, ()))\n\n\n"
        "program = jb.algorithms.ucb1(num_arms=2, horizon=50).program\n"
    )
    out = tmp_path / "out"
    command = [sys.executable, "-W", "ignore", "-c", script, str(out), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    for words in ("1 of 2 calls failed", "ZeroDivisionError: never closed", "my_module.py"):
        assert words in done.stdout, done.stderr[-2000:]
    arms = jb.environments.bernoulli_arms(means=[0.2, 0.8])
    alone = jb.sweep({"mine": jb.algorithms.ucb1}, arms, horizon=50, seeds=16, checkpoints=4, progress=False)
    kept = [p for p in (out / "chunks").rglob("*.npz")]
    with np.load(kept[0]) as chunk:
        np.testing.assert_array_equal(chunk["regret"], alone.regret[0])
    assert len(kept) == 1


@pytest.mark.dealt(4)
def test_sigterm_on_a_cluster_is_a_ctrl_c(tmp_path):
    """Ray has a handler of its own, which ends the process with a C++ trace and exit code 134."""
    pytest.importorskip("ray")
    file, out, log = tmp_path / "run.toml", tmp_path / "out", tmp_path / "log"
    file.write_text(FILE.format(horizon=2_000_000))  # more than can be played before the signal
    with open(log, "w") as told:
        command = [sys.executable, "-m", "jaxbandits", "run", str(file), "--out", str(out), "--engine", "ray"]
        child = subprocess.Popen(command, stdout=told, stderr=told)
        try:
            until = time.monotonic() + 120
            while time.monotonic() < until and child.poll() is None and "runs to compute" not in log.read_text():
                time.sleep(0.1)
            child.send_signal(signal.SIGTERM)
            assert child.wait(60) == 130, log.read_text()[-2000:]
        finally:
            child.kill()
    assert f"Go on with: jaxbandits run {file} --out {out} --engine ray" in log.read_text()


@pytest.mark.parametrize("stop", [LocalRun.stop, StrangerRun.stop])
def test_calls_that_wait_for_the_caller_are_let_go_when_a_run_stops(stop):
    caller, found = Caller(), []

    def ask(begun):
        begun.set()
        try:
            caller.run_in_caller(lambda: 1)
        except CallerLeft as left:
            found.append(left)

    waits = [threading.Event() for _ in range(2)]
    threads = [threading.Thread(target=ask, args=[begun], daemon=True) for begun in waits]
    threads[0].start()
    waits[0].wait(10)
    for _ in range(10_000):
        if caller._open:  # it has asked
            break
        time.sleep(0.001)
    stop(SimpleNamespace(stopping=threading.Event(), caller=caller, pending=()))
    threads[1].start()  # asks afterwards
    for thread in threads:
        thread.join(10)
    assert len(found) == 2

"""What is stored is what ran: the configuration as read, files whole or not at all, no run that waits for ever."""

import errno
import os
import threading
from argparse import Namespace
from pathlib import Path

import fresh_process
import jax
import numpy as np
import pytest
import xarray as xr
from matplotlib.figure import Figure

import jaxbandits as jb
from jaxbandits import forks
from jaxbandits.cli import _command, main
from jaxbandits.reports import output, plot
from jaxbandits.reports.page.runs import run_again, runs
from jaxbandits.sweeps.execution import SweepRun
from jaxbandits.sweeps.storage import store
from jaxbandits.sweeps.storage.dataset_file import NetcdfFile
from jaxbandits.sweeps.toml_file import config_arguments, is_passing, parse_toml
from jaxbandits.validation import path_of

ARMS = jb.environments.bernoulli_arms(means=[0.2, 0.8])
RUN = (
    'horizon = 20\r\nseeds = 2\r\nalgorithm = "ucb1"\r\nenvironment = {name = "bernoulli_arms", means = [0.2, 0.8]}\r\n'
)


def test_the_configuration_is_what_was_read_and_is_there_before_the_run(tmp_path, monkeypatch, capsys):
    file, out = tmp_path / "x.toml", tmp_path / "out"
    file.write_bytes(RUN.encode())
    play = SweepRun._play

    def edit_and_play(self, *given):
        assert (out / "config.toml").read_bytes() == RUN.encode()
        file.write_text("the next experiment")
        return play(self, *given)

    monkeypatch.setattr(SweepRun, "_play", edit_and_play)
    assert main(["run", str(file), "--out", str(out), "--quiet"]) == 0, capsys.readouterr().err
    assert (out / "config.toml").read_bytes() == RUN.encode()
    # a run that is refused leaves the other's configuration alone
    file.write_text(RUN.replace("0.2", "0.3"))
    assert main(["run", str(file), "--out", str(out), "--quiet"]) == 2
    assert (out / "config.toml").read_bytes() == RUN.encode()


def test_a_result_keeps_its_configuration_until_another_replaces_it(tmp_path, monkeypatch, capsys):
    file, out = tmp_path / "x.toml", tmp_path / "out"
    run = ["run", str(file), "--out", str(out), "--quiet"]
    file.write_text(RUN)
    assert main(run) == 0
    file.write_text(second := RUN.replace('"ucb1"', '"moss"'))
    with monkeypatch.context() as patch:
        patch.setattr(SweepRun, "_play", lambda *given: (_ for _ in ()).throw(OSError("killed")))
        assert main(run) == 1
    assert (out / "config.toml").read_bytes() == RUN.encode()
    assert jb.load(out).algorithm.values.tolist() == ["ucb1"]
    assert main(run) == 0
    assert (out / "config.toml").read_bytes() == second.encode() and jb.load(out).algorithm.item() == "moss"
    # a sweep that Python stores there is not what that file says
    (out / "config.toml").write_text(f'caption = "of moss"\n{second}')
    (own,) = runs(out)
    assert (own.caption, own.kept) == ("of moss", out / "config.toml")
    jb.sweep("exp3", ARMS, horizon=20, seeds=2, store=out, progress=False)
    (other,) = runs(out)
    assert other.kept is None and other.caption == "" and '"exp3"' in other.toml and "moss" not in other.toml
    assert run_again(other) == f"jaxbandits run FILE.toml --out {out}"
    assert main(["plot", str(out), "--out", str(tmp_path / "drawn")]) == 0, capsys.readouterr().err


def test_the_working_directory_may_change_while_a_sweep_runs(tmp_path, monkeypatch):
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    move = lambda *given: os.chdir(tmp_path / "elsewhere")
    ds = jb.sweep("ucb1", ARMS, horizon=20, seeds=2, store="run", progress=False, on_chunk=move)
    assert jb.load(tmp_path / "run").identical(ds) and not any((tmp_path / "elsewhere").iterdir())


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes with names here")
def test_a_pipe_is_read_once_and_lies_in_the_working_directory(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    np.savetxt("losses.csv", np.eye(20, 3), delimiter=",")
    os.mkfifo(pipe := tmp_path / "folder.fifo")
    text = 'horizon = 20\nseeds = 2\nalgorithm = "exp3"\nenvironment = {name = "loss_table", path = "losses.csv"}\n'
    write = f"open({str(pipe)!r}, 'w').write({text!r})"
    writer = fresh_process.start(write)
    assert main(["run", str(pipe), "--out", "out", "--quiet"]) == 0, capsys.readouterr().err
    assert writer.wait() == 0
    kept = f'folder = ".."  # of the data and modules named here\n{text}'
    assert Path("out/config.toml").read_text() == kept
    # what is named in it lies beside the working directory, too, and no command names a pipe again
    monkeypatch.chdir("out")
    raw = parse_toml(pipe, kept.encode())
    assert config_arguments(raw, pipe)["environment"].keywords["losses"].shape == (20, 3)
    for command, out, again in (
        ("run", "b", str(tmp_path / "b/config.toml")),
        ("run", "out", "FILE"),
        ("worker", "b", "FILE"),
    ):
        given = Namespace(command=command, file=pipe, out=tmp_path / out, seeds=None, shard="0/2")
        assert _command(given, command).split()[2] == again  # of an earlier result the configuration is its own
    assert (
        _command(Namespace(command="run", file=Path("x.toml"), out=None, seeds=None), "run") == "jaxbandits run x.toml"
    )
    assert main(["run", str(pipe)]) == 2 and "give --out DIR" in capsys.readouterr().err
    files = "/dev/stdin", "/dev/fd/63", "/proc/7/fd/63", "/dev/shm/x.toml", "x.toml"
    assert [is_passing(Path(x)) for x in files] == [True, True, True, False, False]


def test_a_folder_is_named_from_where_the_configuration_lies(tmp_path, monkeypatch, capsys):
    """The run goes into the folder of its data: the file named it from elsewhere."""
    (data := tmp_path / "data").mkdir()
    np.savetxt(data / "losses.csv", np.eye(20, 3), delimiter=",")
    text = 'horizon = 20\nseeds = 2\nalgorithm = "exp3"\nenvironment = {name = "loss_table", path = "losses.csv"}\n'
    (tmp_path / "x.toml").write_text(f'folder = "data"\n{text}')
    assert main(["run", str(tmp_path / "x.toml"), "--out", str(data), "--quiet"]) == 0, capsys.readouterr().err
    assert (data / "config.toml").read_text() == f'folder = "."  # of the data and modules named here\n{text}'
    assert main(["run", str(data / "config.toml"), "--out", str(data), "--quiet"]) == 0, capsys.readouterr().err


def test_a_full_disk_leaves_the_earlier_file_and_the_process(tmp_path):
    script = f"""
import resource, signal
import numpy as np, xarray as xr
import jaxbandits as jb
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
small, large = (xr.Dataset({{"regret": ("t", np.arange(float(n)))}}) for n in (10, 100_000))
path = jb.save(small, {str(tmp_path / "a.nc")!r})
run = lambda n: jb.sweep("ucb1", jb.environments.bernoulli_arms(means=[0.2, 0.8]), horizon=600, seeds=2,
                         grid={{"bonus_scale": [i + 1.0 for i in range(n)]}}, store={str(tmp_path / "run")!r},
                         progress=False)
first = run(1)
soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
resource.setrlimit(resource.RLIMIT_FSIZE, (30_000, hard))
for write in (lambda: jb.save(large, path), lambda: jb.save(large, path.with_name("b.nc")), lambda: run(20)):
    try:
        write()
        print("written")
    except OSError as error:
        assert "too large" in str(error) and "finished is kept" in str(error) or "make room" in str(error), error
        print(*("results.nc" in str(error)) * [1])
resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
assert jb.load(path).equals(small) and jb.load(path.with_name("run")).equals(first)
assert jb.load(jb.save(large, path)).equals(large) and run(20).sizes["bonus_scale"] == 20
print("whole")
"""
    done = fresh_process.run(script)
    assert done.returncode == 0 and done.stdout.split() == ["1", "whole"], done.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.nc", "run"]


def test_an_error_while_writing_is_raised_once_the_file_is_closed(tmp_path):
    with pytest.raises(OSError, match="make room") as raised, NetcdfFile(tmp_path / "x", "x+") as file:
        assert file.write(b"begun") == 5
        with file.hold_error():
            raise OSError(errno.ENOSPC, "No space left on device")
        assert file.write(b"more") == 4
    assert raised.value.errno == errno.ENOSPC and file.closed
    with pytest.raises(KeyboardInterrupt), NetcdfFile(tmp_path / "y", "x+") as file:
        with file.hold_error():
            raise KeyboardInterrupt  # HDF5 would go on with it
        assert file.write(b"more") == 4


def test_what_cannot_be_saved_names_the_path_and_what_to_do(tmp_path, monkeypatch):
    ds = xr.Dataset({"regret": ("t", np.arange(9.0))})
    (tmp_path / "plain").write_text("")
    for path in (tmp_path / "plain" / "x.nc", "/proc/x.nc"):
        with pytest.raises(OSError, match=r"^(\[Errno \d+\] )?save: path = .*: choose another place") as raised:
            jb.save(ds, path)
        assert str(path) in str(raised.value)
    assert [path.name for path in tmp_path.iterdir()] == ["plain"]
    assert jb.load(jb.save(ds, tmp_path / f"{'a' * 252}.nc")).identical(ds)  # 255 bytes, as file systems hold
    (tmp_path / "large").mkdir()
    (link := tmp_path / "latest.nc").symlink_to("large/x.nc")
    assert jb.save(ds, link) == link and link.is_symlink() and jb.load(tmp_path / "large" / "x.nc").identical(ds)
    computed = []
    monkeypatch.setattr(xr.Variable, "chunks", ((9,),))  # values that another library computes later
    monkeypatch.setattr(xr.Dataset, "compute", lambda self: computed.append(1) or self)
    jb.save(ds, tmp_path / "x.nc")
    assert computed == [1]


def test_a_disk_that_fills_leaves_the_earlier_picture(tmp_path, monkeypatch):
    (path := tmp_path / "a.png").write_bytes(b"earlier")

    def fail(number):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(store.os, "fsync", fail)
    with pytest.raises(OSError, match=r"a\.png .*make room or choose another place"):
        plot.save(Figure(), path)
    with pytest.raises(OSError, match=r"audit\.csv .*make room and run it again"):
        output.write_text(tmp_path / "audit.csv", "x")
    assert path.read_bytes() == b"earlier" and [x.name for x in tmp_path.iterdir()] == ["a.png"]


def test_pictures_have_names_of_their_own_that_file_systems_hold():
    taken, labels = dict[str, str](), ["a b", "a-b", "A-b", "a/b", "long " * 60, "a b"]
    stems = [output.stem_of(label, taken) for label in labels]
    assert len({stem.casefold() for stem in stems}) == 5 and stems[0] == stems[-1] == "a-b"
    assert all(len(stem.encode()) < 200 and "/" not in stem for stem in stems)
    assert output.stem_of("against_k") == "against_k" != output.stem_of("against k") != output.stem_of("against-k")


ADDRESSES = [
    "simplecache::s3://bucket/run",
    "s3://bucket/run",
    "gs://bucket/x.nc",
    "file:///tmp/x.nc",
    "https://host/x.html",
    Path("s3://bucket/run"),
]


def test_addresses_are_no_folders(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for address in ADDRESSES:
        with pytest.raises(ValueError, match=r"is an address: .*local path"):
            path_of(address)
    for local in ("a:b", "./s3:/b", "C:/runs", "a::b/c", "run/a::s3:/x"):
        assert path_of(local) == Path(local)
    with pytest.raises(ValueError, match=r"^store = "):
        jb.sweep("ucb1", ARMS, horizon=20, seeds=2, store="s3://bucket/run", progress=False)
    Path("x.toml").write_text(RUN)
    with pytest.raises(SystemExit, match="2"):
        main(["run", "x.toml", "--out", "s3://bucket/run"])
    assert "is an address" in capsys.readouterr().err and [path.name for path in tmp_path.iterdir()] == ["x.toml"]


def test_a_fork_before_the_import_is_noticed(monkeypatch):
    """JAX is in use, as here, and the process has none of its threads."""
    monkeypatch.setattr(forks.os, "register_at_fork", lambda **given: None)
    jax.numpy.zeros(2).block_until_ready()
    own = [str(threading.get_native_id())]
    for tasks, refused in ((own, True), ([*own, "1"], False)):
        monkeypatch.setattr(forks, "forks", [])
        monkeypatch.setattr(forks.os, "listdir", lambda path, tasks=tasks: tasks)
        forks.note_forks()
        assert forks.forks == [True] * refused


def test_a_process_that_was_forked_after_jax_was_used_is_refused():
    script = """
import multiprocessing
import pandas
import jaxbandits as jb

ARMS = jb.environments.bernoulli_arms(means=[0.2, 0.8])
UCB, LDP = jb.algorithms.ucb1(num_arms=2, horizon=9), jb.algorithms.ldp_ucb(num_arms=2, horizon=9, epsilon=1.0)
DOORS = {
    "sweep": lambda: jb.sweep("ucb1", ARMS, horizon=9, seeds=2, progress=False),
    "simulate": lambda: jb.simulate(UCB, ARMS),
    "tune": lambda: jb.tune("ucb1", ARMS, space={"bonus_scale": [0.5, 1.0]}, horizon=9, seeds=2, progress=False),
    "audit": lambda: jb.audit(LDP, runs=2000),
    "worst_case": lambda: jb.worst_case(
        "ucb1", ARMS, "huber", space={"value": [0.0, 1.0]}, horizon=9, seeds=2, trials=2, report_seeds=2, progress=False
    ),
    "trained": lambda: jb.trained("ucb1", ROWS, horizon=20, seeds=2),
    "policy": lambda: POLICY.arms([[0.0]]),
    "offline": lambda: jb.offline(jb.algorithms.ucb1, LOG, estimator="replay"),
    "check": lambda: jb.check(lambda *, horizon: UCB),
}

def enter(name):
    try:
        return f"{name} {type(DOORS[name]()).__name__}"
    except RuntimeError as error:
        return "refused" if "get_context('spawn')" in str(error) else str(error)

def forked(names):
    with multiprocessing.get_context("fork").Pool(1) as pool:
        return pool.map_async(enter, names).get(60)

print(forked(["sweep"]))
ROWS = jb.environments.classification(features=[[0.0], [1.0], [2.0]], labels=[0, 1, 1])
ROW = {"x": [0.0, 1.0] * 20, "arm": [0, 0, 1, 1] * 10, "click": [0.0, 1.0] * 20, "chance": [0.5] * 40}
LOG = jb.read_logged(pandas.DataFrame(ROW), arm="arm", reward="click", propensity="chance")
POLICY = jb.trained("ucb1", ROWS, horizon=20, seeds=2)
print(forked(list(DOORS)))
"""
    done = fresh_process.run(script)
    assert done.stdout.splitlines() == ["['sweep Dataset']", str(["refused"] * 9)], done.stderr

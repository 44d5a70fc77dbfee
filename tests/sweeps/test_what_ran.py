"""What is stored is what ran: the configuration as read, files whole or not at all, no run that waits for ever."""

import errno
import os
from pathlib import Path

import fresh_process
import numpy as np
import pytest

import jaxbandits as jb
from jaxbandits.cli import main
from jaxbandits.sweeps.execution import SweepRun
from jaxbandits.sweeps.storage.dataset_file import NetcdfFile
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
    assert Path("out/config.toml").read_text() == f'folder = ".."  # of the data and modules named here\n{text}'


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


ADDRESSES = ["s3://bucket/run", "gs://bucket/x.nc", "file:///tmp/x.nc", "https://host/x.html", Path("s3://bucket/run")]


def test_addresses_are_no_folders(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for address in ADDRESSES:
        with pytest.raises(ValueError, match=r"is an address: .*local path"):
            path_of(address)
    for local in ("a:b", "./s3:/b", "C:/runs"):
        assert path_of(local) == Path(local)
    with pytest.raises(ValueError, match=r"^store = "):
        jb.sweep("ucb1", ARMS, horizon=20, seeds=2, store="s3://bucket/run", progress=False)
    Path("x.toml").write_text(RUN)
    with pytest.raises(SystemExit, match="2"):
        main(["run", "x.toml", "--out", "s3://bucket/run"])
    assert "is an address" in capsys.readouterr().err and [path.name for path in tmp_path.iterdir()] == ["x.toml"]


def test_a_process_that_was_forked_after_jax_was_used_is_refused():
    script = """
import multiprocessing
import jax
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
jax.numpy.zeros(2).block_until_ready()
print(forked(list(DOORS)))
"""
    done = fresh_process.run(script)
    assert done.stdout.splitlines() == ["['sweep Dataset']", str(["refused"] * 5)], done.stderr

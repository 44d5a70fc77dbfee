"""Compiled programs are read where nobody but their user can have written: one rule for both caches, at every place."""

import errno
import os
import stat
import warnings
from types import SimpleNamespace as Row

import pytest
from jax_config import use_config

from jaxbandits.sweeps.compilation import compilation_cache, executables, trusted
from jaxbandits.sweeps.compilation.compilation_cache import processor

pytestmark = pytest.mark.skipif(not trusted.OWNERS, reason="needs owners of files")
SHARED_GROUP = 5  # of a name that no user of a test has


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """A cache two folders below one of ours, made under umask 000, with an entry of each kind."""
    home = tmp_path / "home" / "cache"
    monkeypatch.setenv("JAXBANDITS_CACHE", str(home))
    monkeypatch.setattr(trusted, "_told", set())
    before = os.umask(0)
    try:
        with use_config({"jax_compilation_cache_dir": None}):
            compilation_cache._Files(home / processor()).put("key", b"program")
            assert executables.load_or_build("key", lambda: [1]) == [1]
            yield home
    finally:
        os.umask(before)


def read():
    """What is read of both caches: of ours (plain values here, programs alike), and of JAX's."""
    ours, directory = executables.load_or_build("key", lambda: None), compilation_cache._directory()
    return ours, None if directory is None else compilation_cache._Files(directory).get("key")


PLACES = {
    "above": lambda home: [home.parent],
    "cache": lambda home: [home],
    "between": lambda home: [home / "executables", home / processor()],
    "folders": lambda home: [home / "executables" / processor(), home / processor()],
    "files": lambda home: [home / "executables" / processor() / "key", home / processor() / "key-cache"],
}


def writable_by_all(path):
    path.chmod(path.stat().st_mode | 0o022)


def writable_by_a_group(path):
    os.chown(path, -1, SHARED_GROUP)
    path.chmod(path.stat().st_mode | 0o020)


def of_another(path):
    os.chown(path, 65534, -1)


def behind_a_link_of_another(path):
    path.rename(path.with_name(f"{path.name}-elsewhere"))
    path.symlink_to(f"{path.name}-elsewhere")
    os.chown(path, 65534, -1, follow_symlinks=False)


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("fault", [writable_by_all, writable_by_a_group, of_another, behind_a_link_of_another])
def test_neither_cache_is_read_where_another_may_write(cache, place, fault):
    if fault is not writable_by_all and os.geteuid() != 0:
        pytest.skip("only root gives files away")
    assert read() == ([1], b"program")
    for path in PLACES[place](cache):
        fault(path)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        assert read() == (None, None)
        again = len(told)
        read()
    assert len(told) == again  # said once a process
    if fault is not behind_a_link_of_another or place != "files":  # a link is no file of a cache: nothing is said
        assert any("not used" in str(x.message) and "JAXBANDITS_CACHE" in str(x.message) for x in told)


def test_a_sticky_folder_and_links_and_groups_of_ones_own_are_trusted(cache, monkeypatch):
    cache.parent.chmod(0o1777)  # as /tmp
    cache.rename(cache.with_name("moved"))
    cache.symlink_to("moved")
    monkeypatch.setattr(trusted, "_without_others", lambda group, user: True)
    (cache / "executables").chmod(0o775)
    (cache / processor() / "key-cache").chmod(0o664)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert read() == ([1], b"program")


def test_what_is_made_is_its_users_alone_or_of_a_group_of_one(cache):
    for path in [cache.parent, cache, *cache.rglob("*")]:
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600), path
    assert not trusted._without_others(SHARED_GROUP, os.geteuid())
    assert not trusted._without_others(2**31 - 5, os.geteuid())  # without a name


def test_links_in_a_circle_and_folders_that_cannot_be_made_cost_time_only(cache, tmp_path):
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    (tmp_path / "file").write_text("")
    for path in (tmp_path / "a" / "x", tmp_path / "file" / "x"):
        with trusted.open_trusted(path) as folder:
            assert folder is None


def test_without_owners_the_profile_is_used_and_nothing_else(cache, tmp_path, monkeypatch):
    """As on Windows."""
    monkeypatch.setattr(trusted, "OWNERS", False)
    monkeypatch.setattr(os, "supports_dir_fd", set())
    monkeypatch.setenv("HOME", str(cache.parent))
    cache.chmod(0o777)
    assert read() == ([1], b"program")
    monkeypatch.setenv("HOME", str(tmp_path / "other"))
    with pytest.warns(UserWarning, match="outside of your profile"):
        assert read() == (None, None)


def test_what_cannot_be_a_file_of_the_cache_is_not_deleted(cache, tmp_path):
    """A folder that others may write leads anywhere: names in it are left alone."""
    (cache / "executables").chmod(0o777)
    with pytest.warns(UserWarning, match="not used"):
        assert executables.prune(0)[0] == 1
    assert (cache / "executables" / processor() / "key").exists()


def test_a_group_of_ones_name_with_others_in_it_is_not_ones_own(monkeypatch):
    import grp
    import pwd

    users = [Row(pw_name=name, pw_uid=uid, pw_gid=10 * uid) for name, uid in (("root", 0), ("me", 7), ("she", 8))]
    monkeypatch.setattr(pwd, "getpwuid", lambda uid: next(x for x in users if x.pw_uid == uid))
    monkeypatch.setattr(pwd, "getpwall", lambda: users)
    for hers, members, alone in (
        (80, [], True), (80, ["root", "me"], True), (80, ["she"], False), (70, [], False), (70, ["me"], False),
    ):  # fmt: skip
        users[2].pw_gid = hers
        monkeypatch.setattr(grp, "getgrgid", lambda group, members=members: Row(gr_name="me", gr_mem=members))
        assert trusted._without_others.__wrapped__(70, 7) is alone, (hers, members)


def test_a_list_of_access_or_one_that_cannot_be_read_is_not_trusted(monkeypatch):
    monkeypatch.setattr(trusted, "_without_others", lambda group, user: True)
    for number, alone in ((0, False), (errno.EPERM, False), (errno.ENODATA, True), (errno.ENOTSUP, True)):

        def asked(path, name, number=number):
            if number:
                raise OSError(number, "")
            return b""

        monkeypatch.setattr(os, "getxattr", asked, raising=False)
        assert trusted._alone(1, 0) is alone, number

"""Folders of compiled programs that nobody but their user can have written to.

Compiled programs are native code: whoever can write them runs code as the user that loads them. So every folder from
`/` down, and every file, must belong to the user or to root and be writable by nobody else; a folder may be if it is
sticky, such as `/tmp`, where nobody can rename what is another's. Folders are opened one in the other by their
descriptors, and files in the last one, so that what was looked at is what is read.
"""

import contextlib
import errno
import functools
import os
import stat
import uuid
import warnings
from collections.abc import Iterator
from pathlib import Path, PurePath
from typing import NamedTuple

# Windows has neither owners nor descriptors of folders: there the user's profile is the user's own.
OWNERS = hasattr(os, "geteuid") and os.open in os.supports_dir_fd
MAX_LINKS = 40  # symbolic links on the way to a folder, as in Linux
_ACCESS_LIST = "system.posix_acl_access"
_HARMLESS = os.O_RDONLY | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOFOLLOW", 0)
# O_PATH needs no right to list a folder: that of all homes may be closed.
_FOLDER = _HARMLESS | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_PATH", 0)
_FILE = _HARMLESS | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)  # a pipe of that name must not hang
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
_told: set[str] = set()  # reasons that this process has warned of


class Untrusted(Exception):
    """Another user may have written here; the text says where and why."""


class Folder(NamedTuple):
    """A folder that `open_trusted` has opened, and what may be done in it."""

    path: Path
    descriptor: int | None  # None on Windows

    def read(self, name: str) -> bytes | None:
        """A file's content; None where there is none, or one that another user may have written."""
        try:
            descriptor = os.open(self._os_path(name), _FILE, dir_fd=self.descriptor)
        except OSError:
            return None
        with open(descriptor, "rb") as file:
            about = os.fstat(descriptor)
            if not stat.S_ISREG(about.st_mode):
                return None
            if OWNERS and (reason := _fault(about, descriptor)):
                _tell(self.path / name, Untrusted(reason))
                return None
            with contextlib.suppress(OSError):  # used now
                os.utime(self._os_path(name), dir_fd=self.descriptor)
            return file.read()

    def write(self, name: str, content: bytes) -> None:
        """Write a file whole or not at all, readable and writable by its user alone."""
        part = f".{uuid.uuid4().hex}.part"
        descriptor = os.open(self._os_path(part), _NEW, 0o600, dir_fd=self.descriptor)
        try:
            with open(descriptor, "wb") as file:
                file.write(content)
            places = self._os_path(part), self._os_path(name)
            os.replace(*places, src_dir_fd=self.descriptor, dst_dir_fd=self.descriptor)
        except BaseException:
            self.delete(part)
            raise

    def delete(self, name: str) -> None:
        """Delete a file."""
        os.unlink(self._os_path(name), dir_fd=self.descriptor)

    def _os_path(self, name: str) -> str:
        return str(self.path / name) if self.descriptor is None else name


@contextlib.contextmanager
def open_trusted(path: Path) -> Iterator[Folder | None]:
    """A folder that nobody but its user can have written to, for use inside the block; it is made where it is missing.

    New folders are the user's alone (mode 700, whatever the umask). None where it cannot be made or opened, and, with a
    warning once a process, where another user may write there. The user is the effective one of the process. A group
    counts as its user where it has no other members than that user and root: then a file that the group may write is
    trusted too. A symbolic link on the way must belong to the user or root, and so must what it leads to. Where a
    system has no owners (Windows), a folder in the user's profile is used as it is, and no other.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as place, open_trusted(Path(place) / "new") as folder:
    ...     folder.write("name", b"content")
    ...     print(folder.read("name"), folder.read("another"))
    b'content' None
    """
    try:
        folder = _open_from_root(path.absolute()) if OWNERS else _in_profile(path)
    except Untrusted as reason:
        _tell(path, reason)
        folder = None
    except (OSError, RuntimeError):  # a read-only home, or none, only costs time
        folder = None
    try:
        yield folder
    finally:
        if folder is not None and folder.descriptor is not None:
            os.close(folder.descriptor)


def _open_from_root(path: Path) -> Folder:
    """The folder at a path from `/`, each folder looked at by its descriptor. Untrusted, or an OSError."""
    here, place, links = os.open("/", _FOLDER), "/", 0
    ahead = [*reversed(path.parts[1:])]
    try:
        while True:
            if reason := _fault(os.fstat(here), here):
                raise Untrusted(f"{place} {reason}")
            if not ahead:
                return Folder(path, here)
            name = ahead.pop()
            about = _stat_or_make(name, here)
            below = os.path.join(place, name)
            if stat.S_ISLNK(about.st_mode):
                if about.st_uid not in _ours():
                    raise Untrusted(f"{below} {_of_another(about.st_uid)}")
                links += 1
                if links > MAX_LINKS:
                    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), below)
                target = PurePath(os.readlink(name, dir_fd=here))
                ahead += [*reversed(target.parts[1:] if target.is_absolute() else target.parts)]
                if not target.is_absolute():
                    continue
                name, below = "/", "/"
            opened = os.open(name, _FOLDER, dir_fd=here)
            os.close(here)
            here, place = opened, below
    except BaseException:
        os.close(here)
        raise


def _stat_or_make(name: str, inside: int) -> os.stat_result:
    """What is known of a name in a folder, which becomes a folder where there is nothing."""
    try:
        return os.stat(name, dir_fd=inside, follow_symlinks=False)
    except FileNotFoundError:
        with contextlib.suppress(FileExistsError):  # another process was first
            os.mkdir(name, 0o700, dir_fd=inside)
        return os.stat(name, dir_fd=inside, follow_symlinks=False)


def _in_profile(path: Path) -> Folder:
    """A folder of the user's profile, as it is."""
    path = path.resolve()
    if not path.is_relative_to(Path.home().resolve()):
        raise Untrusted(f"{path} is outside of your profile, and this system has no owners to look at")
    path.mkdir(parents=True, exist_ok=True)
    return Folder(path, None)


def _fault(about: os.stat_result, descriptor: int) -> str:
    """Why another user may have written a file or something in a folder; an empty text where none can have."""
    if about.st_uid not in _ours():
        return _of_another(about.st_uid)
    mode = about.st_mode
    if stat.S_ISDIR(mode) and mode & stat.S_ISVTX:
        return ""
    if mode & stat.S_IWOTH or (mode & stat.S_IWGRP and not _alone(about.st_gid, descriptor)):
        return f"is one that others may write to (mode {stat.S_IMODE(mode):o})"
    return ""


def _ours() -> tuple[int, int]:
    return 0, os.geteuid()


def _of_another(owner: int) -> str:
    return f"belongs to another user (number {owner})"


def _alone(group: int, descriptor: int) -> bool:
    """Whether a group that may write has no members but the user and root, and no access list names others."""
    if hasattr(os, "getxattr"):
        try:
            os.getxattr(f"/proc/self/fd/{descriptor}", _ACCESS_LIST)
            return False
        except OSError as error:
            if error.errno not in (errno.ENODATA, errno.ENOTSUP):
                return False
    return _without_others(group, os.geteuid())


@functools.cache
def _without_others(group: int, user: int) -> bool:
    import grp
    import pwd

    try:
        names = {pwd.getpwuid(0).pw_name, pwd.getpwuid(user).pw_name}
        known = grp.getgrgid(group)
    except KeyError:  # a user or a group without a name: nobody knows its members
        return False
    # A directory of users may not list them all. A group that was made for one user has the user's name.
    if group != 0 and known.gr_name not in names:
        return False
    first = {entry.pw_name for entry in pwd.getpwall() if entry.pw_gid == group}
    return first | {*known.gr_mem} <= names


def _tell(path: Path, reason: Untrusted) -> None:
    """Warn that a folder or a file is not used, once a process."""
    text = f"compiled programs in {path} are not used: {reason}"
    if text not in _told:
        _told.add(text)
        remedy = "Take the right to write from others there (chmod go-w)"
        other = "set JAXBANDITS_CACHE to a folder of your own, or to off"
        warnings.warn(f"{text}. {remedy}, or {other}", UserWarning, stacklevel=4)

"""The manager that is a part of this package: ``orbitkv-cache-manager``, also ``python -m orbitkv.manager``.

A wheel of ``python/build-wheel`` has it in a folder beside this file: classes, the Java that runs them, and the flags that
``bin/orbitkv`` of a checkout starts it with as well. An installation from sources has the client only.
"""

from __future__ import annotations

import os
import pathlib
import shutil
import subprocess
import sys
from typing import IO, List

BINARY = "ORBITKV_CACHE_MANAGER_BINARY"

_HOME = pathlib.Path(__file__).resolve().parent / "_manager"
_CHECKOUT = pathlib.Path(__file__).resolve().parents[2] / "bin"
_NAME = "orbitkv-cache-manager"
_ENVIRONMENT = 3  # exit code: the machine lacks something


class NoManager(Exception):
    """There is nothing to start, or it does not start; the message says what to do."""


def command() -> List[str]:
    """How to start a manager; its options follow.

    It is what ``ORBITKV_CACHE_MANAGER_BINARY`` names, or the one in this package, or that of the checkout that this
    package lies in, or the one on the PATH: the first that there is.

    Raises:
        NoManager: none of them.
    """
    given = os.environ.get(BINARY)
    if given:
        return [given]
    if _HOME.is_dir():
        return [*_packaged(), "manager"]
    checkout = _CHECKOUT / _NAME
    found = str(checkout) if checkout.exists() else shutil.which(_NAME)
    if not found:
        raise NoManager(f"OKV-102: no {_NAME} found; install a wheel of python/build-wheel, or set {BINARY}")
    return [found]


def tools() -> List[str]:
    """How to start another command of the manager's program, as ``bin/orbitkv`` does; its words follow.

    Raises:
        NoManager: neither this package nor a checkout around it has it.
    """
    if _HOME.is_dir():
        return _packaged()
    if not (_CHECKOUT / "orbitkv").exists():
        raise NoManager("OKV-102: no bin/orbitkv found; install a wheel of python/build-wheel, or use a checkout")
    return [str(_CHECKOUT / "orbitkv")]


def start(folder: pathlib.Path, log: IO[bytes], *options: str) -> "subprocess.Popen[bytes]":
    """Starts a manager on ``orbitkv.sock`` and ``data`` in a folder, without HTTP, and waits until it serves.

    Raises:
        NoManager: there is none, or it ended at once; ``log`` says why.
    """
    arguments = [
        *command(),
        "--bootstrap-socket", str(folder / "orbitkv.sock"),
        "--ssd-cache-path", str(folder / "data"),
        "--http-addr", "none",
        "--json",
        *options,
    ]  # fmt: skip
    try:
        manager = subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=log)
    except OSError as e:
        raise NoManager(f"OKV-102: cannot run {arguments[0]}: {e.strerror}; look at {BINARY}, or install anew") from e
    if not manager.stdout or not manager.stdout.readline():
        manager.kill()
        manager.wait()
        raise NoManager(f"OKV-804: {arguments[0]} ended with {manager.returncode} before it served; see {log.name}")
    return manager


def _packaged() -> List[str]:
    """As the last lines of ``bin/orbitkv``: the same flags, from the same files."""
    flags = sorted((_HOME / "bin").glob("jvm.*"))
    return [
        str(_HOME / "runtime/bin/java"),
        *(f"@{file}" for file in flags),
        *os.environ.get("ORBITKV_JAVA_OPTS", "").split(),
        f"-Dorbitkv.home={_HOME}",
        f"-Dorbitkv.native={_HOME / 'native'}",
        "-cp",
        str(_HOME / "lib/*"),
        "io.orbitkv.cli.Main",
    ]


def main() -> None:
    """Becomes the manager: same process, so that signals reach it."""
    try:
        if not _HOME.is_dir():
            raise NoManager(
                "OKV-102: this installation of orbitkv has the client only; install a wheel of python/build-wheel, or run"
                " bin/orbitkv-cache-manager of a checkout"
            )
        words = [*_packaged(), "manager", *sys.argv[1:]]
        os.execv(words[0], words)
    except NoManager as e:
        print(f"orbitkv: {e}", file=sys.stderr)
    except OSError as e:
        print(
            f"orbitkv: OKV-102: cannot run {_HOME / 'runtime/bin/java'}: {e.strerror}; the wheel is for Linux with glibc on"
            " x86-64, and pip keeps its files' modes: install it with pip",
            file=sys.stderr,
        )
    sys.exit(_ENVIRONMENT)


if __name__ == "__main__":
    main()

"""Goal: the manager that is meant is the one that is started. Method: with each that there can be, without starting one."""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

from orbitkv import manager

ROOT = pathlib.Path(__file__).resolve().parents[3]


class ManagerTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="orbitkv-test-")
        self.addCleanup(folder.cleanup)
        self.home = pathlib.Path(folder.name) / "_manager"
        for patch in (
            mock.patch.dict(os.environ, {"PATH": folder.name}),
            mock.patch.object(manager, "_HOME", self.home),
            mock.patch.object(manager, "_CHECKOUT", self.home / "nowhere"),
        ):
            patch.start()
            self.addCleanup(patch.stop)
        for name in (manager.BINARY, "ORBITKV_JAVA_OPTS"):
            os.environ.pop(name, None)

    def test_the_nearest_one_is_started(self):
        with self.assertRaisesRegex(manager.NoManager, "OKV-102.*build-wheel"):
            manager.command()
        on_path = self.home.parent / "orbitkv-cache-manager"
        on_path.touch(mode=0o700)
        self.assertEqual([str(on_path)], manager.command())
        with mock.patch.object(manager, "_CHECKOUT", ROOT / "bin"):
            self.assertEqual([str(ROOT / "bin/orbitkv-cache-manager")], manager.command())
        self.home.mkdir()
        self.assertEqual(str(self.home / "runtime/bin/java"), manager.command()[0])
        os.environ[manager.BINARY] = "/opt/other"
        self.assertEqual(["/opt/other"], manager.command())

    def test_the_packaged_one_has_the_flags_of_the_checkout(self):
        """The last lines of ``bin/orbitkv``, word by word: whatever it gives the JVM, the package gives as well."""
        script = (ROOT / "bin/orbitkv").read_text()
        last = script[script.rindex("exec ") :].replace("\\\n", " ").replace('"', "").split()
        last.remove("${archived[@]}")  # classes that the checkout's Java has archived; a package has none
        (self.home / "bin").mkdir(parents=True)
        for name in ("jvm.25", "jvm.process"):
            (self.home / "bin" / name).touch()
        os.environ["ORBITKV_JAVA_OPTS"] = "-Da=b  -Xss1m"
        for shell, packaged in (
            ("$java", str(self.home / "runtime/bin/java")),
            ("$flags", str(self.home / "bin/jvm.25")),
            ("$home/cli/target/native", str(self.home / "native")),
            ("$home", str(self.home)),
            ("$classpath", str(self.home / "lib/*")),
            ("${ORBITKV_JAVA_OPTS:-}", "-Da=b -Xss1m"),
            ("$@", "bench floor"),
        ):
            last = [word.replace(shell, packaged) for word in last]
        self.assertEqual(" ".join(last[1:]), " ".join([*manager.tools(), "bench", "floor"]))

    def test_an_installation_without_one_says_so(self):
        ran = subprocess.run(
            [sys.executable, "-m", "orbitkv.manager", "--help"], cwd=ROOT / "python", capture_output=True, timeout=60
        )
        self.assertEqual(3, ran.returncode)
        self.assertIn(b"OKV-102: this installation of orbitkv has the client only", ran.stderr)


if __name__ == "__main__":
    unittest.main()

"""What the commands beside this file have in common: what they found, how they say it, and the folder that they work in."""

import contextlib
import json
import os
import pathlib
import shutil
import sys
import tempfile

from orbitkv.manager import NoManager

NOT_AVAILABLE = 3  # exit code


class Findings:
    """What did not hold in a run."""

    def __init__(self, command):
        self._command = command
        self.found = []

    def expect(self, good, what):
        """Notes that something did not hold; the run goes on."""
        if not good:
            self.found.append(what)
            self.say(what)

    def say(self, what):
        print(f"{self._command}: {what}", file=sys.stderr, flush=True)

    def end(self, result, as_json):
        """Tells the result; the exit code."""
        result["good"] = not self.found
        if self.found:
            result["problems"] = self.found
        self.say("good" if not self.found else f"{len(self.found)} PROBLEMS, see above")
        if as_json:
            print(json.dumps(result))
        return 0 if not self.found else 1


@contextlib.contextmanager
def work_folder(name):
    """A folder below TMPDIR that goes with the run."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix=f"orbitkv-{name}-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def run_command(command, body):
    """Runs it; its exit code, or 3 where there is no manager to start."""
    try:
        return body()
    except NoManager as e:
        print(f"{command}: {e}", file=sys.stderr)
        return NOT_AVAILABLE


def load_average():
    """Processes that want a processor, over the last minute: belongs beside each figure."""
    return round(os.getloadavg()[0], 2)

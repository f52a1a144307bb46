"""Starts :mod:`cpu_engine` in a process, and talks with it."""

import json
import os
import pathlib
import select
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
START_SECONDS = 240
ANSWER_SECONDS = 240

ENVIRONMENT = {
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
    "VLLM_NO_USAGE_STATS": "1",
    "DO_NOT_TRACK": "1",
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
    "OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", "1"),
    "VLLM_LOGGING_LEVEL": "INFO",
}


def connector(socket, policy="recompute", **extra):
    """What starts an engine with our connector; ``trace`` names a file for :mod:`tracing`."""
    trace = extra.pop("trace", None)
    return {
        "kv_connector": "TracingConnector" if trace else "OrbitKVConnector",
        "kv_connector_module_path": "tracing" if trace else "orbitkv.vllm",
        "kv_role": "kv_both",
        "kv_load_failure_policy": policy,
        "kv_connector_extra_config": {"orbitkv.bootstrap_socket": socket, **extra},
    }


class EngineProcess:
    """An engine; a context. Its output stands in the file ``log``."""

    def __init__(self, log, **options):
        self.log = pathlib.Path(log)
        environment = {**os.environ, **ENVIRONMENT, **options.pop("environment", {})}
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, (str(HERE), environment.get("PYTHONPATH"))))
        read, write = os.pipe()
        try:
            with open(self.log, "wb") as out:
                self.process = subprocess.Popen(
                    [sys.executable, str(HERE / "cpu_engine.py"), "--answers", str(write), "--options", json.dumps(options)],
                    stdin=subprocess.PIPE,
                    stdout=out,
                    stderr=subprocess.STDOUT,
                    pass_fds=(write,),
                    env=environment,
                    start_new_session=True,
                )
        finally:
            os.close(write)
        self._answers = os.fdopen(read, "rb", buffering=0)
        self._have = b""
        said = self._answer(START_SECONDS)
        self.refused = said.get("refused")

    def _answer(self, seconds):
        until = time.monotonic() + seconds
        while b"\n" not in self._have:
            left = until - time.monotonic()
            ready, _, _ = select.select([self._answers], [], [], max(0, left))
            got = self._answers.read(1 << 16) if ready else b""
            if not got:
                why = "said nothing in time" if left <= 0 else "has ended"
                raise AssertionError(f"the engine {why}: {self.said()[-4000:]}")
            self._have += got
        line, _, self._have = self._have.partition(b"\n")
        return json.loads(line)

    def said(self):
        return self.log.read_text(errors="replace")

    def tell(self, **what):
        """Sends a command without waiting for its answer."""
        self.process.stdin.write(json.dumps(what).encode() + b"\n")
        self.process.stdin.flush()

    def answer(self):
        """The answer to what was told."""
        return self._answer(ANSWER_SECONDS)

    def ask(self, **what):
        self.tell(**what)
        return self.answer()

    def generate(self, *prompts, **more):
        return self.ask(do="generate", prompts=[list(prompt) for prompt in prompts], **more)

    def metrics(self):
        return self.ask(do="metrics")

    def kill(self):
        """SIGKILL for the engine and what it has started."""
        os.killpg(self.process.pid, 9)
        self.process.wait()

    def close(self):
        if self.process.poll() is None:
            self.process.stdin.close()
            try:
                self.process.wait(60)
            except subprocess.TimeoutExpired:
                self.kill()
        self._answers.close()

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        self.close()

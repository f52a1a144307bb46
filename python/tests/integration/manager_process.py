"""A real manager process for tests, and what they ask of it."""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import time
import urllib.request

from orbitkv import CacheManagerClient, Family, key_chain

ROOT = pathlib.Path(__file__).resolve().parents[3]
BINARY = os.environ.get("ORBITKV_CACHE_MANAGER_BINARY", str(ROOT / "bin/orbitkv-cache-manager"))
START_SECONDS = 300  # the first start may build; the machine may be busy
BLOCK_BYTES = 65536
BLOCK_TOKENS = 16


class ManagerProcess:
    """Starts a manager in a folder of its own; the folder goes with :meth:`close`."""

    def __init__(self, *options, pool="32mb", capacity="256mb"):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="orbitkv-test-"))
        self.socket = str(self.folder / "m.sock")
        self.options = [
            "--bootstrap-socket", self.socket,
            "--ssd-cache-path", str(self.folder / "data"),
            "--ssd-cache-capacity", capacity,
            "--pool-size", pool,
            "--http-addr", "127.0.0.1:0",
            "--json",
            *options,
        ]  # fmt: skip
        self.process = None
        try:
            self.start()
        except BaseException:
            self.close()
            raise

    def start(self):
        self.process = subprocess.Popen([BINARY, *self.options], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        line = self.process.stdout.readline()
        if not line:
            said = self.process.stderr.read().decode()
            self.kill()
            raise AssertionError("the manager did not start: " + said)
        said = json.loads(line)
        self.port = said["http_port"]
        self.epoch = int(said["epoch"], 16)

    def kill(self):
        self.process.kill()
        self.process.wait()
        self._drop_pipes()

    def stop(self, seconds=60):
        """SIGTERM; the exit code."""
        self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(seconds)
        self._drop_pipes()
        return code

    def _drop_pipes(self):
        self.process.stdout.close()
        self.process.stderr.close()

    def http(self, path):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=30) as answer:
            return answer.status, answer.read().decode()

    def stats(self):
        return json.loads(self.http("/v1/stats")[1])

    def await_stats(self, condition, seconds=60):
        until = time.monotonic() + seconds
        while True:
            stats = self.stats()
            if condition(stats):
                return stats
            if time.monotonic() > until:
                raise AssertionError(f"still {stats}")
            time.sleep(0.02)

    def client(self, instance="test", **more):
        client = CacheManagerClient(self.socket, instance=instance, **{"deadline": 10.0, "transfer_deadline": 60.0, **more})
        if not client.wait_connected(60):
            raise AssertionError("the client found no manager")
        return client

    def close(self):
        if self.process is not None and self.process.poll() is None:
            self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)


def family(salt=b"", block_bytes=BLOCK_BYTES, **more):
    return Family(
        model_id="test-model",
        tokenizer_digest=b"t" * 32,
        kv_dtype="bf16",
        layout=b"test-layout",
        block_bytes=block_bytes,
        block_tokens=BLOCK_TOKENS,
        engine="test",
        hash_algorithm="orbitkv-sha256",
        weights_digest=b"w" * 32,
        tenant_salt=salt,
        **more,
    )


def keys_of(prompt, blocks):
    """Keys of a prompt that a number names."""
    return key_chain((prompt * 1_000_003 + i & 0xFFFFFFFF for i in range(blocks * BLOCK_TOKENS)), BLOCK_TOKENS)


def payload(keys, block_bytes=BLOCK_BYTES, shard=0):
    """Bytes of blocks, a function of their keys."""
    out = bytearray()
    for at in range(0, len(keys), 32):
        out += (keys[at : at + 31] + bytes([shard])) * (block_bytes // 32)
    return bytes(out)

"""Goal: clients share a manager, byte-exactly, and each harms only itself. Method: real processes."""

import ctypes
import errno
import gc
import json
import mmap
import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest

from orbitkv import Code, OrbitKvError, wire
from orbitkv.channel import Channel

from .manager_process import BINARY, BLOCK_BYTES, BLOCK_TOKENS, ROOT, ManagerProcess, family, keys_of, payload

LIBC = ctypes.CDLL(None, use_errno=True)
SEED = int(os.environ.get("ORBITKV_SEED", random.randrange(1 << 32)))
FUZZED_FRAMES = int(os.environ.get("ORBITKV_FUZZ_FRAMES", "4000"))


def soon():
    return time.monotonic() + 60


def in_another_process(code, *arguments):
    """Runs Python code beside this process; its output."""
    ran = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        cwd=ROOT / "python",
        capture_output=True,
        timeout=300,
    )
    if ran.returncode:
        raise AssertionError(ran.stderr.decode())
    return ran.stdout.decode()


PRELUDE = """
import os, sys, time
from orbitkv import *
from tests.integration.manager_process import *
client = CacheManagerClient(sys.argv[1], instance=sys.argv[2], deadline=10.0, transfer_deadline=60.0)
assert client.wait_connected(60)
chat = client.family(family())
keys = keys_of(int(sys.argv[3]), int(sys.argv[4]))
"""

SAVE = PRELUDE + """
saved = chat.save(keys, payload(keys))
assert client.sync(saved.position, durable=True, timeout=60)
print(saved.accepted)
client.close()
"""

RESTORE = PRELUDE + """
with chat.query(keys) as match:
    into = bytearray(len(keys) // 32 * BLOCK_BYTES)
    restored = match.restore(into, verify=False)
assert bytes(into[:restored * BLOCK_BYTES]) == payload(keys)[:restored * BLOCK_BYTES]
print(restored)
client.close()
"""

HOLD = PRELUDE + """
match = chat.query(keys)
print(match.blocks, flush=True)
time.sleep(600)
"""

LOOK_LATER = PRELUDE + """
match = chat.query(keys)
views = match.views()
print(len(views), flush=True)
sys.stdin.readline()
wrong = overtaken = 0
for i, view in enumerate(views):
    same = bytes(view.data) == payload(keys[i * 32 : (i + 1) * 32])
    current = view.is_current
    wrong += current and not same
    overtaken += not current
into = bytearray(len(views) * BLOCK_BYTES)
restored = match.restore(into)
wrong += into[: restored * BLOCK_BYTES] != payload(keys)[: restored * BLOCK_BYTES]
print(wrong, overtaken, flush=True)
client.close()
"""


class SharedManagerTest(unittest.TestCase):
    """Tests that leave the manager as they found it share one."""

    @classmethod
    def setUpClass(cls):
        print(f"seed {SEED}: repeat with ORBITKV_SEED", file=sys.stderr)
        cls.manager = ManagerProcess()

    @classmethod
    def tearDownClass(cls):
        cls.manager.close()

    def setUp(self):
        self.client = self.manager.client()
        self.addCleanup(self.client.close)
        self.chat = self.client.family(family())

    def test_what_one_process_saves_another_restores(self):
        self.assertEqual("20\n", in_another_process(SAVE, self.manager.socket, "one", "1", "20"))
        self.assertEqual("20\n", in_another_process(RESTORE, self.manager.socket, "two", "1", "20"))
        keys = keys_of(1, 30)
        with self.chat.query(keys) as match:
            self.assertEqual(20, match.blocks)
            into = bytearray(5 * BLOCK_BYTES)
            self.assertEqual(5, match.restore(into, start=7, count=5, verify=True))
        self.assertEqual(payload(keys)[7 * BLOCK_BYTES : 12 * BLOCK_BYTES], bytes(into))

    def test_a_query_may_start_at_any_block_and_a_save_is_idempotent(self):
        keys = keys_of(2, 12)
        first = self.chat.save(keys[: 4 * 32], payload(keys[: 4 * 32]))
        self.assertEqual((4, 0, 0), (first.accepted, first.present, first.dropped))
        blocks = [payload(keys[at : at + 32]) for at in range(0, len(keys), 32)]
        again = self.chat.save(keys, blocks)
        self.assertEqual((8, 4, 0), (again.accepted, again.present, again.dropped))
        with self.chat.query(keys[5 * 32 :]) as match:
            self.assertEqual(7, match.blocks)

    def test_mistakes_of_the_caller_are_errors_and_cost_no_connection(self):
        keys = keys_of(13, 2)
        for shard, code in ((-1, Code.BAD_ARGUMENT), (1, Code.BAD_ARGUMENT), (1 << 40, Code.BAD_ARGUMENT)):
            with self.assertRaises(OrbitKvError) as refused:
                self.chat.save(keys, payload(keys), shard=shard)
            self.assertEqual(code, refused.exception.code)
        with self.assertRaises(OrbitKvError) as refused:
            self.client.family(family(block_bytes=1 << 30)).query(keys)
        self.assertEqual(Code.BLOCK_TOO_LARGE, refused.exception.code)
        self.chat.save(keys, payload(keys))
        with self.chat.query(keys + bytes(32) * 40_000) as match:
            self.assertEqual(2, match.blocks)
            for arguments in ({"start": 1, "count": 2}, {"start": -1}, {"shard": 3}):
                with self.assertRaises(OrbitKvError):
                    match.restore(bytearray(2 * BLOCK_BYTES), **arguments)
            with self.assertRaises(OrbitKvError):
                match.restore(bytes(2 * BLOCK_BYTES))
            with self.assertRaises(OrbitKvError):
                match.restore(bytearray(2 * BLOCK_BYTES - 1))
        self.assertEqual(1, self.client.connects)
        self.assertTrue(self.client.ping())
        self.assertEqual(self.client._life.welcome.staging_bytes, self.client._life.ranges.free_bytes())

    def test_views_show_blocks_without_a_copy(self):
        keys = keys_of(3, 6)
        self.chat.save(keys, payload(keys))
        with self.chat.query(keys) as match:
            views = match.views()
            self.assertEqual(6, len(views))
            for i, view in enumerate(views):
                self.assertTrue(view.data.readonly)
                self.assertEqual(payload(keys)[i * BLOCK_BYTES : (i + 1) * BLOCK_BYTES], bytes(view.data))
                self.assertTrue(view.is_current)
            self.assertTrue(views[0].verify())
            with self.assertRaises(TypeError):
                views[0].data[0] = 1
            for view in views:
                view.close()

    def test_shards_of_a_family_make_a_hit_together(self):
        tp2 = self.client.family(family(tp_size=2))
        keys = keys_of(4, 5)
        tp2.save(keys, payload(keys, shard=0), shard=0)
        self.assertFalse(tp2.query(keys))
        tp2.save(keys[: 3 * 32], payload(keys[: 3 * 32], shard=1), shard=1)
        match = tp2.query(keys)
        self.assertEqual(3, match.blocks)
        for shard in (0, 1):
            into = bytearray(3 * BLOCK_BYTES)
            self.assertEqual(3, match.restore(into, shard=shard))
            self.assertEqual(payload(keys[: 3 * 32], shard=shard), bytes(into))
        self.manager.await_stats(lambda stats: stats["client_leases"] == 0)  # all shards are done: the lease has ended

    def test_families_never_meet(self):
        keys = keys_of(5, 4)
        self.chat.save(keys, payload(keys))
        self.assertFalse(self.client.family(family(salt=b"tenant")).query(keys))

    def test_clear_forgets_a_family(self):
        keys = keys_of(6, 4)
        cleared = self.client.family(family(salt=b"to be cleared"))
        start = self.client.events().next_sequence
        cleared.save(keys, payload(keys))
        self.assertTrue(cleared.query(keys))
        self.assertTrue(cleared.clear())
        self.assertFalse(cleared.query(keys))
        seen = self.client.events(start, wait=1.0)
        self.assertEqual(self.manager.epoch, seen.epoch)
        self.assertEqual([wire.STORED] * 4 + [wire.CLEARED], [event.kind for event in seen.events])
        self.assertEqual(keys[:32], seen.events[0].key)
        self.assertEqual(family(salt=b"to be cleared").family_id(), seen.events[0].family_id)

    def test_http_says_how_it_is(self):
        self.assertEqual((200, "ok\n"), self.manager.http("/health"))
        self.manager.await_stats(lambda stats: stats["pool_condition"] == "WHOLE")
        status, ready = self.manager.http("/ready")
        self.assertEqual((200, True, "WHOLE"), (status, *map(json.loads(ready).get, ("ready", "pool_condition"))))
        self.assertEqual(*map(json.loads(ready).get, ("pool_bytes", "usable_pool_bytes")))
        metrics = self.manager.http("/metrics")[1]
        self.assertIn("# TYPE orbitkv_sessions gauge", metrics)
        self.assertIn("orbitkv_saved_blocks_total", metrics)
        self.assertGreaterEqual(self.client.stats()["sessions"], 2)

    def test_a_forked_process_has_a_connection_of_its_own(self):
        keys = keys_of(12, 2)
        self.chat.save(keys, payload(keys))
        held = self.chat.query(keys)
        life = self.client._life
        child = os.fork()
        if child == 0:
            code = 1
            try:
                old = held.restore(bytearray(2 * BLOCK_BYTES))
                self.client.wait_connected(60)
                with self.chat.query(keys) as match:
                    into = bytearray(2 * BLOCK_BYTES)
                    code = 0 if (old, match.restore(into)) == (0, 2) and into == payload(keys) else 2
                code = code if life._arena_file < 0 else 3  # the parent's pool would stay in memory for this process
            finally:
                os._exit(code)
        for _ in range(200):  # beside the child, on the parent's connection
            self.assertEqual(2, self.chat.query(keys, query_id=1).blocks)
        self.assertEqual(0, os.waitpid(child, 0)[1])
        self.assertEqual(2, held.restore(bytearray(2 * BLOCK_BYTES)))
        self.assertEqual(1, self.client.connects)

    # ---- leases

    def test_a_lease_ends_once_and_only_by_its_instance(self):
        keys = keys_of(7, 2)
        self.chat.save(keys, payload(keys))
        match = self.chat.query(keys)
        self.assertTrue(match.renew())
        other = self.manager.client("other")
        self.addCleanup(other.close)

        def code(client, lease):
            frame = client._control(lambda op, epoch: wire.release(op, epoch, (lease,)))
            return wire.lease_codes(frame)[0][1]

        self.assertEqual(Code.FOREIGN_LEASE, code(other, match.lease))
        self.assertEqual(0, code(self.client, match.lease))
        self.assertEqual(Code.LEASE_ENDED, code(self.client, match.lease))
        self.assertEqual(Code.UNKNOWN_LEASE, code(self.client, 1 << 60))
        self.assertEqual(Code.UNKNOWN_LEASE, code(self.client, 0))
        self.assertEqual(0, match.restore(bytearray(2 * BLOCK_BYTES)))
        stats = self.manager.stats()
        self.assertGreaterEqual(min(stats["client_leases"], stats["client_leased_bytes"], stats["leases"]), 0)

    def test_queries_without_a_restore_leave_nothing(self):
        keys = keys_of(8, 2)
        self.chat.save(keys, payload(keys))
        for _ in range(3000):  # more than leases there can be
            self.assertTrue(self.chat.query(keys, query_id=1))
        self.client.close()
        self.manager.await_stats(lambda stats: (stats["client_leases"], stats["leased_bytes"]) == (0, 0))

    def test_a_stale_epoch_has_its_own_code(self):
        channel = Channel(self.manager.socket, wire.TOOL, "stale", "test", False, soon())
        self.addCleanup(channel.close)
        with self.assertRaises(OrbitKvError) as refused:
            channel.call(lambda op, epoch: wire.ping(op, epoch ^ 1), soon())
        self.assertEqual(Code.STALE_EPOCH, refused.exception.code)
        channel.call(wire.ping, soon())

    def test_a_killed_client_takes_its_leases_with_it(self):
        keys = keys_of(9, 2)
        self.chat.save(keys, payload(keys))
        child = subprocess.Popen(
            [sys.executable, "-c", HOLD, self.manager.socket, "victim", "9", "2"],
            cwd=ROOT / "python",
            stdout=subprocess.PIPE,
        )
        self.assertEqual(b"2\n", child.stdout.readline())
        self.manager.await_stats(lambda stats: stats["instances"] == 2)
        child.kill()
        child.wait()
        child.stdout.close()
        self.manager.await_stats(lambda stats: (stats["instances"], stats["sessions"]) == (1, 2))
        self.assertEqual(0, self.manager.stats()["client_leases"])

    # ---- clients that lie

    def memory_channel(self):
        channel = Channel(self.manager.socket, wire.TOOL, "liar", "test", True, soon())
        self.addCleanup(channel.close)
        for descriptor in channel.descriptors:
            self.addCleanup(os.close, descriptor)
        return channel

    def test_the_arena_cannot_be_written(self):
        channel = self.memory_channel()
        arena, generations, _ = channel.descriptors
        for name, fd, size in (
            ("arena", arena, channel.welcome.arena_bytes),
            ("generations", generations, channel.welcome.generations_bytes),
        ):
            with self.subTest(name):
                self.assert_refused(fd, size)

    def assert_refused(self, fd, size):
        with self.assertRaises(PermissionError):
            mmap.mmap(fd, size, flags=mmap.MAP_SHARED, prot=mmap.PROT_READ | mmap.PROT_WRITE)
        with self.assertRaises(PermissionError):
            os.pwrite(fd, b"x", 0)
        with self.assertRaises(PermissionError):
            os.ftruncate(fd, size // 2)
        with self.assertRaises(PermissionError):
            os.ftruncate(fd, size + 4096)
        again = os.open(f"/proc/self/fd/{fd}", os.O_RDWR)
        try:
            with self.assertRaises(PermissionError):
                mmap.mmap(again, size, flags=mmap.MAP_SHARED, prot=mmap.PROT_WRITE)
            with self.assertRaises(PermissionError):
                os.pwrite(again, b"x", 0)
        finally:
            os.close(again)
        punched = LIBC.fallocate(fd, 3, ctypes.c_long(0), ctypes.c_long(4096))  # KEEP_SIZE | PUNCH_HOLE
        self.assertEqual((-1, errno.EPERM), (punched, ctypes.get_errno()))
        mapped = LIBC_mmap(0, size, mmap.PROT_READ, mmap.MAP_SHARED, fd, 0)
        try:
            self.assertEqual(-1, LIBC.mprotect(ctypes.c_void_p(mapped), ctypes.c_size_t(4096), 3))
            self.assertEqual(errno.EACCES, ctypes.get_errno())
            self.assertEqual(-1, LIBC.madvise(ctypes.c_void_p(mapped), ctypes.c_size_t(4096), 9))  # MADV_REMOVE
            self.assertIn(ctypes.get_errno(), (errno.EACCES, errno.EPERM))
        finally:
            LIBC.munmap(ctypes.c_void_p(mapped), ctypes.c_size_t(size))

    def test_staging_keeps_its_size(self):
        staging = self.memory_channel().descriptors[2]
        for size in (0, 4096, 1 << 40):
            with self.assertRaises(PermissionError):
                os.ftruncate(staging, size)

    def test_places_outside_of_staging_are_refused(self):
        channel = self.memory_channel()
        opened = wire.family_opened(
            channel.call(lambda op, epoch: wire.open_family(op, epoch, family().encoded()), soon())
        )
        keys = keys_of(10, 1)
        size = channel.welcome.staging_bytes
        for offset in (size, size - BLOCK_BYTES + 1, (1 << 64) - 1, 1 << 63):
            granted = wire.granted(
                channel.call(lambda op, epoch: wire.save_begin(op, epoch, opened.family, 0, None, keys), soon())
            )
            with self.assertRaises(OrbitKvError) as refused:
                channel.call(lambda op, epoch: wire.save_commit(op, epoch, granted.save, (offset,)), soon())
            self.assertEqual(Code.OUTSIDE_STAGING, refused.exception.code)
            with self.assertRaises(OrbitKvError) as refused:
                channel.call(lambda op, epoch: wire.save_commit(op, epoch, granted.save, (0,)), soon())
            self.assertEqual(Code.UNKNOWN_SAVE, refused.exception.code)

    def test_fuzzed_frames_get_typed_errors_and_others_are_served(self):
        rng = random.Random(SEED)
        keys = keys_of(11, 4)
        self.chat.save(keys, payload(keys))
        before = self.manager.stats()
        valid = [
            wire.query(1, self.manager.epoch, 1, 0, False, keys),
            wire.poll(1, self.manager.epoch, 1),
            wire.open_family(1, self.manager.epoch, family(salt=b"fuzz").encoded()),  # it may clear this one
            wire.locate(1, self.manager.epoch, 1, 0, 0, 4, 0, 4096),
            wire.done(1, self.manager.epoch, 1, 0, 4, 0),
            wire.save_begin(1, self.manager.epoch, 0, 0, None, keys),
            wire.save_commit(1, self.manager.epoch, 1, (0, 4096)),
            wire.renew(1, self.manager.epoch, (1, 2, 3)),
            wire.release(1, self.manager.epoch, (1,)),
            wire.prefetch(1, self.manager.epoch, 1, 0, keys),
            wire.stats(1, self.manager.epoch),
            wire.list_blocks(1, self.manager.epoch, 0),
            wire.hello(1, wire.TOOL, True, "fuzz", "test"),
        ]
        may_wait = [wire.sync(1, self.manager.epoch, 1, 1, 0), wire.events(1, self.manager.epoch, 0, 0)]
        waiting_share = min(0.005, 500 / FUZZED_FRAMES)  # many of these wait for a second
        channel = None
        answered = 0
        for number in range(FUZZED_FRAMES):
            if channel is None:
                channel = Channel(self.manager.socket, wire.TOOL, "fuzz", "test", rng.random() < 0.2, soon())
                for descriptor in channel.descriptors:
                    os.close(descriptor)
            frame = bytearray(rng.choice(may_wait if rng.random() < waiting_share else valid))
            for _ in range(rng.randrange(1, 5)):
                at = rng.randrange(wire.LENGTH_BYTES, len(frame))
                frame[at] = rng.choice((0, 1, 0xFF, rng.randrange(256)))
            if rng.random() < 0.3:
                frame = frame[: rng.randrange(wire.MESSAGE, len(frame) + 1)]
            patience = 2.0
            if rng.random() < 0.02:
                frame = bytearray(rng.randbytes(rng.randrange(1, 200)))
                patience = 0.02  # some claim more than they have, and are never answered
            else:
                frame[:4] = (len(frame) - 4).to_bytes(4, "little")
            try:
                channel.socket.settimeout(patience)
                channel.socket.sendall(frame)
                if rng.random() < 0.01:
                    raise OSError("gone in the middle of it")
                answer = self.whole_frame(channel.socket)
                self.assertIn(wire.parse(answer).template, range(wire.WELCOME, wire.BLOCKS_LISTED + 1))
                answered += 1
            except (OSError, EOFError):
                channel.close()
                channel = None
            if number % 500 == 0:
                self.assert_served(keys, f"frame {number}")
            if number == FUZZED_FRAMES // 10:
                early = self.manager.stats()["resident_bytes"]
        if channel is not None:
            channel.close()
        self.assertGreater(answered, FUZZED_FRAMES // 2)
        self.assert_served(keys, "at the end")
        after = self.manager.await_stats(lambda stats: stats["sessions"] == 2)
        self.assertGreater(after["requests_refused"], before["requests_refused"])
        self.assertLess(after["open_files"], before["open_files"] + 8)
        self.assertLess(after["session_bytes"], before["session_bytes"] + (1 << 20))
        self.assertLess(after["resident_bytes"], early + (128 << 20))  # of a heap of 1 GiB that is touched bit by bit

    def assert_served(self, keys, when):
        """What the frames save may take the place of these blocks: then they are saved again, and found."""
        until = time.monotonic() + 30
        into = bytearray(len(keys) // 32 * BLOCK_BYTES)
        saved = None
        while True:
            with self.chat.query(keys, query_id=1) as match:
                restored = match.restore(into)
            if restored == len(keys) // 32:
                break
            if time.monotonic() > until:
                self.fail(f"{when}: {match.blocks} blocks found, {restored} restored, {saved}, {self.manager.stats()}")
            saved = self.chat.save(keys, payload(keys))
        self.assertEqual(payload(keys), into, when)

    def whole_frame(self, connection):
        data = b""
        size = wire.LENGTH_BYTES
        while len(data) < size:
            got = connection.recv(size - len(data))
            if not got:
                raise EOFError
            data += got
            if len(data) == wire.LENGTH_BYTES:
                size = wire.frame_bytes(data)
        return data

    @unittest.skipUnless(os.geteuid() == 0, "only root can become another user")
    def test_another_user_is_refused(self):
        path = self.manager.socket
        self.assertEqual(0o600, os.stat(path).st_mode & 0o777)
        os.chmod(self.manager.folder, 0o755)
        os.chmod(path, 0o666)
        self.addCleanup(os.chmod, path, 0o600)
        child = os.fork()
        if child == 0:
            code = 1
            try:
                os.chdir(self.manager.folder)  # folders above may be closed to others
                os.setresuid(65534, 65534, 65534)
                peer = socket.socket(socket.AF_UNIX)
                peer.settimeout(30)
                peer.connect("m.sock")
                error = wire.error(wire.parse(self.whole_frame(peer)))
                code = 0 if error.code == Code.FOREIGN_USER and not peer.recv(1) else 2
            finally:
                os._exit(code)
        self.assertEqual(0, os.waitpid(child, 0)[1])


LIBC_mmap = LIBC.mmap
LIBC_mmap.restype = ctypes.c_void_p
LIBC_mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]


class LivesTest(unittest.TestCase):
    """Tests in which a manager ends."""

    def manager(self, *options, **more):
        manager = ManagerProcess(*options, **more)
        self.addCleanup(manager.close)
        return manager

    def client(self, manager, **more):
        client = manager.client(**more)
        self.addCleanup(client.close)
        return client

    def test_reported_pegaflow_225_a_killed_manager_costs_hits_and_nothing_else(self):
        manager = self.manager()
        client = self.client(manager)
        chat = client.family(family())
        keys = keys_of(20, 16)
        saved = chat.save(keys, payload(keys))
        self.assertTrue(client.sync(saved.position, durable=True, timeout=60))
        held = chat.query(keys)
        view = held.views(count=1)[0]
        for life in range(2):
            manager.kill()
            began = time.monotonic()
            self.assertFalse(chat.query(keys, deadline=1.0))
            self.assertEqual(0, held.restore(bytearray(16 * BLOCK_BYTES), deadline=1.0))
            self.assertEqual("UNAVAILABLE", chat.save(keys, payload(keys), deadline=1.0).reason)
            self.assertEqual({}, client.stats())
            self.assertLess(time.monotonic() - began, 4.0)
            self.assertEqual(payload(keys[:32]), bytes(view.data))  # memory of the old life stays as long as it is looked at
            manager.start()
            up = time.monotonic()
            while not client.is_connected:
                self.assertLess(time.monotonic() - up, 30)
                time.sleep(0.005)
            back = time.monotonic() - up
            self.assertLess(back, 2.0)
            self.assertEqual(manager.epoch, client.epoch)
            until = time.monotonic() + 60
            while not chat.query(keys).blocks == 16:
                self.assertLess(time.monotonic(), until)
            with chat.query(keys) as match:
                self.assertEqual(16, match.drive_blocks + match.host_blocks)
                into = bytearray(16 * BLOCK_BYTES)
                self.assertEqual(16, match.restore(into))
                self.assertEqual(payload(keys), bytes(into))
        self.assertEqual(3, client.connects)

    def test_memory_of_a_dead_manager_is_given_back_at_once(self):
        """Not only when Python looks for circles: pools of dead managers would take the place of the new one's."""

        def mapped():
            with open("/proc/self/maps") as maps:
                return {line.split()[4] for line in maps if "/memfd:orbitkv" in line}

        gc.collect()
        gc.disable()
        self.addCleanup(gc.enable)
        before = mapped()
        manager = self.manager()
        client = self.client(manager)
        chat = client.family(family())
        keys = keys_of(32, 4)
        chat.save(keys, payload(keys))
        with chat.query(keys) as match:
            self.assertEqual(4, match.restore(bytearray(4 * BLOCK_BYTES)))
        self.assertEqual(3, len(mapped() - before))
        manager.kill()
        until = time.monotonic() + 30
        while mapped() - before:
            self.assertLess(time.monotonic(), until, "still mapped")
            time.sleep(0.01)

    def test_blocks_come_from_the_drive(self):
        manager = self.manager()
        client = self.client(manager)
        chat = client.family(family())
        keys = keys_of(21, 40)
        saved = chat.save(keys, payload(keys))
        self.assertTrue(client.sync(saved.position, durable=True, timeout=60))
        manager.kill()  # behind a clean stop they would be brought back into host memory
        manager.start()
        self.assertTrue(client.wait_connected(60))
        until = time.monotonic() + 60
        while not client.is_connected or chat.query(keys, query_id=1).blocks < 40:
            self.assertLess(time.monotonic(), until)
        match = chat.query(keys, query_id=1)
        self.assertEqual((40, 0, 40), (match.blocks, match.host_blocks, match.drive_blocks))
        views = match.views(count=3)  # landed in this client's own memory
        self.assertEqual(payload(keys[: 3 * 32]), b"".join(view.data for view in views))
        for view in views:
            view.close()
        into = bytearray(40 * BLOCK_BYTES)
        self.assertEqual(40, match.restore(into))
        self.assertEqual(payload(keys), bytes(into))
        self.assertEqual(client._life.welcome.staging_bytes, client._life.ranges.free_bytes())

    def test_reported_LMCache_4759_the_first_large_restore_after_a_restart_ends(self):
        """100,000 tokens, by an engine that has just come, from a manager that has just come: at its deadline at the latest."""
        manager = self.manager("--hint-value-size", "4kb", pool="64mb")
        client = self.client(manager)
        blocks, watchdog = 100_000 // BLOCK_TOKENS, 5.0
        keys = keys_of(24, blocks)
        blocks_bytes = payload(keys, 4096)
        saved = client.family(family(block_bytes=4096)).save(keys, blocks_bytes, deadline=60.0)
        self.assertEqual(blocks, saved.accepted)
        self.assertTrue(client.sync(saved.position, durable=True, timeout=60))
        client.close()
        manager.kill()
        manager.start()
        engine = self.client(manager, instance="engine")
        chat = engine.family(family(block_bytes=4096))
        into = bytearray(blocks * 4096)
        restored, until = 0, time.monotonic() + 60
        while restored < blocks and time.monotonic() < until:
            began = time.monotonic()
            with chat.query(keys) as match:
                restored = match.restore(into, deadline=watchdog) if match else 0
            self.assertLess(time.monotonic() - began, watchdog + 1.0)
        self.assertEqual(blocks, restored)
        self.assertEqual(blocks_bytes, into)

    def test_a_query_may_wait_for_the_drive(self):
        manager = self.manager()
        client = self.client(manager)
        chat = client.family(family())
        keys = keys_of(22, 24)
        saved = chat.save(keys, payload(keys))
        self.assertTrue(client.sync(saved.position, durable=True, timeout=60))
        self.assertEqual(0, manager.stop())
        manager.start()
        until = time.monotonic() + 60
        while not client.is_connected or chat.query(keys, query_id=1).blocks < 24:
            self.assertLess(time.monotonic(), until)
        match = chat.query(keys, may_wait=True, query_id=1)
        self.assertTrue(match.is_pending or match.drive_blocks == 0)
        while not match.poll():
            self.assertLess(time.monotonic(), until)
        self.assertLess(len(wire.poll(1, 2, 3)), 40)  # reported_pegaflow_131: asking again resends no keys
        self.assertEqual((24, 24, 0), (match.blocks, match.host_blocks, match.drive_blocks))

    def test_a_save_takes_as_many_turns_as_it_needs(self):
        """Two turns are on their way at once where staging has room for both, one after the other where it hasn't."""
        for staging, size, blocks in (("64mb", BLOCK_BYTES, 200), ("1mb", BLOCK_BYTES, 23), ("1mb", 1 << 20, 3)):
            with self.subTest(staging=staging, size=size):
                options = ("--hint-value-size", "1mb", "--ssd-write-policy", "reuse")  # no drive that could be behind
                manager = self.manager("--staging-size", staging, *options, pool="64mb")
                client = self.client(manager)
                chat = client.family(family(block_bytes=size))
                keys = keys_of(31, blocks)
                there = chat.save(keys[:64], payload(keys[:64], size))
                self.assertEqual(2, there.accepted)
                saved = chat.save(keys, payload(keys, size))
                self.assertEqual((2, blocks - 2, 0), (saved.present, saved.accepted, saved.dropped), saved)
                into = bytearray(blocks * size)
                with chat.query(keys) as match:
                    self.assertEqual(blocks, match.restore(into))
                self.assertEqual(payload(keys, size), bytes(into))
                self.assertEqual(client._life.welcome.staging_bytes, client._life.ranges.free_bytes())
                self.assertFalse(client._life.given_up)

    def test_saves_that_nobody_went_on_with_are_forgotten(self):
        """More of them than the manager keeps: each was begun while it stood still, and its answer came too late."""
        manager = self.manager()
        client = self.client(manager)
        chat = client.family(family())
        for prompt in range(70):
            keys = keys_of(100 + prompt, 1)
            manager.process.send_signal(signal.SIGSTOP)
            self.await_stopped(manager.process.pid)
            self.assertEqual("UNAVAILABLE", chat.save(keys, payload(keys), deadline=0.01).reason)
            manager.process.send_signal(signal.SIGCONT)
            until = time.monotonic() + 60
            saved = chat.save(keys, payload(keys))
            while saved.reason == "UNAVAILABLE":  # the late answer is still to come
                self.assertLess(time.monotonic(), until)
                saved = chat.save(keys, payload(keys))
            self.assertEqual((1, ""), (saved.accepted + saved.present, saved.reason), f"after {prompt} of them")
        self.assertEqual(1, client.connects)

    def test_reported_LMCache_4123_a_stopped_manager_holds_nobody_up(self):
        manager = self.manager()
        client = self.client(manager)
        chat = client.family(family())
        keys = keys_of(23, 4)
        chat.save(keys, payload(keys))
        manager.process.send_signal(signal.SIGSTOP)
        self.await_stopped(manager.process.pid)
        try:
            slowest = 0.0
            for _ in range(20):
                began = time.monotonic()
                self.assertFalse(chat.query(keys, deadline=0.2))
                self.assertEqual("UNAVAILABLE", chat.save(keys, payload(keys), deadline=0.2).reason)
                slowest = max(slowest, time.monotonic() - began)
            self.assertLess(slowest, 2.0)
        finally:
            manager.process.send_signal(signal.SIGCONT)
        until = time.monotonic() + 60
        while chat.query(keys).blocks != 4:
            self.assertLess(time.monotonic(), until)
        self.assertEqual(1, client.connects)  # it was slow, not gone

    def await_stopped(self, pid):
        """A signal reaches the threads of a process one after the other."""
        until = time.monotonic() + 60
        while any(self.state(pid, thread) != "T" for thread in os.listdir(f"/proc/{pid}/task")):
            self.assertLess(time.monotonic(), until)

    def state(self, pid, thread):
        try:
            with open(f"/proc/{pid}/task/{thread}/stat") as file:
                return file.read().rpartition(")")[2].split()[0]
        except FileNotFoundError:
            return "T"  # it has ended

    def test_an_overtaken_reader_never_has_wrong_bytes(self):
        manager = self.manager(pool="16mb")
        client = self.client(manager)
        chat = client.family(family())
        keys = keys_of(24, 8)
        chat.save(keys, payload(keys))
        match = chat.query(keys)
        views = match.views()
        current = 8
        for prompt in range(100, 200):
            other = keys_of(prompt, 16)
            saved = chat.save(other, payload(other))
            client.sync(saved.position, timeout=60)
            for i, view in enumerate(views):
                same = bytes(view.data) == payload(keys[i * 32 : (i + 1) * 32])
                self.assertTrue(same or not view.is_current, f"block {i} changed and its view says it is current")
            current = sum(view.is_current for view in views)
            if current == 0:
                break
        self.assertEqual(0, current, "nothing was overtaken: the test shows nothing")
        into = bytearray(8 * BLOCK_BYTES)
        restored = match.restore(into)
        self.assertEqual(payload(keys)[: restored * BLOCK_BYTES], bytes(into[: restored * BLOCK_BYTES]))

    def test_a_stopped_client_holds_nobody_up_and_finds_out_that_it_was_overtaken(self):
        manager = self.manager(pool="16mb")
        client = self.client(manager)
        chat = client.family(family())
        keys = keys_of(27, 8)
        chat.save(keys, payload(keys))
        child = subprocess.Popen(
            [sys.executable, "-c", LOOK_LATER, manager.socket, "sleeper", "27", "8"],
            cwd=ROOT / "python",
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        self.addCleanup(child.stdin.close)
        self.addCleanup(child.stdout.close)
        self.addCleanup(child.wait)
        self.addCleanup(child.kill)
        self.assertEqual(b"8\n", child.stdout.readline())
        child.send_signal(signal.SIGSTOP)
        self.await_stopped(child.pid)
        before = manager.stats()["dropped_blocks"]
        for prompt in range(300, 360):  # several times the pool
            other = keys_of(prompt, 16)
            saved = chat.save(other, payload(other))
            client.sync(saved.position, timeout=60)
            with chat.query(other) as match:
                self.assertEqual(16, match.blocks)
        self.assertEqual(before, manager.stats()["dropped_blocks"])
        child.send_signal(signal.SIGCONT)
        child.stdin.write(b"\n")
        child.stdin.flush()
        wrong, overtaken = map(int, child.stdout.readline().split())
        self.assertEqual(0, wrong)
        self.assertGreater(overtaken, 0)
        self.assertEqual(0, child.wait(60))
        manager.await_stats(lambda stats: (stats["instances"], stats["client_leases"]) == (1, 0))

    def test_several_threads_share_a_client(self):
        manager = self.manager()
        client = self.client(manager)
        chat = client.family(family())
        wrong = []

        def work(number):
            for turn in range(20):
                keys = keys_of(1000 + number * 100 + turn, 4)
                chat.save(keys, payload(keys))
                with chat.query(keys) as match:
                    into = bytearray(4 * BLOCK_BYTES)
                    restored = match.restore(into, done=False)
                    if bytes(into[: restored * BLOCK_BYTES]) != payload(keys)[: restored * BLOCK_BYTES]:
                        wrong.append((number, turn))

        threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(300)
        self.assertEqual([], wrong)
        manager.await_stats(lambda stats: stats["client_leases"] == 0)
        self.assertEqual(client._life.welcome.staging_bytes, client._life.ranges.free_bytes())

    def test_sigterm_is_a_clean_stop_and_leaves_nothing(self):
        manager = self.manager()
        client = self.client(manager)
        keys = keys_of(25, 32)
        client.family(family()).save(keys, payload(keys))
        self.assertEqual(0, manager.stop())
        self.assertFalse(os.path.exists(manager.socket))
        manager.start()
        self.assertTrue(client.wait_connected(60))
        until = time.monotonic() + 60
        while not client.is_connected or client.family(family()).query(keys).blocks < 32:
            self.assertLess(time.monotonic(), until)

    def test_two_sigterms_end_it_at_once_and_lose_nothing_that_was_written(self):
        manager = self.manager()
        client = self.client(manager)
        chat = client.family(family())
        keys = keys_of(26, 32)
        saved = chat.save(keys, payload(keys))
        self.assertTrue(client.sync(saved.position, timeout=60))
        manager.process.send_signal(signal.SIGTERM)
        manager.process.send_signal(signal.SIGTERM)  # the kernel may make one of both
        self.assertIn(manager.stop(), (0, 143))
        manager.start()
        until = time.monotonic() + 60
        while not client.is_connected or chat.query(keys, query_id=1).blocks < 32:
            self.assertLess(time.monotonic(), until)
        into = bytearray(32 * BLOCK_BYTES)
        self.assertEqual(32, chat.query(keys, query_id=1).restore(into))
        self.assertEqual(payload(keys), bytes(into))

    def test_options_stand_in_a_file_too(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "manager.conf")
            for line, said in (("--no-such-option=1", "--no-such-option"), ("--pool-size=some", "--pool-size")):
                with open(path, "w") as file:
                    file.write(f"# where blocks are kept\n--ssd-cache-path {folder}/data\n{line}\n")
                ran = subprocess.run([BINARY, f"@{path}"], capture_output=True, timeout=300)
                self.assertEqual(2, ran.returncode, ran.stderr)
                self.assertIn(said, ran.stderr.decode())

    def test_options_that_cannot_be_are_refused(self):
        for options, said in (
            (["--ssd-cache-path", "/tmp", "--no-such-option"], "--no-such-option"),
            (["--ssd-cache-path", "/tmp", "--http-addr", "0.0.0.0:9091"], "loopback"),
            (["--ssd-cache-path", "/tmp", "--ssd-backend", "cufile"], "cufile"),
            (["--ssd-cache-path", "/tmp", "--ssd-write-policy", "some"], "all, reuse or duel"),
            ([], "--ssd-cache-path"),
        ):
            ran = subprocess.run([BINARY, *options], capture_output=True, timeout=300)
            self.assertEqual(2, ran.returncode, ran.stderr)
            self.assertIn(said, ran.stderr.decode())


if __name__ == "__main__":
    unittest.main()

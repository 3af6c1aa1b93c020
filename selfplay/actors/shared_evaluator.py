"""One evaluator process for many actors of a machine, so that searches on many cores fill one GPU.

The process (the server) evaluates the positions of all waiting clients as one batch. Positions and answers are in
shared memory; the socket, which only this user can open, carries requests, short replies and each network once. The
first client starts the server, which ends after ``_IDLE_S`` without clients. A GPU has two servers, between which the
actors are divided: the GPU computes the batch of one while the other copies answers.
"""

import hashlib
import json
import mmap
import os
import selectors
import socket
import struct
import subprocess
import sys
import tempfile
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import platformdirs
import safetensors.torch
import torch
from pydantic import TypeAdapter
from torch import Tensor

from engine.code_locators import source_stamp
from engine.encoding import NUM_POLICY
from engine.files import lock
from engine.game import GAME
from engine.version import installed_version
from learner.checkpoint import weights_of
from learner.inference import BackendError, NetworkEvaluator, make_evaluator, uses_kernels
from learner.network import Network, NetworkConfig, make_network
from learner.own_modules import MODULES_VARIABLE, module_files

_ROWS = 4096  # most positions of a client at once
_WIDTH = NUM_POLICY + 3
_ROW_BYTES = 16 + 4 * _WIDTH
_LONGEST_ADDRESS = 100  # bytes of a socket's path
LANES = 2  # servers of a GPU
_IDLE_S = 30.0  # seconds without a client after which the server ends
_START_S = 120.0  # seconds to wait for the server to start
_HELD_UP_S = 2.0  # seconds that the server waits for a client which does not finish what it sends
_TRIES = 5
_PAUSE_S = 0.2  # seconds between two tries
_HELLO, _NETWORK, _EVALUATE = b"h", b"n", b"e"
_KNOWN, _SEND, _DONE = b"k", b"s", b"d"
_CONFIG: TypeAdapter[NetworkConfig] = TypeAdapter(NetworkConfig)


def _rows(memory: mmap.mmap) -> tuple[np.ndarray, np.ndarray]:
    """Positions uint32 [4096, 4] and answers float32 [4096, 131] in shared memory."""
    positions = np.frombuffer(memory, np.uint32, 4 * _ROWS).reshape(_ROWS, 4)
    return positions, np.frombuffer(memory, np.float32, _WIDTH * _ROWS, 16 * _ROWS).reshape(_ROWS, _WIDTH)


def _new_memory() -> int:
    """Descriptor of an unnamed file with space for ``_rows``; it lasts as long as a process has it open or mapped."""
    if hasattr(os, "memfd_create"):
        memory = os.memfd_create("crownhead")
    else:
        with tempfile.TemporaryFile() as file:
            memory = os.dup(file.fileno())
    os.ftruncate(memory, _ROWS * _ROW_BYTES)
    return memory


def _send(connection: socket.socket, code: bytes, payload: bytes = b"") -> None:
    connection.sendall(code + struct.pack("<I", len(payload)) + payload)


def _receive(connection: socket.socket, size: int) -> bytes:
    """Receives exactly ``size`` bytes; raises ``ConnectionError`` if the other side has closed the connection."""
    parts = bytearray()
    while len(parts) < size:
        part = connection.recv(min(size - len(parts), 1 << 20))
        if not part:
            raise ConnectionError("the other side has gone")
        parts += part
    return bytes(parts)


def _receive_block(connection: socket.socket) -> bytes:
    """Receives a block of bytes, which is preceded by its length (uint32)."""
    return _receive(connection, struct.unpack("<I", _receive(connection, 4))[0])


class SharedEvaluator(NetworkEvaluator):
    """Evaluates with the server of this machine; starts it if it is not running or has died.

    Args:
        network: as for ``NetworkEvaluator``.
        backend, device: backend and device of the server, see ``make_evaluator``.
        lane: number of the server among those with the same backend, device, game and installation.
        folder: folder of the socket; None: in the user's cache.

    Raises:
        BackendError: the server cannot be started, or this system does not support it.
    """

    def __init__(
        self,
        network: Network,
        backend: str = "auto",
        device: str = "cpu",
        lane: int = 0,
        folder: Path | None = None,
    ) -> None:
        if not hasattr(socket, "send_fds"):
            raise BackendError("selfplay.evaluator=shared is for Linux and macOS: choose own")
        self._address = _address(f"{device.replace(':', '-')}-{backend}-{lane}-{_program()}", folder)
        self._place = backend, device
        self.device = torch.device(device)
        self._memory = _new_memory()
        weakref.finalize(self, os.close, self._memory)
        self._positions, self._answers = _rows(mmap.mmap(self._memory, _ROWS * _ROW_BYTES))
        self._connection: socket.socket | None = None
        super().__init__(network, (_ROWS,))

    @property
    def backend(self) -> str:
        """Backend of the server; see ``NetworkEvaluator.backend``."""
        return self._backend

    def _load(self, folded: Network) -> None:
        self._weights = weights_of(self._network)
        digest = hashlib.sha256(_CONFIG.dump_json(self._network.config))
        digest.update(self._weights)
        self._digest = digest.hexdigest()
        self._asked_of(self._tell_network)

    def _evaluate_part(self, positions: np.ndarray, policy_logits: np.ndarray, wdl_logits: np.ndarray) -> None:
        n = len(positions)
        self._positions[:n] = positions
        self._asked_of(lambda connection: self._ask(connection, n))
        policy_logits[:], wdl_logits[:] = self._answers[:n, :NUM_POLICY], self._answers[:n, NUM_POLICY:]

    def _ask(self, connection: socket.socket, n: int) -> None:
        _send(connection, _EVALUATE, struct.pack("<I", n))
        _receive(connection, 1)

    def _tell_network(self, connection: socket.socket) -> None:
        config = _CONFIG.dump_python(self._network.config, mode="json")
        _send(connection, _NETWORK, json.dumps({"digest": self._digest, "config": config}).encode())
        if _receive(connection, 1) == _SEND:
            _send(connection, _NETWORK, self._weights)
        self._backend = _receive_block(connection).decode()

    def _asked_of(self, ask: Callable[[socket.socket], None]) -> None:
        """Calls ``ask`` with a connection to the server; connects again if the server has died."""
        for _ in range(_TRIES):  # more than two, because a dying server may still accept a connection
            try:
                if self._connection is None:
                    self._connection = self._connected()
                    if ask != self._tell_network:
                        self._tell_network(self._connection)
                ask(self._connection)
                return
            except ConnectionError:
                self._connection = None
                time.sleep(_PAUSE_S)
        raise BackendError(f"the shared evaluator has died {_TRIES} times in a row: see {self._log}")

    def _connected(self) -> socket.socket:
        end = time.monotonic() + _START_S
        while True:
            connection = socket.socket(socket.AF_UNIX)
            try:
                connection.connect(str(self._address))
                socket.send_fds(connection, [_HELLO], [self._memory])
                return connection
            except (FileNotFoundError, ConnectionError):
                connection.close()
            if time.monotonic() > end:
                raise BackendError(f"the shared evaluator has not started within {_START_S:.0f} s: see {self._log}")
            _start(self._address, *self._place)
            time.sleep(_PAUSE_S)

    @property
    def _log(self) -> Path:
        return self._address.with_suffix(".log")


def shares_evaluator(choice: str, network: NetworkConfig, backend: str, device: str) -> bool:
    """Whether actors share an evaluator, by the setting ``selfplay.evaluator``; ``auto``: if a GPU evaluates."""
    if choice != "auto":
        return choice == "shared"
    on_gpu = device.startswith("cuda") and not uses_kernels(network, backend, device)
    return on_gpu and hasattr(socket, "send_fds")


def _program() -> str:
    """Eight hexadecimal digits for what must be the same in server and clients: game, installation, own modules."""
    parts = GAME, installed_version(), str(Path(__file__).resolve()), os.environ.get(MODULES_VARIABLE, "")
    stamps = [source_stamp(os.path.realpath(file)) for file in (__file__, *module_files())]
    return hashlib.sha256(b"".join(["\0".join(parts).encode(), *stamps])).hexdigest()[:8]


def _address(name: str, folder: Path | None) -> Path:
    folder = folder or platformdirs.user_cache_path("crownhead", appauthor=False) / "evaluators"
    if len(os.fsencode(folder / name)) > _LONGEST_ADDRESS:
        digest = hashlib.sha256(os.fsencode(folder)).hexdigest()[:12]
        folder = Path(tempfile.gettempdir()) / f"crownhead-{os.getuid()}-{digest}"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if folder.stat().st_uid != os.getuid():
        raise BackendError(f"{folder} belongs to another user: remove it")
    folder.chmod(0o700)
    return folder / name


def _start(address: Path, backend: str, device: str) -> None:
    """Starts the server, unless one runs or is starting: it holds the lock."""
    code = f"from {__name__} import serve; serve(*__import__('sys').argv[1:])"
    with open(address.with_suffix(".lock"), "a+b") as file, open(address.with_suffix(".log"), "ab") as log:
        try:
            lock(file)
        except OSError:
            return
        os.set_inheritable(file.fileno(), True)
        subprocess.Popen(
            [sys.executable, "-c", code, str(address), backend, device],
            stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True, pass_fds=[file.fileno()],
        )  # fmt: skip


@dataclass
class _Client:
    connection: socket.socket
    positions: np.ndarray
    answers: np.ndarray
    network: str = ""  # digest
    waiting: int = 0  # positions


class _Server:
    """The server; it has one thread."""

    def __init__(self, backend: str, device: str) -> None:
        self._backend, self._device = backend, device
        self._clients: list[_Client] = []
        self._evaluators: dict[str, NetworkEvaluator] = {}  # by digest of the weights
        self._selector = selectors.DefaultSelector()

    def run(self, listener: socket.socket) -> None:
        self._selector.register(listener, selectors.EVENT_READ)
        idle_since = time.monotonic()
        while self._clients or time.monotonic() - idle_since < _IDLE_S:
            for key, _ in self._selector.select(1.0):
                if key.data is None:
                    self._admit(listener)
                else:
                    self._hear(key.data)
            self._evaluate([client for client in self._clients if client.waiting])
            idle_since = time.monotonic() if self._clients else idle_since

    def _admit(self, listener: socket.socket) -> None:
        connection, _ = listener.accept()
        connection.settimeout(_HELD_UP_S)  # its process may have been stopped; it connects again when it goes on
        try:
            _, memories, _, _ = socket.recv_fds(connection, 1, 1)
        except OSError:
            memories = []
        if not memories:  # it was killed before it sent its memory
            connection.close()
            return
        client = _Client(connection, *_rows(mmap.mmap(memories[0], _ROWS * _ROW_BYTES)))
        os.close(memories[0])
        self._clients.append(client)
        self._selector.register(connection, selectors.EVENT_READ, client)

    def _hear(self, client: _Client) -> None:
        try:
            code = _receive(client.connection, 1)
            payload = _receive_block(client.connection)
            if code == _EVALUATE:
                client.waiting = struct.unpack("<I", payload)[0]
            else:
                self._take_network(client, payload)
        except (ConnectionError, TimeoutError):
            self._selector.unregister(client.connection)
            client.connection.close()
            self._clients.remove(client)

    def _take_network(self, client: _Client, payload: bytes) -> None:
        asked = json.loads(payload)
        digest = str(asked["digest"])
        if digest in self._evaluators:
            client.connection.sendall(_KNOWN)
        else:
            client.connection.sendall(_SEND)
            _receive(client.connection, 1)
            weights = _receive_block(client.connection)
            client.network = ""
            self._load(digest, _CONFIG.validate_python(asked["config"]), safetensors.torch.load(weights))
        client.network = digest
        name = self._evaluators[digest].backend.encode()
        client.connection.sendall(struct.pack("<I", len(name)) + name)

    def _load(self, digest: str, config: NetworkConfig, weights: Mapping[str, Tensor]) -> None:
        """Loads weights into an unused evaluator with the same configuration, or into a new one."""
        used = {client.network for client in self._clients}
        for old, evaluator in self._evaluators.items():
            if old not in used and evaluator.config == config:
                evaluator.update(weights)
                self._evaluators[digest] = self._evaluators.pop(old)
                return
        network = make_network(config).eval()
        network.set_weights(weights)
        self._evaluators[digest] = make_evaluator(network, self._backend, self._device)

    def _evaluate(self, waiting: Sequence[_Client]) -> None:
        """Evaluates the positions of waiting clients: one batch for each network."""
        for digest in {client.network for client in waiting}:
            asked = [client for client in waiting if client.network == digest]
            batch = np.concatenate([client.positions[: client.waiting] for client in asked])
            policy, wdl = self._evaluators[digest].evaluate(batch)
            begin = 0
            for client in asked:
                rows = slice(begin, begin + client.waiting)
                client.answers[: client.waiting, :NUM_POLICY] = policy[rows]
                client.answers[: client.waiting, NUM_POLICY:] = wdl[rows]
                begin, client.waiting = rows.stop, 0
                try:
                    client.connection.sendall(_DONE)
                except ConnectionError:
                    continue  # the client has died; ``_hear`` removes it


def serve(address: str, backend: str, device: str) -> None:
    """Main function of the server: evaluates for all clients, until there have been none for ``_IDLE_S``."""
    torch.set_num_threads(1)  # as every process of a run; see ``selfplay.machines.threads``
    Path(address).unlink(missing_ok=True)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(address)
        listener.listen(256)
        _Server(backend, device).run(listener)
        Path(address).unlink(missing_ok=True)

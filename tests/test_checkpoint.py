"""Checkpoints and training states on disk: they are read back unchanged, and other files give a clear error."""

import contextlib
import os
import random
import shutil
import signal
import threading
from functools import partial

import pytest
import safetensors.torch
import torch

from engine.files import sha256_of
from engine.sealed import sealed, unsealed
from learner.checkpoint import (
    INFO_FILE,
    WEIGHTS_FILE,
    CheckpointError,
    load_checkpoint,
    read_info,
    read_tensors,
    save_checkpoint,
    write_tensors,
)
from learner.network import NETWORKS, make_network
from learner.student import has_student, load_student, read_student_info
from selfplay.players import checkpoint_folder

TINY = NETWORKS["tiny"]
STATE = {"a": torch.arange(5.0), "b.c": torch.tensor(3), "empty": torch.zeros(0, 2), "half": torch.ones(2).bfloat16()}


def fresh(seed=0):
    torch.manual_seed(seed)
    return make_network(TINY).eval()


def same_weights(ours, theirs):
    return all(torch.equal(value, theirs.state_dict()[name]) for name, value in ours.state_dict().items())


@pytest.fixture
def saved(tmp_path):
    save_checkpoint(tmp_path / "net", fresh())
    return tmp_path / "net"


def refused(folder, match):
    with pytest.raises(CheckpointError, match=match) as caught:
        load_checkpoint(folder)
    assert "\n" not in str(caught.value)
    assert str(folder) in str(caught.value)


@pytest.mark.parametrize("changes", [{}, {"board": "8x8"}, {"activation": "mish", "kernel_size": 4}])
def test_round_trip(tmp_path, changes):
    torch.manual_seed(0)
    network = make_network(TINY.model_copy(update=changes)).to(memory_format=torch.channels_last).eval()
    network(torch.rand(4, 6, 8, 4))
    figures = {"steps": 12, "loss": 1.5, "games": {"won": 3}}
    info = save_checkpoint(tmp_path / "deep" / "net", network, figures, parent="ab" * 32)
    loaded = load_checkpoint(tmp_path / "deep" / "net")
    assert loaded.info == info == read_info(tmp_path / "deep" / "net")
    assert (info.figures, info.parent, info.network) == (figures, "ab" * 32, network.config)
    assert info.digest == sha256_of(tmp_path / "deep" / "net" / WEIGHTS_FILE)
    assert info.created.utcoffset() is not None
    assert same_weights(loaded.network, network)
    assert not loaded.network.training
    planes = torch.rand(3, 6, 8, 4)
    torch.testing.assert_close(loaded.network(planes), network(planes))


def test_same_weights_have_the_same_digest(tmp_path):
    first = save_checkpoint(tmp_path / "a", fresh(seed=1), {"steps": 1})
    again = save_checkpoint(tmp_path / "b", fresh(seed=1), {"steps": 2})
    other = save_checkpoint(tmp_path / "c", fresh(seed=2))
    assert first.digest == again.digest != other.digest


def test_replaces_an_older_one_and_leaves_nothing_beside(saved):
    save_checkpoint(saved, fresh(seed=1), {"steps": 2})
    assert load_checkpoint(saved).info.figures == {"steps": 2}
    assert same_weights(load_checkpoint(saved).network, fresh(seed=1))
    assert os.listdir(saved.parent) == ["net"]


def test_the_older_one_that_had_stepped_aside_is_found(saved):
    save_checkpoint(saved / "student", make_network(NETWORKS["wide32"]))
    saved.rename(saved.with_name(f".{saved.name}.old"))
    assert checkpoint_folder(saved) == saved
    assert load_checkpoint(saved).info == read_info(saved)
    assert has_student(saved)
    assert load_student(saved).info == read_student_info(saved)


def test_loads_from_inside_its_folder(saved, monkeypatch):
    monkeypatch.chdir(saved)
    assert same_weights(load_checkpoint(".").network, fresh())


def test_does_not_replace_what_is_no_checkpoint(tmp_path):
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "thesis.txt").write_text("do not lose")
    with pytest.raises(CheckpointError, match="no checkpoint"):
        save_checkpoint(tmp_path / "work", fresh())
    assert (tmp_path / "work" / "thesis.txt").read_text() == "do not lose"


def test_a_link_stays_one(saved, tmp_path):
    link = tmp_path / "link"
    link.symlink_to(saved)
    network = fresh()
    for _ in range(2):
        save_checkpoint(link, network)
    assert link.is_symlink()
    assert load_checkpoint(saved).info.digest == load_checkpoint(link).info.digest
    assert not [path for path in (*tmp_path.iterdir(), *saved.parent.iterdir()) if path.name.startswith(".")]


def test_refuses_to_write_what_it_would_not_read(tmp_path):
    network = fresh()
    network.stem.conv.weight.data[0, 0, 0, 0] = float("inf")
    with pytest.raises(CheckpointError, match="not finite"):
        save_checkpoint(tmp_path / "net", network)
    with pytest.raises(CheckpointError, match="figures"):
        save_checkpoint(tmp_path / "net", fresh(), {"when": object()})
    assert not any(tmp_path.iterdir())


@pytest.mark.parametrize("name", [WEIGHTS_FILE, INFO_FILE])
def test_missing_file(saved, name):
    (saved / name).unlink()
    refused(saved, f"{name}: No such file")


def test_missing_folder(tmp_path):
    refused(tmp_path / "nothing", "No such file")


def test_a_long_name(saved):
    """The folder of an older one beside it would have too long a name."""
    refused(saved.with_name("n" * 300), "File name too long")
    long = saved.rename(saved.with_name("n" * 252))
    assert same_weights(load_checkpoint(long).network, fresh())


@pytest.mark.parametrize("name", [WEIGHTS_FILE, INFO_FILE])
@pytest.mark.parametrize("part", [0.0, 0.3, 0.99])
def test_cut_off_file(saved, name, part):
    data = (saved / name).read_bytes()
    (saved / name).write_bytes(data[: int(len(data) * part)])
    refused(saved, f"{name}: (damaged|cut off)")


def test_every_flipped_bit_of_the_weights_is_seen(saved):
    data = (saved / WEIGHTS_FILE).read_bytes()
    rng = random.Random(0)
    for _ in range(50):
        changed = bytearray(data)
        changed[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        (saved / WEIGHTS_FILE).write_bytes(changed)
        refused(saved, "damaged")


def test_flipped_bits_of_the_json_never_crash(saved):
    data = (saved / INFO_FILE).read_bytes()
    messages = []
    rng = random.Random(0)
    for _ in range(300):
        changed = bytearray(data)
        changed[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        (saved / INFO_FILE).write_bytes(changed)
        try:
            loaded = load_checkpoint(saved)
        except CheckpointError as error:
            messages.append(str(error))
        else:  # what is not tied to the weights, such as the date, may have changed
            assert same_weights(loaded.network, fresh())
    assert len(messages) > 100
    assert not any("\n" in message for message in messages)


def with_info(folder, **changes):
    fields = unsealed((folder / INFO_FILE).read_bytes()) | changes
    (folder / INFO_FILE).write_bytes(sealed(fields))


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        ({"schema_version": 2}, "version 2 of the format"),
        ({"schema_version": "new"}, "not written by this program"),
        ({"network": {"blocks": 1}}, "network.channels"),
        ({"network": {**TINY.model_dump(), "blocks": 10**9}}, "network.blocks"),
        ({"network": {**TINY.model_dump(), "channels": 24}}, "another network's weights"),
        ({"network": {**TINY.model_dump(), "blocks": 2}}, "lack 'blocks.1"),
        ({"created": "yesterday"}, "created"),
        ({"shoe_size": 43}, "shoe_size"),
        ({"digest": "0" * 64}, "damaged"),
    ],
)
def test_foreign_or_changed_info(saved, changes, match):
    with_info(saved, **changes)
    refused(saved, match)


@pytest.mark.parametrize("text", ["[]", "null", "3", "{}", "[" * 100_000, "PK\x03\x04", "1" * 5000])
def test_other_files_under_the_name_of_the_info(saved, text):
    (saved / INFO_FILE).write_text(text)
    refused(saved, INFO_FILE)


@pytest.mark.parametrize("data", [b"", b"PK\x03\x04 a pickle in a zip", b"\x80\x04K\x01.", b"\xff" * 100])
def test_foreign_weights_even_with_their_digest(saved, data):
    (saved / WEIGHTS_FILE).write_bytes(data)
    with_info(saved, digest=sha256_of(data))
    refused(saved, WEIGHTS_FILE)


def test_weights_that_are_no_numbers_even_with_their_digest(saved):
    weights = dict(fresh().state_dict())
    weights["stem.norm.bias"] = torch.full((16,), float("nan"))
    data = safetensors.torch.save(weights)
    (saved / WEIGHTS_FILE).write_bytes(data)
    with_info(saved, digest=sha256_of(data))
    refused(saved, "not finite")


def test_a_file_where_the_folder_should_go(tmp_path):
    (tmp_path / "runs").write_text("")
    with pytest.raises(CheckpointError, match="runs"):
        save_checkpoint(tmp_path / "runs" / "net", fresh())


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="this user may write to read-only folders")
def test_read_only_folder(saved):
    saved.parent.chmod(0o500)
    try:
        with pytest.raises(CheckpointError, match="net: Permission denied"):
            save_checkpoint(saved, fresh(seed=1))
        assert same_weights(load_checkpoint(saved).network, fresh())
    finally:
        saved.parent.chmod(0o700)


@pytest.fixture
def small_disk():
    """Files cannot grow beyond 20 kB: the write fails in the middle, as on a full disk."""
    resource = pytest.importorskip("resource")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, limits[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    signal.signal(signal.SIGXFSZ, handler)


def test_full_disk_leaves_the_older_one(saved, small_disk):
    with pytest.raises(CheckpointError, match="net: File too large"):
        save_checkpoint(saved, fresh(seed=1))
    assert same_weights(load_checkpoint(saved).network, fresh())
    assert os.listdir(saved.parent) == ["net"]


def test_full_disk_leaves_the_older_state(tmp_path, small_disk):
    path = tmp_path / "state.safetensors"
    write_tensors(path, STATE, {"n": 1})
    with pytest.raises(CheckpointError, match=r"state\.safetensors: File too large"):
        write_tensors(path, {"large": torch.zeros(10_000)}, {"n": 2})
    assert read_tensors(path)[1] == {"n": 1}
    assert os.listdir(tmp_path) == ["state.safetensors"]


KILL_POINTS = [(os, "mkdir"), (os, "fsync"), (os, "rename"), (os, "replace"), (shutil, "rmtree")]


def in_killed_child(action, kill_at, before):
    """Runs ``action`` in a forked process that dies at its file operation number ``kill_at``; True if it died."""
    count = 0

    def counted(function):
        def call(*args, **kwargs):
            nonlocal count
            count += 1
            if count == kill_at and before:
                os._exit(9)
            here = count == kill_at
            try:
                return function(*args, **kwargs)
            finally:
                if here:
                    os._exit(9)

        return call

    child = os.fork()
    if child == 0:
        for module, name in KILL_POINTS:
            setattr(module, name, counted(getattr(module, name)))
        try:
            action()
        finally:
            os._exit(0)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert status in (0, 9)
    return status == 9


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
@pytest.mark.parametrize("before", [True, False])
@pytest.mark.parametrize("replacing", [True, False])
def test_a_kill_at_any_moment(tmp_path, replacing, before):
    old, new = fresh(seed=1), fresh(seed=2)
    outcomes = set()
    for kill_at in range(1, 100):
        folder = tmp_path / str(kill_at) / "net"
        folder.parent.mkdir()
        if replacing:
            save_checkpoint(folder, old)
        if not in_killed_child(partial(save_checkpoint, folder, new), kill_at, before):
            break
        if not replacing and not folder.exists():
            refused(folder, "No such file")
            outcomes.add("none")
        else:
            network = load_checkpoint(folder).network
            assert same_weights(network, old) or same_weights(network, new)
            outcomes.add("old" if same_weights(network, old) else "new")
        save_checkpoint(folder, new)
        assert same_weights(load_checkpoint(folder).network, new)
        assert os.listdir(folder.parent) == ["net"]
    assert 5 < kill_at < 99
    assert outcomes == ({"old", "new"} if replacing else {"none", "new"})


def test_readers_always_see_a_whole_checkpoint(saved):
    """Loading while another thread replaces: the old or the new one, or an error for a moment, never a mixture."""
    versions = [fresh(seed) for seed in range(2)]
    stop = threading.Event()

    def write():
        turn = 0
        while not stop.is_set():
            turn += 1
            save_checkpoint(saved, versions[turn % 2])

    writer = threading.Thread(target=write)
    writer.start()
    loaded = 0
    try:
        while loaded < 30:
            with contextlib.suppress(CheckpointError):
                network = load_checkpoint(saved).network
                assert any(same_weights(network, version) for version in versions)
                loaded += 1
    finally:
        stop.set()
        writer.join()


def test_state_round_trip(tmp_path):
    path = tmp_path / "state.safetensors"
    write_tensors(path, STATE, {"steps": 7, "name": "größer"})
    tensors, info = read_tensors(path)
    assert info == {"steps": 7, "name": "größer"}
    assert tensors.keys() == STATE.keys()
    for name, tensor in STATE.items():
        assert tensors[name].dtype == tensor.dtype
        assert torch.equal(tensors[name], tensor)


def test_no_damage_to_a_state_goes_unseen(tmp_path):
    path = tmp_path / "state.safetensors"
    write_tensors(path, STATE, {"steps": 7})
    data = path.read_bytes()
    messages = []
    for place in range(len(data)):
        changed = bytearray(data)
        changed[place] ^= 1 << place % 8
        path.write_bytes(changed)
        try:
            tensors, info = read_tensors(path)
        except CheckpointError as error:
            messages.append(str(error))
        else:  # white space of the header
            assert info == {"steps": 7}
            assert all(torch.equal(tensors[name], STATE[name]) for name in STATE)
        path.write_bytes(data[:place])
        with pytest.raises(CheckpointError):
            read_tensors(path)
    assert all(str(path) in message and "\n" not in message for message in messages)


def test_state_of_another_program(tmp_path):
    path = tmp_path / "state.safetensors"
    path.write_bytes(safetensors.torch.save(STATE))
    with pytest.raises(CheckpointError, match="not written by this program"):
        read_tensors(path)
    header = b'{"__metadata__":null}'
    path.write_bytes(len(header).to_bytes(8, "little") + header)
    with pytest.raises(CheckpointError, match="not written by this program"):
        read_tensors(path)
    path.write_bytes(safetensors.torch.save(STATE, {"sha256": "0" * 64, "info": "{}"}))
    with pytest.raises(CheckpointError, match="damaged"):
        read_tensors(path)
    with pytest.raises(CheckpointError, match=r"nothing\.safetensors: No such file"):
        read_tensors(tmp_path / "nothing.safetensors")

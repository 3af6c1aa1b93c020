"""Mirrors of runs: complete, verified, found again by another machine; and errors in them are reported."""

import json
import logging
from collections.abc import Iterator
from pathlib import Path

import pytest
from programs import crownhead_here
from training_runs import SHORT, assert_refused, crownhead, last_json, trained

from selfplay.run.config import make_config
from selfplay.run.folder import RunError, RunFolder, RunState
from selfplay.run.mirror import Mirror


@pytest.fixture
def run(tmp_path: Path) -> RunFolder:
    folder = RunFolder.create(tmp_path / "run", make_config("smoke"))
    (folder.shards / "00000000.shard").write_bytes(b"games")
    folder.log("start")
    return folder


@pytest.fixture
def url(tmp_path: Path) -> str:
    return (tmp_path / "copy").as_uri()


def contents(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_copy_is_the_run(run: RunFolder, url: str, tmp_path: Path) -> None:
    mirror = Mirror(url)
    assert mirror.is_empty
    mirror.push(run, wait=True)
    (run.shards / "00000001.shard").write_bytes(b"more games")
    (run.path / "state.json.1-deadbeef.tmp").write_bytes(b"half")
    run.write_state(RunState(minutes=2.0))
    mirror.push(run, wait=True)
    (run.path / "state.json.1-deadbeef.tmp").unlink()
    Mirror(url).pull(tmp_path / "again")
    assert contents(tmp_path / "again") == contents(run.path)
    objects = list((tmp_path / "copy" / "objects").iterdir())
    assert len(objects) == len(set(contents(run.path).values()))  # what is not needed any more is gone


def refuse_lists(patch: pytest.MonkeyPatch) -> None:
    """From now on, lists of files cannot be written."""

    def full(path: Path, data: bytes) -> None:
        raise OSError("no room")

    patch.setattr("selfplay.run.mirror.atomic_write", full)


def test_the_list_is_written_last(
    run: RunFolder, url: str, tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After an interrupted copy, the earlier copy is still the valid one."""
    mirror = Mirror(url)
    mirror.push(run, wait=True)
    before = contents(run.path)
    run.write_state(RunState(minutes=2.0))
    with monkeypatch.context() as patch, caplog.at_level(logging.WARNING):
        refuse_lists(patch)
        mirror.push(run, wait=True)
    assert "is behind: no room" in caplog.text
    Mirror(url).pull(tmp_path / "again")
    assert contents(tmp_path / "again") == before
    mirror.push(run, wait=True)
    Mirror(url).check(run)


def test_a_list_that_is_cut_off_leaves_the_one_before(
    run: RunFolder, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Mirror(url).push(run, wait=True)
    before = (tmp_path / "copy" / "run.json").read_bytes()

    def cut(*_: object) -> None:
        raise OSError("a kill")

    run.write_state(RunState(minutes=2.0))
    monkeypatch.setattr("os.fsync", cut)  # all is written by then, and nothing in its place
    Mirror(url).push(run, wait=True)
    assert (tmp_path / "copy" / "run.json").read_bytes() == before


def test_what_does_not_fit_is_said(run: RunFolder, url: str, tmp_path: Path) -> None:
    Mirror(url).push(run, wait=True)
    mirror = Mirror(url)
    mirror.check(run)
    other = RunFolder.create(tmp_path / "other", make_config("smoke", ["seed=9"]))
    with pytest.raises(RunError, match="holds another run"):
        mirror.check(other)
    (run.shards / "00000000.shard").write_bytes(b"games of another run with this seed")
    with pytest.raises(RunError, match="holds another run"):
        mirror.check(run)
    (run.shards / "00000000.shard").write_bytes(b"games")
    run.write_state(RunState(minutes=5.0))
    mirror.push(run, wait=True)
    run.write_state(RunState(minutes=1.0))
    with pytest.raises(RunError, match=r"is ahead of .* by 240 s of training"):
        mirror.check(run)
    for file in (tmp_path / "copy" / "objects").iterdir():
        file.write_bytes(b"other")
    with pytest.raises(RunError, match="is damaged"):
        mirror.pull(tmp_path / "again")
    (tmp_path / "copy" / "run.json").write_text('{"schema_version": 1, "files": {}, "checksum": "1"}')
    with pytest.raises(RunError, match="checksum is wrong"):
        Mirror(url)
    with pytest.raises(RunError, match="nowhere://run"):
        Mirror("nowhere://run")


def test_a_place_that_cannot_be_written_is_said_before_the_run_begins(tmp_path: Path) -> None:
    (tmp_path / "copy").mkdir()
    (tmp_path / "copy" / "objects").touch()  # where a folder should be
    for place, message in ((tmp_path / "copy", "cannot be written: "), ("", "is empty: give one")):
        done = crownhead_here("train", "--preset", "smoke", "--run", tmp_path / "run", "--mirror", place)
        assert done.returncode == 2
        assert message in done.stderr
        assert len(done.stderr.splitlines()) == 1
    assert not (tmp_path / "run").exists()


def test_names_stay_in_the_folder(run: RunFolder, url: str, tmp_path: Path) -> None:
    mirror = Mirror(url)
    mirror.push(run, wait=True)
    mirror._stored["../../escaped"] = next(iter(mirror._stored.values()))
    with pytest.raises(RunError, match="not a file of a run"):
        mirror.pull(tmp_path / "again")


@pytest.fixture
def s3(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    server_module = pytest.importorskip("moto.server")
    pytest.importorskip("s3fs")
    boto3 = pytest.importorskip("boto3")
    server = server_module.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    _, port = server.get_host_and_port()
    for name, value in {
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}",
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_DEFAULT_REGION": "us-east-1",
    }.items():
        monkeypatch.setenv(name, value)
    boto3.client("s3").create_bucket(Bucket="runs")
    yield
    server.stop()


@pytest.mark.slow
@pytest.mark.usefixtures("s3")
def test_another_machine_goes_on_from_an_object_store(tmp_path: Path) -> None:
    first = trained("--run", tmp_path / "first", "--preset", "smoke", "--mirror", "s3://runs/one", *SHORT)
    resume = "train", "--run", tmp_path / "second", "--resume", "--json", "--mirror", "s3://runs/one"
    second = last_json(crownhead(*resume, "--set", "loop.max_iterations=2"))  # a process of its own
    assert second["iterations"] == 2
    assert second["games"] > first["games"]
    events = [json.loads(line) for line in (tmp_path / "second" / "log.jsonl").read_text().splitlines()]
    assert [event["event"] for event in events].count("start") == 2
    twice = ("--run", tmp_path / "third", "--preset", "smoke", "--mirror", "s3://runs/one")
    assert_refused(crownhead_here("train", *twice), "holds a run already")
    behind = ("--run", tmp_path / "first", "--resume", "--set", "loop.max_iterations=3")
    assert_refused(crownhead_here("train", *behind), "is ahead of")


def test_a_copy_is_not_mixed_with_other_games(run: RunFolder, url: str, tmp_path: Path) -> None:
    Mirror(url).push(run, wait=True)
    other = tmp_path / "again" / "shards" / "00000007.shard"
    other.parent.mkdir(parents=True)
    other.write_bytes(b"games of another run")
    with pytest.raises(RunError, match=r"games that the copy lacks \(shards/00000007\.shard\)"):
        Mirror(url).pull(tmp_path / "again")
    other.rename(other.with_name("00000000.shard"))  # as a fetch that was killed leaves it
    Mirror(url).pull(tmp_path / "again")
    assert contents(tmp_path / "again") == contents(run.path)


def test_what_changes_below_checkpoints_is_copied_again(run: RunFolder, url: str, tmp_path: Path) -> None:
    folder = run.path / "checkpoints" / "000001"
    folder.mkdir(parents=True)
    (folder / "weights.safetensors").write_bytes(b"weights")
    (folder / "README.md").write_text("begun")
    mirror = Mirror(url)
    mirror.push(run, wait=True)
    (folder / "README.md").write_text("finished")
    (folder / "weights.safetensors").write_bytes(b"of a candidate that was made again")
    mirror.push(run, wait=True)
    Mirror(url).pull(tmp_path / "again")
    assert contents(tmp_path / "again") == contents(run.path)


def test_a_file_that_vanishes_ends_nothing(
    run: RunFolder, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = Path.read_bytes

    def read(self: Path) -> bytes:
        if self.name == ".probe":
            self.unlink()
        return plain(self)

    (run.path / ".probe").write_bytes(b"")
    mirror = Mirror(url)
    monkeypatch.setattr(Path, "read_bytes", read)
    mirror.push(run, wait=True)
    Mirror(url).pull(tmp_path / "again")
    assert contents(tmp_path / "again") == contents(run.path)


def test_a_folder_that_cannot_be_read_is_said(
    run: RunFolder, url: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(_: Path) -> bytes:
        raise PermissionError(13, "Permission denied")

    mirror = Mirror(url)
    monkeypatch.setattr(Path, "read_bytes", refuse)
    with caplog.at_level(logging.WARNING):
        mirror.push(run, wait=True)
    assert "is behind: " in caplog.text


@pytest.mark.parametrize("killed", [False, True])
def test_what_failed_updates_have_written_is_removed(
    run: RunFolder,
    url: str,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
    killed: bool,
) -> None:
    mirror = Mirror(url)
    mirror.push(run, wait=True)
    plain = mirror._files.pipe_file

    def away(path: str, data: bytes) -> None:
        raise ConnectionError("no connection")

    for minutes in range(1, 4):
        run.write_state(RunState(minutes=minutes))
        with monkeypatch.context() as patch:
            refuse_lists(patch)
            mirror.push(run, wait=True)
    mirror._files.pipe_file = away
    run.write_state(RunState(minutes=4))
    mirror.push(run, wait=True)
    run.write_state(RunState(minutes=5))
    mirror._files.pipe_file = plain
    objects = tmp_path / "copy" / "objects"
    assert len(list(objects.iterdir())) == len(contents(run.path)) + 3
    caplog.clear()
    (Mirror(url) if killed else mirror).push(run, wait=True)
    assert not caplog.records
    assert len(list(objects.iterdir())) == len(set(contents(run.path).values()))


def test_a_run_that_another_process_fetches_is_left_alone(run: RunFolder, url: str, tmp_path: Path) -> None:
    """The files are locked while they are fetched: two fetches would write over what one of them goes on with."""
    Mirror(url).push(run, wait=True)
    fetched = RunFolder(tmp_path / "again")
    fetched.path.mkdir()
    with fetched.locked():
        refused = crownhead_here("train", "--resume", "--run", fetched.path, "--mirror", url)
    assert_refused(refused, "is in use by another training process")
    assert [path.name for path in fetched.path.iterdir()] == ["lock"]


def test_files_of_others_are_left_alone(run: RunFolder, url: str, tmp_path: Path) -> None:
    other = tmp_path / "copy" / "objects" / "mine.txt"
    other.parent.mkdir(parents=True)
    other.write_text("mine")
    Mirror(url).push(run, wait=True)
    assert other.read_text() == "mine"


def test_a_copy_does_not_lie_in_what_it_is_a_copy_of(run: RunFolder) -> None:
    with pytest.raises(RunError, match="lies in the run that it shall be a copy of"):
        Mirror((run.path / "copy").as_uri()).check_place(run.path)
    assert not (run.path / "copy").exists()


def test_a_copy_that_lacks_its_state_is_refused(run: RunFolder, url: str) -> None:
    mirror = Mirror(url)
    mirror.push(run, wait=True)
    mirror._write_list({name: digest for name, digest in mirror._stored.items() if name != "state.json"})
    with pytest.raises(RunError, match=r"lacks state\.json"):
        Mirror(url).check(run)

"""Families of networks that the package does not know: registered, stored, trained and played by the commands."""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Literal

import pytest
import torch
from player_of import player_of
from programs import crownhead_here
from pydantic import Field, TypeAdapter, ValidationError
from test_loss import random_samples
from torch import Tensor, nn
from training_runs import SHORT, assert_refused

from engine.sealed import sealed, unsealed
from learner.batch import make_batch
from learner.checkpoint import INFO_FILE, CheckpointError, load_checkpoint, save_checkpoint
from learner.endgame.networks import SelfPlayNetwork
from learner.expert.commands import named_network
from learner.inference import BackendError, check_backend
from learner.inference.calibration import random_positions
from learner.network import (
    _FAMILIES,
    NETWORKS,
    NetworkConfig,
    ResidualNetwork,
    make_network,
    register_family,
    try_network,
)
from learner.network_base import FamilyConfig, Network, NetworkError
from learner.own_modules import import_modules, name_modules
from learner.trainer import Trainer, TrainerConfig
from learner.wide import WideConfig, WideNetwork
from selfplay.actors.weights import Weights
from selfplay.run.config import ConfigError, make_config

ROOT = Path(__file__).parents[1]
EXAMPLE = ROOT / "examples" / "own_network.py"


class ThinConfig(FamilyConfig):
    family: Literal["thin"] = "thin"
    units: int = Field(default=4, ge=1)


class ThinNetwork(Network):
    def __init__(self, config: ThinConfig) -> None:
        super().__init__()
        self.config = config
        self.body = nn.Linear(192, config.units)
        self.policy, self.wdl = nn.Linear(config.units, 128), nn.Linear(config.units, 3)

    def forward(self, planes: Tensor) -> tuple[Tensor, Tensor]:
        units = self.body(planes.flatten(1))
        return self.policy(units), self.wdl(units)


register_family(ThinConfig, ThinNetwork, {"thin8": ThinConfig(units=8)})


def command(*arguments: object, **variables: str) -> tuple[int, str, str]:
    """Exit code, output and errors of ``crownhead``."""
    done = subprocess.run(
        [sys.executable, str(ROOT / "crownhead.py"), *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=500,
        env={**os.environ, **variables},
    )
    return done.returncode, done.stdout, done.stderr


def test_a_checkpoint_comes_back_as_it_was(tmp_path: Path) -> None:
    network = make_network(ThinConfig(units=8)).eval()
    save_checkpoint(tmp_path / "net", network, {"steps": 3})
    found = load_checkpoint(tmp_path / "net")
    assert isinstance(found.network, ThinNetwork)
    assert found.info.network == found.network.config == ThinConfig(units=8) == NETWORKS["thin8"]
    planes = torch.rand(3, 6, 8, 4)
    for ours, theirs in zip(network(planes), found.network(planes), strict=True):
        assert torch.equal(ours, theirs)
    assert unsealed((tmp_path / "net" / INFO_FILE).read_bytes())["network"] == {"family": "thin", "units": 8}
    assert found.info.network.size == "units 8"


@pytest.mark.parametrize(
    ("network", "message"),
    [
        ({"family": "deep"}, "no family of networks is called 'deep'; .*crownhead --import MODULE"),
        ({"family": "os"}, "no family of networks is called 'os'"),
        ({"family": {"{0}": 1}}, "no family of networks"),
        ({"family": "thin", "units": 0}, "thin: units: .*greater than or equal to 1"),
        ({"family": "thin", "depth": 1}, "thin: depth: Extra inputs"),
        (7, "no family of networks is called 'None'"),
    ],
)
def test_what_is_no_known_family_is_refused(tmp_path: Path, network: object, message: str) -> None:
    save_checkpoint(tmp_path / "net", make_network(ThinConfig()))
    path = tmp_path / "net" / INFO_FILE
    fields = unsealed(path.read_bytes())
    path.write_bytes(sealed({**fields, "network": network}))
    with pytest.raises(CheckpointError, match=message) as caught:
        load_checkpoint(tmp_path / "net")
    assert "\n" not in str(caught.value)


def test_the_oracle_takes_own_networks(tmp_path: Path) -> None:
    save_checkpoint(tmp_path / "net", make_network(ThinConfig()))
    network = SelfPlayNetwork.from_checkpoint(tmp_path / "net")
    assert network(random_positions(2)).shape == (2, 3)
    with pytest.raises(NetworkError, match="ThinNetwork does not name its body_parts"):
        SelfPlayNetwork.from_checkpoint(tmp_path / "net", freeze_body=True)


def test_settings_name_own_networks() -> None:
    assert make_config("smoke", ["network=thin8"]).network == ThinConfig(units=8)
    config = make_config("smoke", ['network={"family": "thin", "units": 5}'])
    assert config.network == ThinConfig(units=5)
    assert config.model_dump(mode="json")["network"] == {"family": "thin", "units": 5}
    with pytest.raises(ConfigError, match=r"network: thin: units: Input should be greater"):
        make_config("smoke", ['network={"family": "thin", "units": -5}'])


def test_only_the_network_of_its_family_is_stored(tmp_path: Path) -> None:
    """A network of another class would be loaded as one of the family's class."""

    class Deeper(ResidualNetwork):
        pass

    class LostConfig(FamilyConfig):
        family: Literal["lost"] = "lost"

    lost = make_network(ThinConfig())
    lost.config = LostConfig()
    for network in (Deeper(NETWORKS["tiny"]), lost):
        with pytest.raises(CheckpointError, match="belongs to no family that is known: see register_family"):
            save_checkpoint(tmp_path / "net", network)
    assert not (tmp_path / "net").exists()


def test_a_name_is_taken_once() -> None:
    class WideConfig2(FamilyConfig):
        family: Literal["wide"] = "wide"

    class Nameless(FamilyConfig):
        pass

    class Mistyped(FamilyConfig):
        family: Literal["thick"] = "slim"  # type: ignore[assignment]

    with pytest.raises(NetworkError, match="called 'wide' already: WideConfig"):
        register_family(WideConfig2, ThinNetwork)
    with pytest.raises(NetworkError, match="Nameless: give family one name"):
        register_family(Nameless, ThinNetwork)
    with pytest.raises(NetworkError, match="'residual' is called 'tiny' already"):
        register_family(ThinConfig, ThinNetwork, {"tiny": ThinConfig()})
    with pytest.raises(NetworkError, match="give family one name"):
        register_family(Mistyped, ThinNetwork)
    register_family(ThinConfig, ThinNetwork)  # the same again
    assert make_network(NETWORKS["wide32"]).config.family == "wide"


def test_a_module_that_is_no_python_is_told_in_a_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "unfinished.py").write_text("x = 1\ndef f(:\n")
    monkeypatch.setenv("CROWNHEAD_IMPORT", str(tmp_path / "unfinished.py"))
    monkeypatch.setattr("sys.path", sys.path.copy())
    with pytest.raises(NetworkError, match=r"unfinished\.py, line 2: "):
        import_modules()


def test_modules_are_imported_when_a_family_is_met(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Processes that a run starts import them, too, because they inherit the variable."""
    lines = (
        "from typing import Literal",
        "from learner.network import register_family",
        "from learner.network_base import FamilyConfig",
        "class MetConfig(FamilyConfig): family: Literal['met'] = 'met'",
        "register_family(MetConfig, None)",
    )
    (tmp_path / "met_network.py").write_text("\n".join(lines))
    monkeypatch.setenv("CROWNHEAD_IMPORT", "")
    monkeypatch.setattr("sys.path", sys.path.copy())
    config: TypeAdapter[NetworkConfig] = TypeAdapter(NetworkConfig)
    with pytest.raises(ValidationError):
        config.validate_python({"family": "met"})
    monkeypatch.chdir(tmp_path)
    name_modules(["met_network.py"])
    monkeypatch.chdir("/")
    assert config.validate_python({"family": "met"}).family == "met"
    (tmp_path / "platform.py").write_text("")
    (tmp_path / "met.network.py").write_text("")
    (tmp_path / "lacking.py").write_text("import no_such_module")
    for module, message in (
        (str(tmp_path / "gone.py"), "there is no such file"),
        (str(tmp_path / "platform.py"), "another module is called 'platform'"),
        ("no_such_module", "no module 'no_such_module' to import"),
        ("met_network.inner", "no module 'met_network.inner' to import"),
        (".met_network", "no module '.met_network' to import"),
        ("..", "no module '..' to import"),
        (str(tmp_path / "met.network.py"), "the name of a module has no dot"),
    ):
        name_modules([module])
        with pytest.raises(NetworkError, match=message):
            import_modules()
    name_modules([str(tmp_path / "lacking.py")])
    with pytest.raises(ModuleNotFoundError, match="no_such_module"):
        import_modules()


class FaultyConfig(FamilyConfig):
    family: Literal["faulty"] = "faulty"
    fault: str = ""


class FaultyNetwork(ThinNetwork):
    """A network with the mistakes that one makes while writing one."""

    def __init__(self, config: FaultyConfig) -> None:
        super().__init__(ThinConfig())
        self.fault = config.fault
        if config.fault == "in the making":
            self.policy = nn.Linear(config.untis, 128)  # type: ignore[attr-defined]

    def forward(self, planes: Tensor) -> tuple[Tensor, Tensor]:
        if self.fault == "in the forward pass":
            return self.policy(planes.flatten(1)), self.wdl(planes)
        policy, wdl = super().forward(planes)
        return (policy[:, :100], wdl) if self.fault == "in its shapes" else (policy, wdl)


register_family(FaultyConfig, FaultyNetwork)


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ("in the making", "network faulty: .*test_own_network.py, line [0-9]+: AttributeError: .*untis"),
        ("in the forward pass", "network faulty: .*test_own_network.py, line [0-9]+: RuntimeError: mat1 and mat2"),
        ("in its shapes", r"for two positions it answers \[\(2, 100\), \(2, 3\)\], not \[\(2, 128\), \(2, 3\)\]"),
    ],
)
def test_a_run_of_a_faulty_network_is_refused_and_leaves_no_folder(tmp_path: Path, fault: str, message: str) -> None:
    for setting in ("network", "student.network"):
        faulty = f'{setting}={{"family":"faulty","fault":"{fault}"}}'
        done = crownhead_here("train", "--run", tmp_path / "run", "--set", "network=tiny", "--set", faulty)
        assert done.returncode == 2
        assert re.search(message, done.stderr), done.stderr
        assert len(done.stderr.splitlines()) == 1
        assert not (tmp_path / "run").exists()
    try_network(FaultyConfig())


def test_what_is_learnt_from_games_needs_a_sound_network(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(NETWORKS, "faulty", FaultyConfig(fault="in the making"))
    with pytest.raises(NetworkError, match="untis"):
        named_network("faulty", 1)


class OtherWideConfig(WideConfig):
    family: Literal["other wide"] = "other wide"  # type: ignore[assignment]


class OtherWideNetwork(WideNetwork):
    """A network that computes something else than its configuration says."""

    def forward(self, planes: Tensor) -> tuple[Tensor, Tensor]:
        policy, wdl = super().forward(planes)
        return policy, wdl.flip(1)


register_family(OtherWideConfig, OtherWideNetwork)


def test_kernels_compute_no_network_of_one_s_own(tmp_path: Path) -> None:
    config = OtherWideConfig(units=32)
    save_checkpoint(tmp_path / "net", make_network(config))
    for tried in (lambda: player_of(f"alphabeta:{tmp_path / 'net'}"), lambda: check_backend(config, "numba")):
        with pytest.raises(BackendError):
            tried()
    check_backend(config, "auto")


class TiedConfig(FamilyConfig):
    family: Literal["tied"] = "tied"


class TiedNetwork(ThinNetwork):
    """A network with a layer of two names."""

    def __init__(self, config: TiedConfig) -> None:
        super().__init__(ThinConfig())
        self.config = config  # type: ignore[assignment]
        self.policy_again = self.policy


register_family(TiedConfig, TiedNetwork)


def test_a_layer_that_is_used_twice_is_averaged_once_and_stored(tmp_path: Path) -> None:
    network = make_network(TiedConfig())
    trainer = Trainer(network, TrainerConfig(ema_decay=0.1))
    before = {name: value.clone() for name, value in trainer.ema_network.named_parameters()}
    trainer.step(make_batch(*random_samples(16, 1)))
    current = dict(trainer.network.named_parameters())
    for name, average in trainer.ema_network.named_parameters():
        torch.testing.assert_close(average, before[name] + 0.9 * (current[name] - before[name]))
    save_checkpoint(tmp_path / "net", trainer.ema_network)
    trainer.save(tmp_path / "state.safetensors")
    weights = Weights.of(trainer.ema_network, "digest")
    for other in (load_checkpoint(tmp_path / "net").network, weights.network()):
        for name, value in trainer.ema_network.state_dict().items():
            assert torch.equal(other.state_dict()[name], value)


@pytest.mark.slow
def test_all_commands_know_an_own_network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Programs, whose actors and players are processes of their own. Without the module's name nobody knows it."""
    run = tmp_path / "run"
    train = "train", "--preset", "smoke", "--pool", "local", "--run", run, "--set", "network=dense128", *SHORT
    code, _, errors = command("--import", EXAMPLE, *train, "--set", "loop.exam_positions=0")
    assert code == 0, errors
    match = "match", run, "random", "--games", 2, "--jobs", 2, "--simulations", 2
    code, printed, errors = command(*match, CROWNHEAD_IMPORT=str(EXAMPLE))
    assert code == 0, errors
    assert "score" in printed
    monkeypatch.delitem(_FAMILIES, "dense", raising=False)  # another test of this process may have run the example
    assert_refused(
        crownhead_here("analyse", "W:WK14,K18:BK1", "--net", run),
        "no family of networks is called 'dense'; name the module",
    )
    monkeypatch.setenv("CROWNHEAD_IMPORT", "")  # it is as it was after the test, whatever the command writes there
    assert_refused(crownhead_here("--import", "no_such_module", "perft", 1), "no module 'no_such_module' to import")

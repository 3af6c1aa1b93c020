"""Which number of torch threads a training takes, by a clock of its own."""

from collections.abc import Iterator
from types import SimpleNamespace

import pytest
import torch

from learner.endgame import torch_team
from learner.endgame.torch_team import _AGAIN_S, _TRIALS, TorchTeam


class Machine:
    """Steps that take so many seconds with 1 and with 3 threads; the number of each step's is noted."""

    def __init__(self) -> None:
        self.now, self.seconds, self.threads = 100.0, {1: 1.0, 3: 0.5}, []

    def step(self) -> float:
        self.threads.append(torch.get_num_threads())
        self.now += self.seconds[self.threads[-1]]
        return self.now


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Iterator[Machine]:
    machine = Machine()
    monkeypatch.setattr(torch_team, "time", SimpleNamespace(monotonic=lambda: machine.now))
    torch.set_num_threads(3)
    yield machine
    torch.set_num_threads(1)


def test_the_faster_number_is_taken_and_tried_again(machine: Machine) -> None:
    with TorchTeam() as team:
        for _ in range(2 * _TRIALS + 4):
            assert team.make(machine.step) == machine.now
        assert sorted(machine.threads[: 2 * _TRIALS]) == [1] * _TRIALS + [3] * _TRIALS
        assert machine.threads[2 * _TRIALS :] == [3] * 4
        machine.seconds[3] = 5.0  # others need the cores now
        machine.threads.clear()
        machine.now += _AGAIN_S
        for _ in range(2 * _TRIALS + 4):
            team.make(machine.step)
        assert machine.threads[2 * _TRIALS :] == [1] * 4
    assert torch.get_num_threads() == 3


def test_one_slow_step_does_not_decide(machine: Machine) -> None:
    with TorchTeam() as team:
        machine.seconds[3] = 60.0  # the first compiles something
        team.make(machine.step)
        assert machine.threads == [3]
        machine.seconds[3] = 0.5
        for _ in range(2 * _TRIALS):
            team.make(machine.step)
    assert machine.threads[-1] == 3


def test_one_thread_stays_one(machine: Machine) -> None:
    torch.set_num_threads(1)
    with TorchTeam() as team:
        for _ in range(5):
            team.make(machine.step)
    assert machine.threads == [1] * 5


def test_after_an_error_torch_has_its_threads_again(machine: Machine) -> None:
    def fails() -> float:
        raise ArithmeticError

    team = TorchTeam()
    for _ in range(2):
        team.make(machine.step)
    assert torch.get_num_threads() == 1
    with pytest.raises(ArithmeticError), team:
        team.make(fails)
    assert torch.get_num_threads() == 3

"""The choice of the number of torch threads of a training, with a simulated clock."""

from collections.abc import Iterator
from types import SimpleNamespace

import pytest
import torch

from learner.endgame import timed_training
from learner.endgame.timed_training import _AGAIN_S, _HOPELESS, _TRIALS, TorchTeam


class Machine:
    """Simulated steps with given seconds for 1 and for 3 threads; records the number of threads of each step."""

    def __init__(self) -> None:
        self.now, self.seconds, self.delay, self.threads = 100.0, {1: 1.0, 3: 0.5}, 0.0, []

    def step(self) -> float:
        self.threads.append(torch.get_num_threads())
        self.now += self.seconds[self.threads[-1]] + self.delay
        return self.now


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Iterator[Machine]:
    machine = Machine()
    monkeypatch.setattr(timed_training, "time", SimpleNamespace(monotonic=lambda: machine.now))
    torch.set_num_threads(3)
    yield machine
    torch.set_num_threads(1)


def test_the_faster_number_is_taken_and_tried_again(machine: Machine) -> None:
    with TorchTeam() as team:
        for _ in range(2 * _TRIALS + 4):
            assert team.make(machine.step) == machine.now
        assert machine.threads == [1] * _TRIALS + [3] * (_TRIALS + 4)
        machine.seconds[3] = 1.5  # others need the cores now
        machine.threads.clear()
        machine.now += _AGAIN_S
        for _ in range(2 * _TRIALS + 4):
            team.make(machine.step)
        assert machine.threads == [1] * _TRIALS + [3] * _TRIALS + [1] * 4
    assert torch.get_num_threads() == 3


def test_a_hopeless_number_is_not_tried_to_the_end(machine: Machine) -> None:
    machine.seconds[3] = 1.01 * _HOPELESS
    with TorchTeam() as team:
        for _ in range(2 * _TRIALS):
            team.make(machine.step)
    assert machine.threads == [1] * _TRIALS + [3] + [1] * (_TRIALS - 1)


@pytest.mark.parametrize("slow", [0, _TRIALS])
def test_one_slow_step_does_not_decide(machine: Machine, slow: int) -> None:
    """Such as the first step, which compiles, or the first with all threads, which starts them."""
    machine.seconds = {1: 1.0, 3: 0.9}
    with TorchTeam() as team:
        for number in range(2 * _TRIALS + 1):
            machine.delay = 0.9 * (number == slow)
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
    team.make(machine.step)
    assert torch.get_num_threads() == 1
    with pytest.raises(ArithmeticError), team:
        team.make(fails)
    assert torch.get_num_threads() == 3

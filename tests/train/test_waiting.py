import time

import torch

from lgdgcn.large.waiting import Waiting


def test_all_waiting_is_added_up_and_the_work_between_is_not(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(time, "perf_counter", lambda: now[0])

    def batches():
        for seconds in (1, 2):
            now[0] += seconds
            yield seconds

    waiting = Waiting(batches(), torch.device("cpu"))
    for _ in range(2):
        next(waiting)
        now[0] += 10
    assert waiting.seconds() == (3, 23)


def test_another_gpu_than_the_present_one_is_measured_on_its_own_stream(monkeypatch):
    """``cuda:1`` computes on a stream of its own, which the present GPU knows nothing of."""
    recorded = []

    class Event:
        def __init__(self, enable_timing):
            assert enable_timing

        def record(self, stream=None):
            recorded.append(stream)

        def elapsed_time(self, other):
            return 500.0

    device = torch.device("cuda:1")
    monkeypatch.setattr(torch.cuda, "Event", Event)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda device=None: device)
    monkeypatch.setattr(torch.cuda, "synchronize", lambda device=None: recorded.append(device))
    waiting = Waiting(iter("ab"), device)
    assert [next(waiting), next(waiting)] == ["a", "b"]
    assert waiting.seconds()[0] == 1
    assert recorded == [device] * 5

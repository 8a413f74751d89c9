"""Seeds, devices, threads, and signals."""

import random
import signal

import numpy as np
import pytest
import torch

from lgdgcn.errors import InputError, StoppedError
from lgdgcn.runtime import (
    StopRequest,
    available_memory,
    keep_freed_memory,
    require_memory,
    select_device,
    set_seed,
    set_threads,
    stop_on_signals,
)


def draws():
    return random.random(), np.random.rand(), torch.rand(2).tolist()


@pytest.mark.parametrize("seed", [0, 7, 2**40])
def test_a_seed_fixes_every_generator(seed):
    set_seed(seed)
    first = draws()
    after = draws()
    set_seed(seed)
    assert draws() == first
    assert after != first
    set_seed(seed + 1)
    assert all(a != b for a, b in zip(draws(), first, strict=True))


@pytest.mark.parametrize("available", [True, False])
def test_auto_takes_the_gpu_that_is_there(monkeypatch, available):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: available)
    assert select_device("auto").type == ("cuda" if available else "cpu")
    assert select_device("cpu").type == "cpu"


@pytest.mark.parametrize("name", ["gpu", "", "mps", "meta", "cuda:-1", "cuda:x", None])
def test_no_device(name):
    with pytest.raises(InputError, match=r"device is .*; use auto, cpu, cuda or cuda:N"):
        select_device(name)


@pytest.mark.parametrize(("name", "count"), [("cuda", 0), ("cuda:1", 1), ("cuda:8", 8)])
def test_a_gpu_too_many(monkeypatch, name, count):
    monkeypatch.setattr(torch.cuda, "device_count", lambda: count)
    with pytest.raises(InputError, match=f"torch sees {count} GPUs"):
        select_device(name)


def test_configured_threads_stay(monkeypatch):
    asked = []
    monkeypatch.setattr(torch, "set_num_threads", asked.append)
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    set_threads()
    assert asked == []


def test_freed_memory_elsewhere_than_glibc(monkeypatch):
    def absent(name):
        raise OSError(f"{name}: not found")

    monkeypatch.setattr("ctypes.CDLL", absent)
    keep_freed_memory()


def test_threads_follow_the_cores_of_the_process(monkeypatch):
    asked = []
    monkeypatch.setattr(torch, "set_num_threads", asked.append)
    monkeypatch.setattr("os.sched_getaffinity", lambda pid: {2, 3, 5}, raising=False)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    set_threads()
    assert asked == [3]


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_the_first_signal_is_a_request(number, code):
    before = signal.getsignal(number)
    with stop_on_signals() as stop:
        assert not stop
        signal.raise_signal(number)
        assert stop
        assert stop.exit_code == code
    assert signal.getsignal(number) is before


@pytest.mark.parametrize("first", [signal.SIGINT, signal.SIGTERM])
def test_the_second_signal_ends_at_once(first):
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    with stop_on_signals():
        signal.raise_signal(first)
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
        with pytest.raises(SystemExit) as end:
            signal.raise_signal(signal.SIGTERM)
        assert end.value.code == 143
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == before


def test_handlers_come_back_after_an_error():
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(RuntimeError), stop_on_signals():
        raise RuntimeError
    assert signal.getsignal(signal.SIGINT) is before


def test_no_request_is_false():
    stop = StopRequest()
    assert not stop
    stop.check("nothing happens")


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_request_is_an_error_where_it_is_asked_for(number, code):
    stop = StopRequest()
    stop.signal = number
    with pytest.raises(StoppedError, match=r"^stopped in epoch 3$") as error:
        stop.check("stopped in epoch 3")
    assert error.value.exit_code == code


def test_available_memory_is_bounded_by_the_process(monkeypatch):
    resource = pytest.importorskip("resource")
    assert 0 < available_memory() < 2**50
    monkeypatch.setattr(resource, "getrlimit", lambda kind: (1000, 1000))
    assert available_memory() == 0


def test_work_that_cannot_fit_is_refused():
    require_memory(1, "this", "that")
    with pytest.raises(InputError, match=r"^this would take about 9\.3e\+08 GiB of memory, and .*"):
        require_memory(1e18, "this", "that")


def test_memory_that_torch_keeps_on_a_gpu_is_available(monkeypatch):
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: (100, 1000))
    monkeypatch.setattr(torch.cuda, "memory_reserved", lambda device: 50)
    monkeypatch.setattr(torch.cuda, "memory_allocated", lambda device: 20)
    assert available_memory(torch.device("cuda")) == 130

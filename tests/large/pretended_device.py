"""A device that is only pretended: tensors that say they are on it, and are in main memory.

An operation that mixes them with tensors of the host fails as on a GPU. So tests without a GPU find
tensors that were left in the wrong place. Only torch's own operations run on it
(``LGDGCN_BACKEND=torch``); it has no streams.
"""

from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map

DEVICE = torch.device("meta")  # the only one that every build of torch knows


class OnDevice(torch.Tensor):
    """A tensor of the host that says it is on the device."""

    @staticmethod
    def __new__(cls, host):
        return torch.Tensor._make_wrapper_subclass(
            cls, host.size(), host.stride(), host.storage_offset(), dtype=host.dtype,
            layout=host.layout, device=DEVICE, requires_grad=False,
        )  # fmt: skip

    def __init__(self, host):
        self.host = host

    @classmethod
    def __torch_dispatch__(cls, function, types, args=(), kwargs=None):
        return run(function, args, kwargs or {})

    @property
    def data(self):
        return self.detach()

    @data.setter
    def data(self, other):
        self.host = other.host

    def tolist(self):
        return self.host.tolist()  # a copy, which a GPU's host would wait for

    def __repr__(self):
        return f"OnDevice({self.host})"


def run(function, args, kwargs):
    """Run an operation on the host, unless its tensors are in different places."""
    wanted = kwargs.get("device")
    inputs = [t for t in torch.utils._pytree.tree_leaves((args, kwargs)) if torch.is_tensor(t)]
    on_device = [isinstance(tensor, OnDevice) for tensor in inputs]
    copies = function in (torch.ops.aten._to_copy.default, torch.ops.aten.copy_.default)
    if any(on_device) and not copies:
        for tensor, is_there in zip(inputs, on_device, strict=True):
            index = tensor.dtype in (torch.int64, torch.bool) and "index" in function.__name__
            if not is_there and tensor.dim() > 0 and not index:
                raise RuntimeError(f"{function}: a tensor of the host, {tuple(tensor.shape)}")
    kwargs = {**kwargs, "device": torch.device("cpu")} if wanted is not None else kwargs
    host = tree_map(lambda t: t.host if isinstance(t, OnDevice) else t, (args, kwargs))
    found = function(*host[0], **host[1])
    if wanted is not None:
        stays = torch.device(wanted).type == DEVICE.type
    elif function is torch.ops.aten.copy_.default:
        return args[0]  # changed in place
    else:
        stays = any(on_device)
    if not stays:
        return found
    known = {id(t.host): t for t in inputs if isinstance(t, OnDevice)}  # of operations in place

    def there(value):
        return known.get(id(value), OnDevice(value)) if type(value) is torch.Tensor else value

    return tree_map(there, found)


class Factories(TorchDispatchMode):
    """Makes tensors on the pretended device where one is asked for."""

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        return run(function, args, kwargs or {})


class Threads(ThreadPoolExecutor):
    """Threads that make tensors there, too."""

    def __init__(self, workers, name=""):
        super().__init__(workers, name, initializer=lambda: Factories().__enter__())


def tensor_there(make):
    """What ``torch.tensor`` does, which makes tensors of this device where no mode sees them."""

    def made(data, *, device=None, **options):
        tensor = make(data, **options)
        return tensor if device is None else tensor.to(device)

    return made


@contextmanager
def pretended_device(monkeypatch, memory=2**40):
    """Let tensors be put on ``DEVICE``, which has so much free memory."""
    monkeypatch.setenv("LGDGCN_BACKEND", "torch")
    for module in ("sampler", "hops"):
        monkeypatch.setattr(f"lgdgcn.large.{module}.ThreadPoolExecutor", Threads)
    monkeypatch.setattr("lgdgcn.large.batch_input.available_memory", lambda device=None: memory)
    monkeypatch.setattr("torch.tensor", tensor_there(torch.tensor))
    monkeypatch.setattr("torch.Tensor.pin_memory", lambda tensor: tensor)
    before = torch.__future__.get_swap_module_params_on_conversion()
    torch.__future__.set_swap_module_params_on_conversion(True)  # else the class is lost
    try:
        with Factories():
            yield
    finally:
        torch.__future__.set_swap_module_params_on_conversion(before)

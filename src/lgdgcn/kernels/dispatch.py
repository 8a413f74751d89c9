"""Which backend runs a function: by the tensor's device and type, or by `LGDGCN_BACKEND`."""

import os
from collections.abc import Callable
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import Any

import torch
from torch import Tensor

from lgdgcn.errors import InputError
from lgdgcn.kernels import reference

__all__ = ["backend", "is_recordable", "load_backend"]

_MODULES = {"numba": "lgdgcn.kernels.cpu", "triton": "lgdgcn.kernels.gpu"}


def backend(name: str, like: Tensor) -> Callable[..., Any]:
    """Return the function of this name for tensors like this one.

    A backend that lacks the function leaves it to the reference.

    Args:
        name: A function of `lgdgcn.kernels`.
        like: A tensor whose device and type decide.

    Raises:
        InputError: If `LGDGCN_BACKEND` names no backend, one that is not installed, or one for
            another device.
    """
    wanted = os.environ.get("LGDGCN_BACKEND") or None
    if wanted not in (None, "torch", *_MODULES):
        choices = ", ".join(["torch", *_MODULES])
        raise InputError(f"LGDGCN_BACKEND is {wanted!r}; choose one of {choices}")
    fallback: Callable[..., Any] = getattr(reference, name)
    if wanted == "torch":
        return fallback
    fitting = "numba" if like.device.type == "cpu" else "triton"
    if wanted == "triton" and os.environ.get("TRITON_INTERPRET") == "1":
        fitting = "triton"  # the interpreter runs its kernels on the CPU
    if wanted not in (None, fitting):
        message = f"LGDGCN_BACKEND is {wanted!r} but the tensor is on {like.device}; choose torch"
        raise InputError(message)
    if like.dtype in (torch.float16, torch.bfloat16):
        return fallback
    if fitting == "triton" and like.dtype == torch.float64:
        return fallback
    module, reason = load_backend(fitting)
    if module is None and wanted is not None:
        raise InputError(f"LGDGCN_BACKEND is {wanted!r} but {reason}; choose torch")
    return getattr(module, name, fallback)


def is_recordable(like: Tensor) -> bool:
    """Whether a GPU can record what is computed on tensors like this one as a CUDA graph.

    The reference asks the host how many results there are, which a recording cannot.
    """
    return like.is_cuda and backend("unit_length", like) is not reference.unit_length


@cache
def load_backend(name: str) -> tuple[ModuleType | None, str]:
    """Import the module of a backend; return it, or None and the reason why it failed."""
    try:
        return import_module(_MODULES[name]), ""
    except (ImportError, RuntimeError) as error:  # numba refuses to load without a cache folder
        return None, str(error)

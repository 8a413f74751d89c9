"""Members brought together: what each is and has, stacked along a leading axis of R members."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch_geometric.data import Data

from lgdgcn import kernels
from lgdgcn.errors import InputError
from lgdgcn.models import LGDGCN, build
from lgdgcn.models.stacked import lone_names, stack
from lgdgcn.runtime import set_seed
from lgdgcn.train.member import OWN, Member, MemberState, Progress
from lgdgcn.train.states import check_like

__all__ = ["Columns", "Standing", "Weights", "check_alike", "load_part", "lone_model"]

_HIGHEST = torch.iinfo(torch.int64).max
_HIGHEST_RATE = 1 - 2**-24  # in float32 the next number is 1, which would drop everything


def check_alike(members: Sequence[Member], graphs: Sequence[Data], states: Sequence[Any]) -> None:
    """Refuse members that cannot be trained in one pass."""
    for what, given in (("graphs", graphs), ("states", states)):
        if len(given) != len(members):
            raise InputError(f"{len(given)} {what} for {len(members)} members; give one for each")
    shared = [
        {key: value for key, value in member.settings.as_dict().items() if key not in OWN}
        for member in members
    ]
    if any(other != shared[0] for other in shared):
        differing = [key for key in shared[0] if len({str(own[key]) for own in shared}) > 1]
        raise InputError(f"members of a population may not differ in {', '.join(differing)}")
    for key in ("x", "edge_index"):
        shapes = list(dict.fromkeys(tuple(graph[key].shape) for graph in graphs))
        if len(shapes) > 1:
            raise InputError(
                f"graphs of a population may differ in their split only; {key} has the shapes "
                f"{shapes[0]} and {shapes[1]}"
            )


def lone_model(name: str, member: Member, graph: Data, outputs: int) -> nn.Module:
    """A member's model as its seed draws it, on the device of its graph."""
    set_seed(member.seed)
    model = build(name, member.settings.as_dict(), graph.x.size(1), outputs)
    if isinstance(model, LGDGCN):
        known = graph.y[graph.train_mask]
        model.begin(F.one_hot(known, outputs) if known.dim() == 1 else known)
    return model.to(graph.x.device, graph.x.dtype)


def load_part(model: nn.Module, state: MemberState, part: str) -> nn.Module:
    """Give a lone model one part of a member's state, ``"model"`` or ``"best"``."""
    check_like(state.part(part), model.state_dict(), f"{part} weights")
    model.load_state_dict(state.part(part))
    return model


class Columns(NamedTuple):
    """The numbers in which members differ, ``[R]`` each."""

    lr: Tensor
    decay: Tensor
    rate: Tensor  # of dropout
    lambda_space: Tensor
    lambda_div: Tensor
    lambda_edge: Tensor
    epochs: Tensor
    patience: Tensor
    seed: Tensor

    @classmethod
    def of(cls, members: Sequence[Member], device: torch.device) -> "Columns":
        """Read them off the members' settings."""

        def real(name: str) -> Tensor:
            values = [getattr(member.settings, name) for member in members]
            return torch.tensor(values, dtype=torch.float32, device=device)

        def whole(name: str) -> Tensor:
            values = [min(getattr(member.settings, name), _HIGHEST) for member in members]
            return torch.tensor(values, device=device)

        seeds = [(member.seed + 2**63) % 2**64 - 2**63 for member in members]  # as int64
        return cls(
            real("lr"),
            real("weight_decay"),
            real("dropout").clamp(max=_HIGHEST_RATE),
            real("lambda_space"),
            real("lambda_div"),
            real("lambda_edge"),
            whole("epochs"),
            whole("patience"),
            torch.tensor(seeds, device=device),
        )

    @property
    def weights(self) -> dict[str, Tensor]:
        """The weights of the losses beside the classification's, by name."""
        return {
            "space": self.lambda_space,
            "diversity": self.lambda_div,
            "edge": self.lambda_edge,
        }


class Standing(NamedTuple):
    """How far members are and the best they have seen, ``[R]`` each."""

    epoch: Tensor
    best_epoch: Tensor
    best_score: Tensor
    best_loss: Tensor

    @classmethod
    def of(cls, progress: Sequence[Progress], device: torch.device) -> "Standing":
        """Read it off where they were saved."""
        epochs = torch.tensor([(one.epoch, one.best_epoch) for one in progress], device=device)
        bests = [(one.best_score, one.best_loss) for one in progress]
        best = torch.tensor(bests, dtype=torch.float64, device=device)
        return cls(*epochs.t().contiguous(), *best.t().contiguous())


class Weights:
    """The members' networks as one, and all that training keeps in the shape of weights.

    Args:
        models: Each member's model, which gets the saved weights where there are some.
        states: Where each member stands, without tensors where it is new.

    Attributes:
        network: The models in one, see :func:`~lgdgcn.models.stacked.stack`.
        parameters: Its parameters under the names of a lone model, ``[R, ...]`` each.
        best: Weights and statistics of every member's best epoch.
        mean: The optimiser's running mean of the gradient.
        square: The optimiser's running mean of the gradient's square.
    """

    def __init__(self, models: Sequence[nn.Module], states: Sequence[MemberState]) -> None:
        for model, state in zip(models, states, strict=True):
            if state.tensors or state.progress.epoch:
                load_part(model, state, "model")
                _check_saved(state, model)
        self.network = stack(models)
        self.parameters = lone_names(dict(self.network.named_parameters()))
        zeros = {name: torch.zeros_like(p) for name, p in models[0].named_parameters()}
        self.best = _joined("best", states, [model.state_dict() for model in models])
        self.mean = _joined("mean", states, [zeros] * len(models))
        self.square = _joined("square", states, [zeros] * len(models))

    def current(self) -> dict[str, Tensor]:
        """Present weights and statistics under the names of a lone model, ``[R, ...]`` each."""
        return lone_names(self.network.state_dict())

    @torch.no_grad()
    def descend(self, lr: Tensor, decay: Tensor, step: Tensor) -> None:
        """One step of Adam along the gradients, the ``step``-th of each member; ``[R]`` each."""
        for name, parameter in self.parameters.items():
            if parameter.grad is not None:
                moments = self.mean[name], self.square[name]
                grad = parameter.grad.contiguous()
                kernels.adam(parameter.detach(), grad, *moments, lr, decay, step)

    def keep_best(self, better: Tensor) -> None:
        """Remember the present weights of the members in ``better [R]``."""
        for name, tensor in self.current().items():
            chosen = better.view(-1, *[1] * (tensor.dim() - 1))
            self.best[name].copy_(torch.where(chosen, tensor, self.best[name]))

    def member(self, row: int) -> dict[str, Tensor]:
        """A copy of one member's tensors, named as in :class:`MemberState`."""
        parts = {
            "model": self.current(),
            "best": self.best,
            "mean": self.mean,
            "square": self.square,
        }
        return {
            f"{part}.{name}": tensor[row].detach().clone()
            for part, tensors in parts.items()
            for name, tensor in tensors.items()
        }


def _joined(
    part: str, states: Sequence[MemberState], fresh: Sequence[Mapping[str, Tensor]]
) -> dict[str, Tensor]:
    """Stack one part of every member's state, or what it starts with where it is new."""
    sources = [state.part(part) or new for state, new in zip(states, fresh, strict=True)]
    return {
        name: torch.stack([source[name].to(like.device) for source in sources])
        for name, like in fresh[0].items()
    }


def _check_saved(state: MemberState, model: nn.Module) -> None:
    """Refuse what :func:`load_part` has not looked at."""
    check_like(state.part("best"), model.state_dict(), "best weights")
    for part in ("mean", "square"):
        check_like(state.part(part), dict(model.named_parameters()), "optimiser state")

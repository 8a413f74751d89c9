"""Members brought together: their networks and progress stacked along a leading axis of R."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

import torch
import torch.nn.functional as F
from torch import Tensor
from torch_geometric.data import Data

from lgdgcn.config import LOSS_WEIGHTS, PER_MEMBER_SETTINGS
from lgdgcn.errors import InputError
from lgdgcn.models import NodeModel, build
from lgdgcn.models.population import single_names, stack
from lgdgcn.runtime import set_seed
from lgdgcn.tensor_file import check_like
from lgdgcn.train.optim import PopulationAdam
from lgdgcn.train.state import Member, TrainState

__all__ = ["StackedMembers", "check_alike", "new_model", "with_weights"]

_LARGEST_INTEGER = torch.iinfo(torch.int64).max
_HIGHEST_DROPOUT = 1 - 2**-24  # in float32 the next number is 1, which would drop everything


def check_alike(
    members: Sequence[Member], graphs: Sequence[Data], states: Sequence[object]
) -> None:
    """Refuse members that cannot be trained in one pass."""
    for what, given in (("graphs", graphs), ("states", states)):
        if len(given) != len(members):
            raise InputError(f"{len(given)} {what} for {len(members)} members; give one for each")
    shared = [
        {key: v for key, v in member.settings.as_dict().items() if key not in PER_MEMBER_SETTINGS}
        for member in members
    ]
    if any(other != shared[0] for other in shared):
        differing = [key for key in shared[0] if len({str(own[key]) for own in shared}) > 1]
        raise InputError(f"members of a population may not differ in {', '.join(differing)}")
    for key in ("x", "edge_index") if len(graphs) > 1 else ():
        shapes = list(dict.fromkeys(tuple(graph[key].shape) for graph in graphs))
        if len(shapes) > 1:
            raise InputError(
                f"graphs of a population may differ in their split only; {key} has the shapes "
                f"{shapes[0]} and {shapes[1]}"
            )


def new_model(name: str, member: Member, graph: Data, outputs: int) -> NodeModel:
    """Return a member's model as its seed draws it, on the device of its graph."""
    set_seed(member.seed)
    known = graph.y[graph.train_mask]
    model = build(
        name,
        member.settings.as_dict(),
        graph.x.size(1),
        outputs,
        multi_label=known.dim() == 2,
    )
    model = model.to(graph.x.device, graph.x.dtype)
    label_sets = F.one_hot(known, outputs) if known.dim() == 1 else known
    model.begin(label_sets.cpu(), graph.x, graph.edge_index)
    return model


def with_weights(model: NodeModel, state: TrainState, name: str) -> NodeModel:
    """Give a single model a member's weights, ``"model"`` (present ones) or ``"best"``."""
    check_like(state.weights(name), model.state_dict(), f"{name} weights")
    model.load_state_dict(state.weights(name))
    return model


class StackedMembers:
    """All that training changes, in tensors with a leading axis of R members.

    Args:
        members: Settings and seeds.
        models: Each member's new model.
        states: Where each member stands; its weights replace the new ones.

    Attributes:
        settings: The numbers in which members may differ, and ``seed``, ``[R]`` each.
        network: The models in one, see :func:`lgdgcn.models.population.stack`.
        optimizer: Adam with each member's rate and decay.
        best: Weights and statistics of every member's best epoch, ``[R, ...]`` each.
        average: Moving averages of the parameters, which are evaluated instead of them,
            ``[R, ...]`` each; none if no member has the setting ``weight_average``.
        epoch: Epochs trained ``[R]``.
        best_epoch: The epoch whose weights are kept ``[R]``.
        best_score: Its validation score ``[R]``.
        best_loss: Its validation loss ``[R]``.
    """

    def __init__(
        self,
        members: Sequence[Member],
        models: Sequence[NodeModel],
        states: Sequence[TrainState],
    ) -> None:
        self._has_average = [member.settings.weight_average > 0 for member in members]
        for model, state, has_average in zip(models, states, self._has_average, strict=True):
            if state.tensors or state.epoch:
                _check_saved(state, model, has_average)
                with_weights(model, state, "model")
        device = next(models[0].parameters()).device
        self.settings = _per_member(members, device)
        self.best = _joined("best", states, [model.state_dict() for model in models])
        self.average: dict[str, Tensor] = {}
        if any(self._has_average):
            first = [{name: p.detach() for name, p in m.named_parameters()} for m in models]
            self.average = _joined("average", states, first)
        self.network = stack(models)

        def column(name: str, dtype: torch.dtype) -> Tensor:
            values = [getattr(state, name) for state in states]
            return torch.tensor(values, dtype=dtype, device=device)

        self.epoch = column("epoch", torch.int64)
        self.best_epoch = column("best_epoch", torch.int64)
        self.best_score = column("best_score", torch.float64)
        self.best_loss = column("best_loss", torch.float64)
        self.optimizer = PopulationAdam(
            self.network.parameters(),
            self.settings["lr"],
            self.settings["weight_decay"],
            step=self.epoch.clone(),  # an epoch is one step
        )
        zeros = [{name: torch.zeros_like(p) for name, p in m.named_parameters()} for m in models]
        for name in self.optimizer.moments:
            moments = _joined(name, states, zeros)
            for key, parameter in self.parameters().items():
                self.optimizer.state[parameter][name].copy_(moments[key])

    def weights(self) -> dict[str, Tensor]:
        """Present weights and statistics under the names of a single model, ``[R, ...]`` each."""
        return single_names(self.network.state_dict())

    def parameters(self) -> dict[str, Tensor]:
        """Present parameters under the names of a single model, ``[R, ...]`` each."""
        return single_names(dict(self.network.named_parameters()))

    def loss_weights(self) -> dict[str, Tensor]:
        """The weights of the losses in the epoch to come by the loss's name, ``[R]`` each."""
        weights = {loss: self.settings[name] for loss, name in LOSS_WEIGHTS.items()}
        if self.network.views > 1:
            epochs = self.settings["consistency_warmup"]
            share = ((self.epoch + 1) / epochs.clamp(min=1)).clamp(max=1)  # 1 without a warm-up
            weights["consistency"] = weights["consistency"] * share
        return weights

    @torch.no_grad()
    def update_average(self) -> None:
        """Move the averages, if there are any, towards the parameters that a step has made.

        The first steps, which begin far from where they lead, count more than the decay says.
        """
        if not self.average:
            return
        step = self.optimizer.param_groups[0]["step"]  # [R], from 1
        decay = torch.minimum(self.settings["weight_average"], (1 + step) / (10 + step))
        for name, parameter in self.parameters().items():
            new = (1 - decay).to(parameter.dtype).view(-1, *[1] * (parameter.dim() - 1))
            self.average[name].lerp_(parameter, new)

    @contextmanager
    def averaged(self) -> Iterator[None]:
        """Let the network have the averages, if there are any, as parameters inside.

        It is given their memory, so that nothing is copied and a GPU can record it.
        """
        parameters = self.parameters() if self.average else {}
        present = {name: parameter.data for name, parameter in parameters.items()}
        try:
            for name, parameter in parameters.items():
                parameter.data = self.average[name]
            yield
        finally:
            for name, parameter in parameters.items():
                parameter.data = present[name]

    def keep_best(self, better: Tensor) -> None:
        """Remember the weights of the members in ``better [R]`` that were evaluated."""
        self.best_epoch.copy_(torch.where(better, self.epoch, self.best_epoch))
        with self.averaged():
            evaluated = self.weights()
        for name, tensor in evaluated.items():
            chosen = better.view(-1, *[1] * (tensor.dim() - 1))
            self.best[name].copy_(torch.where(chosen, tensor, self.best[name]))

    def tensors(self, row: int) -> dict[str, Tensor]:
        """Return a copy of one member's tensors, named as in :class:`TrainState`."""
        groups: dict[str, Mapping[str, Tensor]] = {"model": self.weights(), "best": self.best}
        for name in self.optimizer.moments:
            groups[name] = {k: self.optimizer.state[p][name] for k, p in self.parameters().items()}
        if self._has_average[row]:
            groups["average"] = self.average
        return {
            f"{name}.{key}": tensor[row].detach().clone()
            for name, group in groups.items()
            for key, tensor in group.items()
        }


def _per_member(members: Sequence[Member], device: torch.device) -> dict[str, Tensor]:
    """Return the settings in which members may differ, ``[R]`` each: float32 or int64."""
    own: dict[str, Tensor] = {}
    for name in PER_MEMBER_SETTINGS:
        values = [getattr(member.settings, name) for member in members]
        if isinstance(values[0], int):
            own[name] = torch.tensor([min(v, _LARGEST_INTEGER) for v in values], device=device)
        else:
            own[name] = torch.tensor(values, dtype=torch.float32, device=device)
    own["dropout"] = own["dropout"].clamp(max=_HIGHEST_DROPOUT)
    seeds = [(member.seed + 2**63) % 2**64 - 2**63 for member in members]  # as int64
    return own | {"seed": torch.tensor(seeds, device=device)}


def _joined(
    name: str, states: Sequence[TrainState], new: Sequence[Mapping[str, Tensor]]
) -> dict[str, Tensor]:
    """Stack one group of every member's tensors, or what it starts with if it is new."""
    sources = [state.weights(name) or own for state, own in zip(states, new, strict=True)]
    return {
        key: torch.stack([source[key].to(like.device) for source in sources])
        for key, like in new[0].items()
    }


def _check_saved(state: TrainState, model: NodeModel, has_average: bool) -> None:
    """Refuse saved tensors that are not this model's."""
    parameters = dict(model.named_parameters())
    check_like(state.weights("best"), model.state_dict(), "best weights")
    for name in PopulationAdam.moments:
        check_like(state.weights(name), parameters, "optimizer state")
    check_like(state.weights("average"), parameters if has_average else {}, "average weights")

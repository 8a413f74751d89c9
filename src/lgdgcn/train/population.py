"""A population: many trainings of one architecture, every tensor with a leading axis of members."""

import math
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import torch
from torch import Tensor
from torch_geometric.data import Data

from lgdgcn import kernels
from lgdgcn.config import LOSS_WEIGHTS, PER_MEMBER_SETTINGS, Settings
from lgdgcn.models import NodeModel
from lgdgcn.models.population import single_names, stack
from lgdgcn.tensor_file import check_like

__all__ = [
    "Epoch",
    "Population",
    "PopulationAdam",
    "TrainState",
    "Training",
    "with_weights",
]

_LARGEST_INTEGER = torch.iinfo(torch.int64).max
_HIGHEST_DROPOUT = 1 - 2**-24  # in float32 the next number is 1, which would drop everything


@dataclass
class TrainState:
    """Where a training stands, enough to go on with it.

    Attributes:
        lowest_score: The lowest validation score of all epochs; this and the two losses are
            ``None`` before the first one.
        first_loss: Classification loss of the first epoch.
        last_loss: Classification loss of the last epoch.
        tensors: ``model.*`` and ``best.*`` (weights), ``mean.*`` and ``square.*`` (of Adam), with
            the setting ``weight_average`` also ``average.*``.
        diverged: The first loss that was not finite as a sentence, if any.
        retired: Whether it was given up, see :meth:`lgdgcn.train.trainer.Trainer.retire`.
    """

    epoch: int = 0
    best_epoch: int = 0
    best_score: float = -math.inf
    best_loss: float = math.inf
    seconds: float = 0.0
    lowest_score: float | None = None
    first_loss: float | None = None
    last_loss: float | None = None
    tensors: dict[str, Tensor] = field(default_factory=dict, repr=False)
    diverged: str | None = None
    retired: bool = False

    def is_finished(self, settings: Settings) -> bool:
        """Whether there is nothing left to train: epochs or patience used up, or given up."""
        waited = self.epoch - self.best_epoch
        done = self.epoch >= settings.epochs or waited >= settings.patience
        return self.diverged is not None or self.retired or done

    def weights(self, name: str) -> dict[str, Tensor]:
        """The tensors of a group such as ``"model"`` under their own names; none if new."""
        prefix = f"{name}."
        return {k.removeprefix(prefix): t for k, t in self.tensors.items() if k.startswith(prefix)}

    def progress(self) -> dict[str, float | None]:
        """All numbers, as checkpoints save them."""
        skipped = ("tensors", "diverged", "retired")
        return {key: value for key, value in vars(self).items() if key not in skipped}


@dataclass(eq=False)
class Training:
    """One training that is wanted: what, on which graph, and where it stands.

    Attributes:
        model: A key of :data:`lgdgcn.models.MODELS`.
        state: Where it stands; ``None`` if it is new. Who saves a state keeps it here, too: from
            there a training begins again if memory runs out.
        group: Trainings of one group are never parted, such as the seeds of a trial.
    """

    model: str
    settings: Settings
    seed: int
    graph: Data = field(repr=False)
    state: TrainState | None = field(default=None, repr=False)
    group: Hashable = None

    @property
    def architecture(self) -> tuple[str, str]:
        """What trainings have in common that can be made in one pass."""
        return self.model, repr(self.settings.architecture)


@dataclass(frozen=True)
class Epoch:
    """One epoch of one training.

    Attributes:
        index: Its number among those of its pass.
        metrics: Epoch, losses and validation scores by name.
        state: Where the training stands now, without tensors.
        snapshot: Returns where the training stands with its tensors, to be saved.
    """

    training: Training
    index: int
    metrics: dict[str, float | None]
    state: TrainState
    snapshot: Callable[[], TrainState] = field(repr=False)

    @property
    def finished(self) -> bool:
        """Whether this was its last epoch."""
        return self.state.is_finished(self.training.settings)


class Population:
    """All that training changes, in tensors with a leading axis of R members.

    Args:
        models: Each member's new model; it is given the weights of its state.
        steps: Steps of the optimizer in an epoch.

    Attributes:
        settings: The numbers in which members may differ, and ``seed``, ``[R]`` each.
        network: The models in one, see :func:`lgdgcn.models.population.stack`.
        optimizer: Adam with each member's rate and decay.
        best: Weights and statistics of every member's best epoch, ``[R, ...]`` each.
        average: Moving averages of the parameters, which are evaluated instead of them,
            ``[R, ...]`` each; none if no member has the setting ``weight_average``.
        has_dropout: Whether any member drops something.
        epoch: Epochs trained ``[R]``.
        best_epoch: The epoch whose weights are kept ``[R]``.
        best_score: Its validation score ``[R]``.
        best_loss: Its validation loss ``[R]``.
    """

    def __init__(
        self,
        members: Sequence[Training],
        models: Sequence[NodeModel],
        states: Sequence[TrainState],
        steps: int = 1,
    ) -> None:
        self.members = members
        self.has_dropout = any(member.settings.dropout > 0 for member in members)
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
            self.epoch * steps,
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
        """The weights of the losses in the next epoch by the loss's name, ``[R]`` each."""
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
        step = self.optimizer.steps  # [R], from 1
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


def with_weights(model: NodeModel, state: TrainState, name: str) -> NodeModel:
    """Give a single model a member's weights, ``"model"`` (present ones) or ``"best"``."""
    check_like(state.weights(name), model.state_dict(), f"{name} weights")
    model.load_state_dict(state.weights(name))
    return model


def _per_member(members: Sequence[Training], device: torch.device) -> dict[str, Tensor]:
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


class PopulationAdam:
    """Adam (Kingma & Ba, 2015) on stacked parameters ``[R, ...]``, one setting per member.

    It is ``torch.optim.Adam`` with its default betas, member by member; one kernel updates a
    parameter of all members. It never synchronises with the host, so that a GPU can record it.
    (As a ``torch.optim.Optimizer`` it would import PyTorch's compiler, a second's work.)

    Args:
        params: Parameters, whose first axis is that of the members.
        lr: Learning rates ``[R]``.
        weight_decay: L2 penalties ``[R]``.
        steps: How many steps each member has made before ``[R]``; counted on in place.

    Attributes:
        moments: Names of the tensors like a parameter that its state holds; checkpoints save them.
        state: These tensors by parameter.
    """

    moments = ("mean", "square")  # running means of the gradient and of its square

    def __init__(
        self, params: Iterable[Tensor], lr: Tensor, weight_decay: Tensor, steps: Tensor
    ) -> None:
        self.lr, self.weight_decay, self.steps = lr, weight_decay, steps
        self.state = {one: {name: torch.zeros_like(one) for name in self.moments} for one in params}

    def zero_grad(self) -> None:
        """Forget the gradients of the last step."""
        for parameter in self.state:
            parameter.grad = None

    @torch.no_grad()
    def step(self) -> None:
        """Make one step of every member along the gradients."""
        self.steps.add_(1)
        for parameter, moments in self.state.items():
            if parameter.grad is not None:
                kernels.adam(
                    parameter.detach(),
                    parameter.grad.contiguous(),
                    moments["mean"],
                    moments["square"],
                    self.lr,
                    self.weight_decay,
                    self.steps,
                )

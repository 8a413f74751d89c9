"""Figures of a trained model."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import matplotlib
import numpy as np
import numpy.typing as npt
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from torch import Tensor

from lgdgcn.metrics.correlation import channel_correlation
from lgdgcn.storage import atomic_write

if TYPE_CHECKING:
    from lgdgcn.reasons import ModelChoice

__all__ = ["COLORS", "factor_color", "plot_reasons", "plot_units", "save_figure", "tsne_map"]

# Okabe-Ito, distinct for colour-blind readers; more factors get lighter shades of them
COLORS = ["#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#000000"]
MOST_POINTS = 1600  # t-SNE takes a few seconds for these


def plot_units(units: Tensor, path: Path, title: str, seed: int = 0) -> None:
    """Draw the units of all factors: a t-SNE map and the correlation of their channels.

    Args:
        units: Units. Shape ``[N, M, d]``.
        path: PNG file to write.
        title: What is shown.
        seed: Seed of the sample and the map.
    """
    values = units.detach().cpu().double().numpy()
    nodes, factors, channels = values.shape
    chosen = np.sort(
        np.random.default_rng(seed).permutation(nodes)[: max(2, MOST_POINTS // factors)]
    )
    points = values[chosen].reshape(-1, channels)
    factor = np.tile(np.arange(factors), len(chosen))

    figure = Figure(figsize=(10.5, 4.8), layout="constrained")  # no pyplot: no backend is chosen
    left, right = figure.subplots(1, 2)
    figure.suptitle(title, fontsize=13, parse_math=False)  # a $ in a name is a $
    position = tsne_map(points, seed)
    for m in range(factors):
        mine = factor == m
        left.scatter(
            *position[mine].T, s=7, color=factor_color(m), linewidths=0, label=f"factor {m + 1}"
        )
    left.set_title("t-SNE map of the units", fontsize=11)
    left.set_xticks([])
    left.set_yticks([])
    left.legend(markerscale=2.5, frameon=False, ncols=min(factors, 4), loc="upper center",
                bbox_to_anchor=(0.5, -0.01), handletextpad=0.1, columnspacing=1.0)  # fmt: skip

    image = right.imshow(
        channel_correlation(values.reshape(nodes, -1)), vmin=0, vmax=1, cmap="magma_r"
    )
    for m in range(1, factors):
        right.axhline(m * channels - 0.5, color="white", linewidth=1)
        right.axvline(m * channels - 0.5, color="white", linewidth=1)
    middle = np.arange(factors) * channels + (channels - 1) / 2
    right.set_xticks(middle, [str(m + 1) for m in range(factors)])
    right.set_yticks(middle, [str(m + 1) for m in range(factors)])
    right.tick_params(length=0)
    right.set_xlabel("factor")
    right.set_title("|correlation| of the channels", fontsize=11)
    figure.colorbar(image, ax=right, shrink=0.85)
    atomic_write(path, lambda file: figure.savefig(file, format="png", dpi=150))


def plot_reasons(choice: "ModelChoice", path: Path, title: str) -> None:
    """Draw how well each number of reasons predicts held-out edges, and which was chosen.

    Args:
        choice: The numbers that were compared, at least one.
        path: PNG file to write.
        title: What is shown.
    """
    figure = Figure(figsize=(6.4, 4.2), layout="constrained")
    axes = figure.subplots()
    axes.set_title(title, loc="left", fontsize=11, parse_math=False)
    place = np.arange(len(choice.counts))
    mean, error = np.array(choice.mean), np.array(choice.error)
    label = "activities of nodes, ± 1 standard error\nof the distance from the best"
    axes.errorbar(place, mean, error, color=COLORS[0], marker="o", capsize=3, label=label)
    if choice.clique_mean is not None:
        axes.axhline(choice.clique_mean, color=COLORS[1], linestyle="--", label="cliques")
    if choice.agreement_mean is not None:
        label = f"agreements: chosen, {choice.num_factors}"
        axes.axhline(choice.agreement_mean, color=COLORS[5], linewidth=3, label=label)
    elif choice.cliques:
        axes.lines[-1].set_linewidth(3)
        axes.lines[-1].set_label(f"cliques: chosen, {choice.num_factors} kinds")
    else:
        activities = choice.num_factors - choice.kinds
        chosen = choice.counts.index(activities)
        ring: dict[str, Any] = {"markersize": 13, "markerfacecolor": "none", "markeredgewidth": 2}
        label = f"chosen: {activities}" + (f", and {choice.kinds} of cliques" * (choice.kinds > 0))
        axes.plot(chosen, mean[chosen], "o", color=COLORS[5], label=label, **ring)
    axes.set_xticks(place, [str(count) for count in choice.counts])
    axes.set_xlabel("number of reasons")
    axes.set_ylabel("log-likelihood of a held-out pair")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, fontsize=9)
    atomic_write(path, lambda file: figure.savefig(file, format="png", dpi=150))


def save_figure(figure: Figure, path: Path) -> Path:
    """Write ``path.png`` and ``path.svg`` and return the first; equal figures give equal files."""
    kinds: dict[str, dict[str, Any]] = {
        "svg": {"dpi": 100, "metadata": {"Date": None, "Creator": None}},  # points are pixels
        "png": {"dpi": 160, "metadata": {"Software": None}},
    }
    files = {kind: path.with_name(f"{path.name}.{kind}") for kind in kinds}
    with matplotlib.rc_context({"svg.hashsalt": "lgdgcn"}):  # the same names inside each time
        for kind, how in kinds.items():
            fill = partial(figure.savefig, format=kind, **how)
            atomic_write(files[kind], fill)
    return files["png"]


def factor_color(factor: int) -> tuple[float, float, float]:
    """One hue per factor; each further round of them halfway to white from the one before."""
    shade, hue = divmod(factor, len(COLORS))
    red, green, blue = (1 - (1 - part) / 2**shade for part in to_rgb(COLORS[hue]))
    return red, green, blue


def tsne_map(points: npt.NDArray[np.float64], seed: int) -> npt.NDArray[np.float64]:
    """Two dimensions by t-SNE; too few or identical points fall back to their first two."""
    from sklearn.manifold import TSNE

    if len(points) < 5 or np.ptp(points, axis=0).max() == 0:
        return np.hstack([points, np.zeros((len(points), 2))])[:, :2]
    perplexity = min(30.0, (len(points) - 1) / 3)
    start = "pca" if min(points.shape) > 1 else "random"
    tsne = TSNE(perplexity=perplexity, init=start, max_iter=500, random_state=seed)
    return np.asarray(tsne.fit_transform(points), dtype=np.float64)

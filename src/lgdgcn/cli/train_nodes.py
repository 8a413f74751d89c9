"""What ``lgdgcn train`` does for classes of nodes: choose, train, compare, leave a run folder."""

import os
from collections.abc import Callable
from contextlib import ExitStack
from copy import copy
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import torch
from torch_geometric.data import Data

from lgdgcn import __version__
from lgdgcn.cli import console
from lgdgcn.cli.batches import check_same_graph, fitting, follow, graph_loader, several_ranks
from lgdgcn.cli.reasons import find_reasons, print_reasons, results_of
from lgdgcn.cli.train import Asked
from lgdgcn.cli.train_table import (
    epoch_progress,
    model_title,
    print_results,
    say_what_was_read,
)
from lgdgcn.cli.verdict import find_verdict
from lgdgcn.config import (
    AUTO,
    auto_scaling,
    belongs,
    check_used,
    model_and_variant,
    preset,
    resolve,
    to_toml,
)
from lgdgcn.errors import InputError, StoppedError
from lgdgcn.reasons import EdgeReasons
from lgdgcn.reasons.model import FITS
from lgdgcn.runs.checkpoint import check_same
from lgdgcn.runs.files import read_config
from lgdgcn.runs.finished import finished_result
from lgdgcn.runs.fit import fit
from lgdgcn.runs.folder import Run
from lgdgcn.runs.naming import default_folder, run_header
from lgdgcn.runs.results import leave_results
from lgdgcn.runtime import StopRequest, keep_freed_memory, set_threads, stop_on_signals
from lgdgcn.search.choose import Choice, Ranked, choose
from lgdgcn.search.factors import FOUND
from lgdgcn.search.families import Candidate, candidates
from lgdgcn.train.population import TrainState
from lgdgcn.train.ranks import Ranks
from lgdgcn.train.task import choose_metric

__all__ = ["train_nodes"]

Result = dict[str, Any]

# settings that comparisons share
SHARED = ("epochs", "patience", "checkpoint_every", "metric", "class_weights")


@dataclass
class Planned:
    """A model that is to be trained.

    Attributes:
        run: Its folder; once settings are chosen, its ``config.toml`` has them.
        candidates: What to choose its settings from.
        begun: Where the race has left its training, to go on with.
    """

    run: Run
    candidates: list[Candidate]
    begun: TrainState | None = None


def train_nodes(asked: Asked) -> tuple[Path, list[Result]]:
    """Train a model, or the winner of all, and those it is compared with; print the results.

    Returns:
        The run folder and the results, first those of the run itself; none on other ranks.
    """
    settings = {**asked.settings}
    set_threads()
    keep_freed_memory()  # on every rank: all wait for the slowest
    with several_ranks(asked.options.device, settings, asked.compare) as (ranks, device):
        ranks.check_same({"settings": (settings, asked.model, asked.seeds, __version__)})
        load = graph_loader(asked.source, settings.get("batch_size", 0))
        if not ranks.is_first:
            follow(load, asked.seeds, device)
            return Path(), []
        with stop_on_signals() as stop:
            command = _Command(asked, settings, load, device, stop)
            try:
                results = command.run_all(restarted=ranks.restarts > 0)
            except StoppedError as error:
                saved = "saved, " if Run.open(command.path).config.is_file() else ""
                message = f"{error}; {saved}repeat the command with --resume --out {command.path} "
                raise StoppedError(message + "to go on", error.exit_code) from None
        command.show(results)
        return command.path, results


@dataclass
class _Command:
    """One command, as the only process or the one that writes the run folder."""

    asked: Asked
    settings: Result
    load: Callable[[int], Data]
    device: torch.device
    stop: StopRequest
    path: Path = Path()
    has_reasons: bool = False

    @property
    def data(self) -> Data:
        """The graph of the first seed, on which settings are chosen."""
        return self.load(self.asked.seeds[0])

    def run_all(self, *, restarted: bool) -> list[Result]:
        """Choose and train everything; returns all results, those of the run first."""
        run = self._open(restarted)
        beside = {name: run.compared(name) for name in self.asked.compare}
        for one in (run, *beside.values()):  # all before anything in any of them is touched
            if not run.resume:
                self._refuse_to_replace_settings(one)
            one.check()
        check_same_graph(self.load, self.asked.seeds)
        # what cannot be used, or is too large, is refused before the run folder is touched
        planned = Planned(run, self._tried())
        rows = self._compared(planned.candidates, beside)
        if rows:
            _ = self._load_whole
        say_what_was_read(self._name, self.data, planned.candidates[0].settings)
        with run, ExitStack() as held:
            reasons = self._reasons(run)
            if reasons is not None:
                self.has_reasons, self.load = True, _with(reasons, self.load)
            also = self._race(planned, rows, held)
            if reasons is not None and not run.reasons.is_file():
                reasons.save(run.reasons, self.data)
            results = [self._train(planned)]
            whole = self._load_whole if also else self.load
            results += [self._train(other, whole) for other in also]
            folders = [run, *(one.run for one in also)]
            if verdict := find_verdict(results, folders, whole, self.device):
                results[0]["verdict"] = verdict
            if reasons is not None:
                results[0]["reasons"] = results_of(self.data, reasons, self._name, run)
            if verdict or reasons is not None:
                run.write_result(results[0])
        return results

    def _open(self, restarted: bool) -> Run:
        """The run folder; ranks that were restarted go on, whatever the command says."""
        source, options, name = self.asked.source, self.asked.options, self.asked.model or ""
        resume, overwrite = options.resume, options.overwrite
        if restarted:
            try:
                path = options.out or default_folder(source.name, name, resume=True)
                resume, overwrite = Run.open(path).config.is_file(), False
            except InputError:
                resume = False
        self.path = options.out or default_folder(source.name, name, resume=resume)
        return Run.create(self.path, resume=resume, overwrite=overwrite)

    def _refuse_to_replace_settings(self, run: Run) -> None:
        config = self.asked.options.config
        if config and run.config.is_file() and os.path.samefile(config, run.config):
            raise InputError(
                f"--config {config} would be replaced by the run in {run.path}: copy it elsewhere "
                "or choose another --out"
            )

    def _reasons(self, run: Run) -> EdgeReasons | None:
        """Why the edges are there: found before the race, as models may use it."""
        mode, data = self.asked.options.reasons, self.data
        if run.config.is_file():  # it is resumed
            saved = read_config(run.config)
            self.has_reasons = saved["run"].get("reasons") == "model"
            check_same(saved, {"run": self._header(saved["run"]["model"])})
            if not self.has_reasons:
                return None
            if run.reasons.is_file():
                return EdgeReasons.load(run.reasons, data)
            mode = "model"
        if Ranks.current().size > 1:
            mode = "factors"
        varies = self.asked.source.varies_with_seed and len(self.asked.seeds) > 1
        return find_reasons(
            data,
            self.asked.source,
            mode,
            check=lambda: self.stop.check("stopped before anything was trained"),
            several_splits=varies,
            fits=min(len(self.asked.seeds), FITS),
            random_state=self.asked.seeds[0],
        )

    @cached_property
    def _load_whole(self) -> Callable[[int], Data]:
        """What reads the graph for models that need all nodes, whatever the run's is trained in."""
        load = graph_loader(self.asked.source, 0)
        if load(self.asked.seeds[0]).edge_index is None:
            raise InputError(
                f"--compare {self.asked.compare[0]} needs all nodes at once, and "
                f"{self.asked.source.dataset} does not fit into memory; leave it out"
            )
        return load

    # What is tried

    def _tried(self) -> list[Candidate]:
        """The candidates of the run that can be trained here, as many as the budget has."""
        asked, data = self.asked, self.data
        graph, multi_label = asked.source.preset_name, data.y.dim() == 2
        every = candidates(graph, asked.model, self.settings, multi_label=multi_label)
        limit = asked.options.time_limit
        if (asked.budget or limit) and len(every) == 1:
            option = f"--budget {asked.budget}" if asked.budget else f"--time-limit {limit}"
            raise InputError(
                f"{option} has nothing to choose from, as {asked.model or every[0].model} has one "
                f"set of settings for {asked.source.name}; leave it out"
            )
        tried = fitting(every[: self._most], data, self.device)
        models = dict.fromkeys(one.model for one in tried)
        if len(models) == 1:
            for given in (asked.given, self.settings):  # a file may say that a part is off
                every_setting = [one.settings for one in tried]
                check_used(given, every_setting, next(iter(models)), multi_label=multi_label)
        choose_metric(data, tried[0].settings.metric)  # refuses one that the labels do not have
        return tried

    @property
    def _most(self) -> int | None:
        return None if self.asked.budget is None else max(1, self.asked.budget)

    def _compared(self, tried: list[Candidate], beside: dict[str, Run]) -> list[Planned]:
        """What is trained beside the run, without what is the run's or another's."""
        source, first = self.asked.source, tried[0].settings
        shared = {key: value for key, value in self.settings.items() if key in SHARED}
        if auto_scaling(source.preset_name):  # nobody chose one for this graph: all have the same
            shared = {"scaling": first.feature_scaling, **shared}
        planned: list[Planned] = []
        multi_label = self.data.y.dim() == 2
        for name, run in beside.items():
            model = _compared_as(source.preset_name, name, multi_label)
            every = candidates(source.preset_name, model, shared, multi_label=multi_label)
            every = every[: self._most]
            if every in (tried, *(one.candidates for one in planned)):
                console.say(f"--compare {name}: the same is trained already, so not again")
            else:
                planned.append(Planned(run, every))
        return planned

    # The race, and what follows of it

    def _race(self, planned: Planned, rows: list[Planned], held: ExitStack) -> list[Planned]:
        """Choose the model of the run, and what is trained beside it.

        That is what the command names and, if the winner has no factors, the best model of the race
        that has some. The run's own ``config.toml`` is written last: it says that all is chosen.
        """
        run, ours = planned.run, planned.run.compared("lgdgcn")
        choice = None
        if run.config.is_file():  # it is resumed
            winner = read_config(run.config)["run"]["model"]
            has_ours = ours.config.is_file()
        else:
            choice = self._choose(planned.candidates)
            winner = choice.best.model
            best = choice.of("lgdgcn")
            has_ours = best is not None and best.score is not None
            ours = Run(ours.path, overwrite=True, inner=True)  # what a killed race may have begun
        if self.asked.model is None:
            rows = _without(rows, winner)
            if has_ours and not self.has_reasons and not belongs("factors", winner):
                rows = [Planned(ours, planned.candidates), *_without(rows, "lgdgcn")]
        for one in rows:
            held.enter_context(one.run)
            if self.asked.model is None and choice is not None:
                for ranked in choice.ranking:
                    if ranked.candidate.name == one.run.path.name:
                        self._begin(one, choice, ranked)
        if choice is not None:
            self._begin(planned, choice, choice.ranking[0])
        return rows

    def _header(self, model: str) -> Result:
        """What ``config.toml`` says of the run of a model."""
        header = run_header(self.asked.source, model, self.asked.seeds)
        return header | ({"reasons": "model"} if self.has_reasons else {})

    def _choose(self, tried: list[Candidate]) -> Choice:
        choice = choose(
            tried,
            self.data,
            self.device,
            seed=self.asked.seeds[0],
            seconds=self.asked.seconds,
            stop=self.stop,
            budget=self.asked.budget,
            fixed=self.settings,
        )
        if choice.factors is not None:
            console.say(str(choice.factors))
        if len(tried) > 1:
            console.say(str(choice))
        return choice

    def _begin(self, planned: Planned, choice: Choice, ranked: Ranked) -> None:
        """Write down what was chosen, and the epochs that the race has trained of it."""
        candidate, planned.begun = ranked.candidate, ranked.state
        tables: Result = {"run": self._header(candidate.model)}
        tables["settings"] = candidate.settings.as_dict()
        if choice.factors is not None and belongs("factors", candidate.model):
            tables["auto_factors"] = choice.factors.as_dict()
        if choice.tried + choice.untried > 1:
            tables["search"] = choice.as_dict()
        text = "\n".join(to_toml(table, values) for table, values in tables.items())
        planned.run.write_config(text)
        for metrics in ranked.log:
            planned.run.append_metrics({"seed": self.asked.seeds[0], **metrics})

    def _chosen(self, planned: Planned, saved: Result) -> Candidate:
        """What ``config.toml`` says was chosen; in what all candidates have alike it agrees."""
        model, found = saved["run"]["model"], saved["settings"]
        tried = [one for one in planned.candidates if one.model == model] or planned.candidates
        every = [one.settings.as_dict() for one in tried]
        alike = {
            key: value for key, value in every[0].items() if all(e[key] == value for e in every)
        }
        if saved.get("search", {}).get("searched"):
            alike = {key: alike[key] for key in (*SHARED, *self.settings) if key in alike}
        if every[0]["factors"] == AUTO:  # found by itself
            alike = {key: value for key, value in alike.items() if key not in FOUND}
        check_same(saved, {"run": self._header(tried[0].model), "settings": found | alike})
        return Candidate(model, resolve(found))

    def _train(self, planned: Planned, load: Callable[[int], Data] | None = None) -> Result:
        """Train all seeds with the settings that were chosen, and keep the best model."""
        run, seeds, load = planned.run, self.asked.seeds, load or self.load
        if not run.config.is_file():
            choice = self._choose(planned.candidates)
            self._begin(planned, choice, choice.ranking[0])
        saved = read_config(run.config)
        chosen = self._chosen(planned, saved)
        model, settings = chosen.model, chosen.settings
        what = {"model": model, "variant": model_and_variant(chosen.name)[1]}
        found: Result = {key: saved[key] for key in ("auto_factors", "search") if key in saved}
        if "search" in found:
            found["ranking"] = found["search"].pop("ranking")
        if run.result.is_file():
            Ranks.current().from_first(None)
            return finished_result(run, load, what, seeds)
        Ranks.current().from_first(chosen)
        title = model_title(what)
        with epoch_progress(title, len(seeds)) as on_epoch:
            options: Result = {"on_epoch": on_epoch, "stop": self.stop, "begun": planned.begun}
            runs, trained = fit(load, settings, model, seeds, self.device, run, **options)
        about = {"dataset": self.asked.source.dataset, **what}
        title = f"{title} on {self._name}"
        return leave_results(run, about, found, runs, trained, load(seeds[0]), title)

    @property
    def _name(self) -> str:
        return self.asked.source.name

    def show(self, results: list[Result]) -> None:
        """Print the results."""
        source = self.asked.source
        notes = not self.settings and source.dataset.lower() == source.name
        print_results(source, results, self.path, notes=notes)
        if "reasons" in results[0]:
            print_reasons(source.name, results[0])
        console.say(f"run folder: {self.path}; next: lgdgcn predict {self.path}")


def _with(reasons: EdgeReasons, load: Callable[[int], Data]) -> Callable[[int], Data]:
    """What reads the graph together with the reasons of its edges."""

    @lru_cache(maxsize=2)
    def read(seed: int) -> Data:
        data = copy(load(seed))
        reasons.attach(data)
        return data

    return read


def _without(rows: list[Planned], model: str) -> list[Planned]:
    """What is compared, without a model that is trained anyway."""
    kept = [one for one in rows if one.run.path.name != model]
    if len(kept) < len(rows):
        console.say(f"--compare {model}: the same is trained already, so not again")
    return kept


def _compared_as(graph: str, name: str, multi_label: bool) -> str:
    """The model whose preset stands beside the run.

    Without a word on which reading of DisenGCN is meant, it is that with a preset for this graph.
    """
    if name != "disengcn" or preset(graph, name, "paper", multi_label=multi_label):
        return name
    has_released = preset(graph, name, "released", multi_label=multi_label)
    return f"{name}-released" if has_released else name

"""How a tree spells what is compared: its commands, its files, the names in what it writes.

``TODAY`` is the spelling of the commit that is recorded first. A commit that renames an option, a
module, a file or a column adds one row to ``CHANGES``: a file that trees have from then on, and the
words that are other ones there. Nothing else in this folder knows how a tree spells anything.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

__all__ = ["CHANGES", "TODAY", "Change", "Spelling"]

HERE = Path(__file__).parent

# Words of one name may stand beside those of others; {braces} are filled in.
TODAY = {
    # lgdgcn …: trainings
    "train": "train {graph} --out {run} --seeds {seeds} --budget none --set epochs={epochs} "
    "--set checkpoint_every=5",
    "paper": "--variant paper",
    "released": "--variant released",
    "ours": "--variant sharp",
    "gcn": "--model gcn",
    "grand": "--model grand",
    "batches": "--batch-size {size}",
    "table": "--set hop_table=always",
    "drawn": "--set hop_table=never --set fan_out=4",
    "structure": "--set structure=both --set refresh_every=5 --set structure_neighbours=5",
    "two parts": "--set batch_parts=2",
    "resume": "--resume",
    "edges": "train {graph} --out {run} --seeds {seeds}",
    "number of reasons": "--factors {number}",
    "synthetic": "synthetic:nodes={nodes},classes=3,factors=4,average_degree=10",
    "population of paper": "{here}/population.py {graph} {run} {epochs} paper",
    "population of ours": "{here}/population.py {graph} {run} {epochs} sharp",
    # of a finished run
    "predict": "predict {run} --edges --proba",
    "explain": "explain {run} --json",
    "of a node": "--node {node}",
    "of an edge": "--edge {source} {target}",
    "measure": "measure {run}",
    "pack": "data pack {graph} --out {packed}",
    # files in a run folder
    "metrics": "metrics.jsonl",
    "result": "result.json",
    "weights": "model.safetensors",
    "weights of a seed": "model-seed-{seed}.safetensors",
    "nodes predicted": "predictions.csv",
    "edges predicted": "predictions-edges.csv",
    "measures": "measure.json",
    # python …: measurements
    "import": "-c __import__('lgdgcn')",
    "help": "-m lgdgcn --help",
    "train as users do": "-m lgdgcn train {graph} --out {run} --overwrite",
    "train a little": "-m lgdgcn train {graph} --out {run} --overwrite --budget none "
    "--set epochs=20",
    "predict a run": "-m lgdgcn predict {run} --out {file}",
    # python …: measurements that print one JSON object in their last line, and the rows they know
    "a step": "-m lgdgcn.benchmark.worker {json}",
    "row of released": "fast",
    "row of 64 of released": "population-64",
    "row of ours": "sharp",
    "row of 64 of ours": "sharp-population-64",
    "a scale row": "{here}/scale_row.py {json}",
    # trees that agree in this can read each other's packed graphs
    "packed format": "1",
}


@dataclass(frozen=True)
class Change:
    """What a commit has renamed.

    Attributes:
        since: A file that trees have from then on; after a colon, a text that it has.
        words: Entries of :data:`TODAY` that are other ones there.
        renamed: Today's names of keys, columns and tensors, by what they are called there.
    """

    since: str
    words: Mapping[str, str] = field(default_factory=dict)
    renamed: Mapping[str, str] = field(default_factory=dict)

    def is_in(self, tree: Path) -> bool:
        """Whether a tree has it."""
        name, _, text = self.since.partition(":")
        file = tree / name
        return file.is_file() and text in file.read_text(encoding="utf-8")


# In the order of the commits. An example, of a commit that gives edges a verb of their own:
# Change("src/lgdgcn/cli/edges.py", {"edges": "edges {graph} --out {run} --seeds {seeds}"})
CHANGES: tuple[Change, ...] = (
    Change(
        "benchmarks/step.py",  # measurements are no part of the package
        {
            "a step": "{tree}/benchmarks/step.py --row {json}",
            "row of ours": "ours",
            "row of 64 of ours": "ours-population-64",
            "a scale row": "{tree}/benchmarks/scale.py --row {json}",
        },
    ),
    Change(
        "src/lgdgcn/models/ours.py",  # the default model is ours, in every word
        {
            "ours": "--variant ours",
            "population of ours": "{here}/population.py {graph} {run} {epochs} ours",
        },
    ),
    Change(
        "src/lgdgcn/search/families.py",  # a reading of a model is part of its name
        {
            "paper": "--model lgdgcn-paper",
            "released": "--model lgdgcn-released",
            "ours": "--model lgdgcn",
        },
    ),
)


@dataclass(frozen=True)
class Spelling:
    """The words of one tree, and today's names of what it writes."""

    words: Mapping[str, str]
    renamed: Mapping[str, str]
    tree: Path = Path()

    @classmethod
    def of(cls, tree: Path, changes: tuple[Change, ...] = CHANGES) -> "Spelling":
        """Find out which words a tree uses."""
        words, renamed = dict(TODAY), dict[str, str]()
        for change in changes:
            if change.is_in(tree):
                words |= change.words
                renamed |= change.renamed
        return cls(words, renamed, tree)

    def command(self, *names: str, **values: object) -> list[str]:
        """The words of some entries, one after the other."""
        return [
            word.format(here=HERE, tree=self.tree, **values)
            for name in names
            for word in self.words[name].split()
        ]

    def file(self, run: Path, name: str, **values: object) -> Path:
        """A file in a run folder."""
        return run / self.words[name].format(**values)

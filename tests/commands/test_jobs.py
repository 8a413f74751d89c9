"""The job files of docs/scale.md: that they can be read, and name options that there are."""

import shlex
import subprocess
from pathlib import Path

import pytest
import typer

from lgdgcn.cli import app

JOBS = Path(__file__).parents[2] / "examples" / "jobs"


def check_command(words):
    """See that torchrun and lgdgcn know every option."""
    from torch.distributed.run import get_args_parser

    start = words.index("torchrun") + 1
    known = get_args_parser().parse_args(words[start:])
    assert (known.module, known.training_script) == (True, "lgdgcn")
    verb, _, *options = known.training_script_args
    command = typer.main.get_command(app).commands[verb]
    names = {name for parameter in command.params for name in parameter.opts}
    assert {option.partition("=")[0] for option in options if option[:2] == "--"} <= names


def test_the_slurm_file_is_a_script_that_starts_ranks():
    file = JOBS / "slurm.sh"
    subprocess.run(["bash", "-n", str(file)], check=True)
    text = file.read_text().replace("\\\n", " ")
    command = next(line for line in text.splitlines() if line.startswith("srun "))
    check_command(shlex.split(command.replace('"$SLURM_NNODES"', "4")))


def test_the_kubernetes_file_starts_as_many_pods_as_ranks_expect():
    yaml = pytest.importorskip("yaml")
    service, job = yaml.safe_load_all((JOBS / "kubernetes.yaml").read_text())
    assert service["spec"]["clusterIP"] == "None"
    spec = job["spec"]
    pod = spec["template"]["spec"]
    container = pod["containers"][0]
    assert (spec["completionMode"], spec["completions"]) == ("Indexed", spec["parallelism"])
    assert f"--nnodes={spec['completions']}" in container["command"]
    assert pod["subdomain"] == service["metadata"]["name"]
    volumes = {volume["name"] for volume in pod["volumes"]}
    assert {mount["name"] for mount in container["volumeMounts"]} == volumes
    check_command(container["command"])

"""The job files of docs/scale.md: that they can be read, and name options that there are."""

import os
import subprocess
from pathlib import Path

import kubernetes_validate
import pytest
import typer
import yaml

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


def started(script, place):
    """The words that torchrun is started with, by a script in a folder; others are pretended."""
    pretended = {
        "scontrol": "printf 'first\\nsecond\\n'",
        "srun": 'while [ "${1#--}" != "$1" ]; do shift; done; exec "$@"',
        "torchrun": 'printf "%s\\0" torchrun "$@"',
    }
    for name, text in pretended.items():
        (place / name).write_text(f"#!/bin/sh\n{text}\n")
        (place / name).chmod(0o755)
    slurm = {"SLURM_JOB_NODELIST": "all", "SLURM_NNODES": "4", "SLURM_JOB_ID": "7"}
    path = f"{place}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, **slurm, "SLURM_CPUS_PER_TASK": "64", "PATH": path}
    done = subprocess.run(
        script, cwd=place, env=environment, check=True, capture_output=True, text=True
    )
    return done.stdout.split("\0")[:-1]


def test_the_slurm_file_starts_ranks_and_goes_on_when_it_is_started_again(tmp_path):
    script = ["bash", str(JOBS / "slurm.sh")]
    words = started(script, tmp_path)
    check_command(words)
    assert "--rdzv-endpoint=first:29500" in words
    assert "--resume" not in words
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "config.toml").touch()
    assert started(script, tmp_path) == [*words, "--resume"]


def test_a_cluster_can_read_the_kubernetes_file():
    text = (JOBS / "kubernetes.yaml").read_text()
    for part in yaml.safe_load_all(text):
        kubernetes_validate.validate(part, "1.34", strict=True)
    wrong = list(yaml.safe_load_all(text.replace("backoffLimit", "backofLimit")))[1]
    with pytest.raises(kubernetes_validate.ValidationError, match="backofLimit"):
        kubernetes_validate.validate(wrong, "1.34", strict=True)


def test_the_kubernetes_file_starts_as_many_pods_as_ranks_expect(tmp_path):
    service, job = yaml.safe_load_all((JOBS / "kubernetes.yaml").read_text())
    assert service["spec"]["clusterIP"] == "None"
    spec = job["spec"]
    pod = spec["template"]["spec"]
    container = pod["containers"][0]
    assert (spec["completionMode"], spec["completions"]) == ("Indexed", spec["parallelism"])
    script = container["args"][0].replace("/data/", f"{tmp_path}/")
    words = started([*container["command"], script], tmp_path)
    assert f"--nnodes={spec['completions']}" in words
    assert pod["subdomain"] == service["metadata"]["name"]
    volumes = {volume["name"] for volume in pod["volumes"]}
    assert {mount["name"] for mount in container["volumeMounts"]} == volumes
    check_command(words)
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "config.toml").touch()
    assert started([*container["command"], script], tmp_path) == [*words, "--resume"]

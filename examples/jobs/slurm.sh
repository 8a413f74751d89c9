#!/bin/bash
# Four machines of eight GPUs each: sbatch examples/jobs/slurm.sh
#SBATCH --job-name=lgdgcn
#SBATCH --nodes=4
#SBATCH --ntasks-per-node=1
#SBATCH --gpus-per-node=8
#SBATCH --cpus-per-task=64
#SBATCH --time=12:00:00
#SBATCH --requeue

set -euo pipefail
first=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
resume=$(if [ -f run/config.toml ]; then echo --resume; fi)  # the job was started again
srun --cpus-per-task="$SLURM_CPUS_PER_TASK" torchrun \
    --nnodes="$SLURM_NNODES" --nproc-per-node=8 --max-restarts=10 \
    --rdzv-backend=c10d --rdzv-id="$SLURM_JOB_ID" --rdzv-endpoint="$first:29500" \
    -m lgdgcn train graph.lgd --batch-size 524288 --out run $resume

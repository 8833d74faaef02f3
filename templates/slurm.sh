#!/usr/bin/env bash
# Grades a class on real GPUs: sbatch templates/slurm.sh /path/to/class
# Call it from the course's folder. It goes on where it was when it is submitted again.
#SBATCH --job-name=course
#SBATCH --gpus-per-node=2
#SBATCH --cpus-per-task=8
#SBATCH --exclusive
#SBATCH --time=04:00:00
#SBATCH --output=course-%j.log
set -euo pipefail
class=${1:?usage: sbatch templates/slurm.sh CLASS}
cd "${SLURM_SUBMIT_DIR:-.}"
command -v nvcc >/dev/null || module load cuda
srun --ntasks=1 ./course grade "$class" --rig gpu

#!/bin/sh
# Many prompts on a cluster: each task of a Slurm array answers its share of
# the file.  A task that was requeued goes on where it was.  For example
#     sbatch --array=0-7 --requeue batch-slurm.sh MODEL prompts.jsonl answers
#     cat answers/*.answers >answers.jsonl
# usage: batch-slurm.sh MODEL PROMPTS FOLDER [dllm batch OPTION...]
#SBATCH --job-name=dllm
#SBATCH --nodes=1 --ntasks=1 --cpus-per-task=16 --mem=16G
set -eu
[ $# -ge 3 ] || { sed -n 's/^# \(usage: \)/\1/p' "$0" >&2; exit 2; }
model=$1 prompts=$2 folder=$3
shift 3
case $prompts in
*.jsonl) suffix=.jsonl ;;
*) suffix=.txt ;;
esac

mkdir -p "$folder"
part=$folder/$(printf '%05d' "$SLURM_ARRAY_TASK_ID")
split -n "l/$((SLURM_ARRAY_TASK_ID + 1))/$SLURM_ARRAY_TASK_COUNT" \
	"$prompts" >"$part$suffix"
exec dllm batch --model "$model" --threads "${SLURM_CPUS_PER_TASK:-1}" "$@" \
	--output "$part.answers" "$part$suffix"

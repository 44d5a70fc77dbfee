#!/bin/bash
# One sweep over a Slurm job array: every task computes one share of FILE into DIR, which all nodes must see.
#
#   sbatch --array=0-15 examples/slurm.sh FILE DIR
#   sbatch --dependency=afterany:JOBID --wrap "jaxbandits run FILE --out DIR"    # JOBID: what the first line printed
#
# The second job merges, and computes what a lost task left. To run only some shares again, say how many there are:
#   sbatch --array=3,7 --export=ALL,SHARDS=16 examples/slurm.sh FILE DIR
#
# Without Slurm:  SLURM_ARRAY_TASK_ID=0 SLURM_ARRAY_TASK_COUNT=2 bash examples/slurm.sh FILE DIR
#
#SBATCH --job-name=jaxbandits
#SBATCH --ntasks=1
#SBATCH --cpus-per-task=4
#SBATCH --mem=4G
#SBATCH --time=04:00:00
#SBATCH --signal=B:USR1@120
#SBATCH --requeue
#SBATCH --open-mode=append

FILE=${1:?usage: sbatch --array=0-15 examples/slurm.sh FILE DIR}
DIR=${2:?usage: sbatch --array=0-15 examples/slurm.sh FILE DIR}
ID=${SLURM_ARRAY_TASK_ID:?not an array job: sbatch --array=0-15 examples/slurm.sh FILE DIR}
SHARDS=${SHARDS:-${SLURM_ARRAY_TASK_COUNT:?set SHARDS to the number of shares}}

jaxbandits worker "$FILE" --out "$DIR" --shard "$ID/$SHARDS" &
worker=$!

# SIGTERM (scancel, preemption): the worker keeps what is finished and saves lanes on their way. A preempted job comes back by
# --requeue. SIGUSR1 (two minutes before the time limit): the same, and the task queues itself again.
again= told=
trap 'told=yes; kill -TERM $worker 2>/dev/null' TERM INT
trap 'told=yes again=yes; kill -TERM $worker 2>/dev/null' USR1

wait $worker
code=$?
while [ "$told" ]; do # a signal ended `wait` before the worker did
  told=
  wait $worker
  code=$?
done

# 130: stopped with work left; 143: told before it had begun. A worker that finished all the same exits with 0.
if [ "$again" ] && [[ $code == 130 || $code == 143 ]] && command -v scontrol >/dev/null; then
  exec scontrol requeue "${SLURM_ARRAY_JOB_ID}_$ID"
fi
exit $code

#!/bin/bash
# Tests nodes before a job runs on them: sbatch FILE. The first line of the output names the odd node or the slow part, and the file of
# --exclude has the nodes to leave out.
#SBATCH --job-name=ncclcheck
#SBATCH --nodes={nodes}
#SBATCH --ntasks-per-node=1
#SBATCH --gpus-per-node={gpus}
#SBATCH --exclusive
#SBATCH --time=00:20:00
#SBATCH --output=ncclcheck-%j.out

# This starts one srun with a task on each node. An image's name needs pyxis; without a name, the tasks run on the nodes themselves.
# With Apptainer: ncclcheck cluster --exclude FILE --launch 'apptainer exec --nv IMAGE.sif'
ncclcheck cluster --exclude "ncclcheck-$SLURM_JOB_ID.bad"{image}

# SPDX-License-Identifier: GPL-2.0-or-later
# submitit_array.py DIR N PROGRAM : one job array of N jobs that each run PROGRAM, for slurm_peers.sh.
import subprocess
import sys

import submitit


def run(_, program):
    return subprocess.run([program], check=True).returncode


if __name__ == "__main__":
    folder, n, program = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    executor = submitit.SlurmExecutor(folder=folder, python=sys.executable)
    executor.update_parameters(array_parallelism=n, time=2, exclusive=True, use_srun=False)
    jobs = executor.map_array(run, range(n), [program] * n)
    sys.exit(any(job.result() for job in jobs))

"""A Dask cluster of Slurm jobs, until Ctrl-C: pip install dask-jobqueue, then python slurm.py.

Change the sizes to those of your machines.  Run it on a machine that the jobs reach, as the login
node, where home folders are shared.  dask.yaml has the certificate.
"""

import time

from dask_jobqueue import SLURMCluster
from distributed import Security

if __name__ == "__main__":
    with SLURMCluster(
        cores=32,  # of a job: one process, with a thread for each core
        processes=1,
        memory="64GB",
        walltime="04:00:00",
        protocol="tls://",
        security=Security(),
        scheduler_options={"port": 8786},
        # Compiled code, shared by all jobs.
        job_script_prologue=['export DPBANDITS_CACHE_DIR="$HOME/.cache/dpbandits"'],
    ) as cluster:
        cluster.scale(jobs=10)
        print(f"dpbandits run STUDY.toml --cluster {cluster.scheduler_address}", flush=True)
        while True:
            time.sleep(60)

#!/bin/sh
# A Dask cluster of machines that ssh reaches, until Ctrl-C:
#   sh ssh.sh ADDRESS HOST...
# ADDRESS is that of this machine, as the hosts see it.  Each machine has the same dpbandits (extra
# distributed), dask.yaml with its certificate, and the commands in its PATH.
set -eu
address=$1
shift
trap 'trap - INT TERM EXIT; kill 0' INT TERM EXIT
dask scheduler --host "$address" --port 8786 --protocol tls &
for host; do
    # One process for each host, with a thread for each core.  -tt ends it with the connection.
    ssh -tt "$host" dask worker --nworkers 1 "tls://$address:8786" </dev/null &
done
wait

#!/bin/bash
# In the place of `nam` for local_cluster_test: a catalog that is started again, on the port that it had, crashes as
# soon as it is ready.
child="$(dirname "$0")/child"
[[ "$1" == catalog && "$*" != *--listen=127.0.0.1:0* ]] && exec "$child" crash
exec "$child" "$@"

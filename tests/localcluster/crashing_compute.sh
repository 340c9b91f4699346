#!/bin/bash
# In the place of `nam` for local_cluster_test: compute servers crash as soon as they are ready.
child="$(dirname "$0")/child"
[[ "$1" == compute ]] && exec "$child" crash
exec "$child" "$@"

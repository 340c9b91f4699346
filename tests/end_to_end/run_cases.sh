#!/bin/sh
# Runs a file of cases in the test's folder.
exec /usr/bin/python3 -B "$@"

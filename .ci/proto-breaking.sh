#!/bin/sh
# Compares the protos with the committed image of the previous ones. Comparing with
# a branch would compare main with itself on main and find nothing.
set -eu
cd "$(dirname "$0")/.."
previous=proto/ganglion.image.binpb
[ -f "$previous" ] || { echo "proto-breaking: no $previous yet, nothing to compare with" >&2; exit 0; }
current=$(mktemp "${TMPDIR:-/tmp}/ganglion-image.XXXXXX")
trap 'rm -f "$current"' EXIT
buf build -o "$current#format=binpb"
buf breaking "$current#format=binpb" --against "$previous" --config '{"version":"v2","breaking":{"use":["WIRE_JSON"]}}'

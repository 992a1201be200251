#!/bin/sh
# Makes services/gen from the protos: TypeScript and the image with all descriptors.
# Does nothing when neither protos nor generator changed.
set -eu
cd "$(dirname "$0")/.."
out=services/gen

digest() {
  { find proto -name '*.proto' -type f | LC_ALL=C sort | while read -r f; do echo "$f"; cat "$f"; done
    cat buf.yaml buf.gen.yaml .ci/gen.sh node_modules/ts-proto/package.json; } | cksum
}
fresh() { [ -f "$out/.stamp" ] && [ "$(cat "$out/.stamp")" = "$(digest)" ]; }
fresh && exit 0

if [ "${GANGLION_GEN_LOCKED:-}" != 1 ] && command -v flock >/dev/null; then
  GANGLION_GEN_LOCKED=1 exec flock node_modules sh .ci/gen.sh
fi
fresh && exit 0

echo "gen: generating $out" >&2
now=$(digest)
work=$(mktemp -d "${TMPDIR:-/tmp}/ganglion-gen.XXXXXX")
trap 'rm -rf "$work" "$out.new"' EXIT
buf generate -o "$work" >&2
buf build -o "$work/$out/image.binpb" >&2
echo "$now" > "$work/$out/.stamp"
# Readable by the services' own users whatever the umask was.
chmod -R a+rX "$work"
rm -rf "$out.new"
cp -R "$work/$out" "$out.new"
rm -rf "$out"
mv "$out.new" "$out"

#!/bin/sh
# Installs what the checkout needs, once per lock file. Needs any Node with npm;
# the Node that runs everything afterwards comes with the packages.
set -eu
cd "$(dirname "$0")/.."
stamp=node_modules/.setup-stamp

digest() { cat package-lock.json package.json .npmrc | cksum; }
fresh() { [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$(digest)" ]; }
fresh && exit 0

command -v npm >/dev/null || { echo "setup: npm is needed (any Node.js from 20 on brings it)" >&2; exit 69; }

# Two makes at the same time must not install into one folder.
lock=.git
[ -d "$lock" ] || lock=.
if [ "${GANGLION_SETUP_LOCKED:-}" != 1 ] && command -v flock >/dev/null; then
  GANGLION_SETUP_LOCKED=1 exec flock "$lock" sh .ci/setup.sh
fi
fresh && exit 0

echo "setup: installing packages" >&2
if [ -d node_modules ]; then
  # Something may be running from this folder: bring it up to date in place.
  npm install --no-save --loglevel=error </dev/null >&2
else
  npm ci --loglevel=error </dev/null >&2
fi

node=node_modules/node24/bin/node
[ -x "$node" ] || node=node
"$node" -e '
const [major, minor] = process.versions.node.split(".").map(Number);
if (major < 22 || (major === 22 && minor < 18)) {
  console.error(`setup: Node ${process.versions.node} is too old and none could be installed for this platform; 22.18 or newer is needed`);
  process.exit(69);
}'
digest > "$stamp"

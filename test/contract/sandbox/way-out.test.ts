import assert from "node:assert/strict";
import { once } from "node:events";
import { readdirSync, statSync } from "node:fs";
import { createServer, type Server } from "node:https";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { issueCertificate } from "../../../services/common/tls/issue-certificate.ts";
import { until } from "../../kit/until.ts";
import { PlayedEgress, refusal } from "./played-egress.ts";
import { type HandUser, SandboxKit } from "./sandbox-kit.ts";

const MAX_CONNECTIONS = 4;
const BODY = "x".repeat(1024);

describe("sandbox: a hand's only way out", function () {
  this.timeout(60_000);

  let kit: SandboxKit;
  let proxy: PlayedEgress;
  let upstream: Server;
  let hand: HandUser;
  const received: string[] = [];

  before(async () => {
    const settings = {
      GANGLION_HAND_CONNECTIONS: String(MAX_CONNECTIONS),
      GANGLION_EGRESS_IDLE_MS: "5000",
    };
    kit = await SandboxKit.start(settings, undefined, async (ca) => {
      proxy = await PlayedEgress.start(ca);
      return proxy.settings;
    });
    const leaf = await issueCertificate(kit.ca.authority, { service: "shop", instance: "shop-1" });
    upstream = createServer({ cert: leaf.certPem, key: leaf.keyPem }, (request, response) => {
      let body = "";
      request.on("data", (chunk: Buffer) => {
        body += chunk.toString();
      });
      request.on("end", () => {
        received.push(`${request.method} ${request.url} ${request.headers["x-key"] ?? ""} ${body.length}`);
        response.end(request.url === "/big" ? BODY.repeat(20_000) : `secure ${request.url}\n`);
      });
    });
    upstream.listen(0, "127.0.0.1");
    await once(upstream, "listening");
    proxy.upstream = { host: "127.0.0.1", port: (upstream.address() as AddressInfo).port };
    hand = await kit.newHand();
  });
  after(async () => {
    await kit.stop();
    proxy.stop();
    upstream.closeAllConnections();
    upstream.close();
  });

  const lastConnection = () => proxy.connections.at(-1)!;

  it("curl, Node, Python and git reach the proxy, as this hand and over the mesh's certificate", async () => {
    const before = proxy.connections.length;
    const curl = await hand.bash("curl -sS --max-time 20 http://shop.example/curl");
    assert.equal(curl.output, "seen: GET http://shop.example/curl HTTP/1.1");
    const python = await hand.bash(
      "python3 -c 'import urllib.request as r; print(r.urlopen(\"http://shop.example/python\", timeout=20).read())'",
    );
    assert.match(python.output, /seen: GET http:\/\/shop\.example\/python/);
    const node = await hand.bash(
      "node -e 'fetch(\"http://shop.example/node\").then(async r => console.log(await r.text()))'",
    );
    // Node's own fetch tunnels plain HTTP as well.
    assert.ok(node.output.length > 0);
    const git = await hand.bash("git ls-remote https://git.example/acme/app 2>&1");
    assert.equal(git.isError, true);
    const heads = proxy.connections.slice(before).map(({ head }) => head.split("\r\n")[0]);
    assert.ok(
      heads.includes("GET /git/git.example/acme/app/info/refs?service=git-upload-pack HTTP/1.1"),
      heads.join(),
    );
    for (const { token, peer } of proxy.connections.slice(before)) {
      assert.equal(token, `hand-token-secret-1-${hand.hand.id}`);
      assert.equal(peer, "spiffe://ganglion.local/sandbox/sandbox-1");
    }
    assert.deepEqual(
      proxy.issued.map(({ sessionId, handId, epoch }) => ({ sessionId, handId, epoch })),
      [{ sessionId: hand.sessionId, handId: hand.hand.id, epoch: 0n }],
    );
  });

  it("TLS to an upstream is checked against the session's authority, and placeholders are in the environment", async () => {
    received.length = 0;
    const curl = await hand.bash(
      'curl -sS --max-time 20 -H "x-key: $SHOP_KEY" https://localhost.shop.example/curl 2>&1',
    );
    // The played authority vouches for localhost only: any other name is refused by the client.
    assert.equal(curl.isError, true, curl.output);
    const fine = await hand.bash(
      'curl -sS --max-time 20 --noproxy "" -H "x-key: $SHOP_KEY" https://localhost/curl; curl -sS --max-time 20 --noproxy "" --data-binary @<(head -c 3000000 /dev/zero | tr "\\\\0" a) https://localhost/up',
    );
    assert.equal(fine.output, "secure /curl\nsecure /up");
    assert.deepEqual(received, [
      "GET /curl ganglion_placeholder_abcdefghijklmnopqrstuvwxyz 0",
      "POST /up  3000000",
    ]);
    const node = await hand.bash(
      "NO_PROXY= no_proxy= node -e 'fetch(\"https://localhost/node\").then(async r => console.log(await r.text()), e => console.log(e.cause))'",
    );
    assert.match(node.output, /secure \/node/);
    const python = await hand.bash(
      "no_proxy= python3 -c 'import urllib.request as r; print(len(r.urlopen(\"https://localhost/big\", timeout=20).read()))'",
    );
    assert.equal(python.output, String(BODY.length * 20_000));
    const path = await hand.bash("echo $PATH");
    assert.match(path.output, /^\/opt\/ganglion\/bin:/, "a placeholder takes no variable that a hand needs");
  });

  it("without the variables there is no route, and nothing but the session's own socket works [A088]", async () => {
    const before = proxy.connections.length;
    const { output } = await hand.bash(
      [
        "unset HTTP_PROXY HTTPS_PROXY http_proxy https_proxy",
        "curl -sS --max-time 5 http://shop.example/ 2>&1",
        "curl -sS --max-time 5 http://1.1.1.1/ 2>&1",
        `curl -sS --max-time 5 https://${kit.process.addr}/ 2>&1`,
        "ls /run/ganglion; stat -c %F /run/ganglion/egress.sock",
      ].join("; "),
    );
    assert.match(output, /Could not resolve host|not resolve/);
    assert.match(output, /1\.1\.1\.1.*(unreachable|Couldn't connect|Failed to connect)/);
    assert.match(output, /egress\.sock\ngitconfig\nsocket$/);
    assert.equal(proxy.connections.length, before, "nothing reached the proxy");
    const socket = await hand.bash(
      "curl -sS --max-time 10 --unix-socket /run/ganglion/egress.sock http://shop.example/s",
    );
    assert.equal(socket.output, "seen: GET /s HTTP/1.1");
    // Unset stays unset from command to command; a restarted shell has them again.
    assert.equal((await hand.bash("echo [$https_proxy]")).output, "[]");
    await hand.tool("bash", { restart: true });
    assert.equal((await hand.bash("echo [$https_proxy]")).output, "[http://127.0.0.1:3128]");
  });

  it("the token is nowhere in the hand: memory, environment, files, arguments [A078][A079][A080]", async () => {
    await hand.bash("curl -sS --max-time 20 http://shop.example/again");
    const token = lastConnection().token;
    const scan = await hand.tool("write", { file_path: "scan.py", content: SCAN });
    assert.equal(scan.isError, false);
    const found = await hand.bash("python3 scan.py hand-token-se cret- 2>&1");
    assert.equal(found.output, "0 hits, agent scanned");
    const control = await hand.bash(
      [
        // Opening it lets the other end go on.
        "mkfifo up",
        `CONTROL=hand-token-secret- python3 -c 'import signal; open("up", "w").close(); signal.pause()' &`,
        "cat up; python3 scan.py hand-token-se cret- 2>&1; kill %1",
      ].join("\n"),
    );
    assert.match(control.output, /^[1-9]\d* hits/m, "the control: the scan finds what is there");
    const first = await hand.bash("cat /proc/1/environ | wc -c; ls /proc/self/fd | tr '\\n' ' '");
    assert.equal(first.output, "0\n0 1 2 3 ");
    assert.ok(token.length > 0 && !kit.process.output().includes(token), "nor in the service's log");
  });

  it("its socket can be reached by nobody through the host's folders", () => {
    const door = join(kit.folder, "bubblewrap", "hands", hand.hand.id, "door");
    assert.equal(statSync(door).mode & 0o777, 0o700);
    const outside = ["ca-bundle.pem", "egress-ca.pem", "egress.sock", "gitconfig"];
    assert.deepEqual(readdirSync(join(door, "outside")).sort(), outside);
  });

  it("no more connections than allowed, told as a proxy would; the service's descriptors are safe", async () => {
    const open = () => readdirSync(`/proc/${kit.process.child.pid}/fd`).length;
    const before = open();
    const { output } = await hand.tool("bash", {
      command: `cat > flood.py <<'X'\n${FLOOD}\nX\npython3 flood.py`,
    });
    assert.match(output, /^open [0-4] refused \d+$/m);
    const refused = Number(/refused (\d+)/.exec(output)![1]);
    assert.ok(refused >= 56, output);
    await until(async () => open() <= before + 2, "the descriptors to be closed");
    const works = async () => !(await hand.bash("curl -sS --max-time 20 http://shop.example/after")).isError;
    await until(works, "the hand to have room again");
  });

  it("a connection over which nothing comes is closed", async () => {
    const started = Date.now();
    const { output } = await hand.bash(
      'python3 -c \'import socket; s=socket.create_connection(("127.0.0.1",3128)); s.sendall(b"GET http://x/ HTTP/1.1\\r\\n"); print(len(s.recv(10)))\'',
    );
    assert.equal(output, "0");
    assert.ok(Date.now() - started < 20_000);
  });

  it("a token that the door does not know is asked for anew", async () => {
    const other = await kit.newHand();
    await other.bash("curl -sS --max-time 20 http://shop.example/one");
    const old = lastConnection().token;
    proxy.refused.add(old);
    await until(async () => {
      await other.bash("curl -sS --max-time 20 http://shop.example/two");
      return lastConnection().token !== old;
    }, "another token");
    assert.equal(proxy.issued.filter(({ handId }) => handId === other.hand.id).length, 2);
    await other.kit.harness.terminate({ handId: other.hand.id, sessionId: other.sessionId, epoch: 1n });
  });

  it("the end of a hand cuts its connections and removes its socket", async () => {
    const doomed = await kit.newHand();
    const before = proxy.connections.length;
    void doomed.bash("curl -sS http://shop.example/held").catch(() => undefined);
    await until(
      async () => proxy.connections[before]?.head !== undefined && lastConnection().head !== "",
      "the connection",
    );
    const { socket } = lastConnection();
    const closed = new Promise((resolve) => socket.once("close", resolve));
    await kit.harness.terminate({ handId: doomed.hand.id, sessionId: doomed.sessionId, epoch: 1n });
    await closed;
    const folder = join(kit.folder, "bubblewrap", "hands", doomed.hand.id);
    assert.equal(statSync(folder, { throwIfNoEntry: false }), undefined);
  });

  it("a session that may reach nothing has no socket, no variables and no forwarder", async () => {
    const { setup } = proxy;
    proxy.setup = { ...setup, hasEgress: false };
    const bare = await kit.newHand();
    proxy.setup = setup;
    const { output } = await bare.bash(
      "ls /run/ganglion /etc/ganglion 2>&1; env | grep -ci proxy; curl -sS http://127.0.0.1:3128/ 2>&1",
    );
    assert.match(output, /cannot access '\/run\/ganglion'/);
    assert.match(output, /^0$/m);
    assert.match(output, /Failed to connect|Couldn't connect/);
    proxy.failure = refusal("NOT_FOUND", "BINDING_NOT_FOUND");
    const unbound = await kit.newHand();
    assert.match((await unbound.bash("ls /run/ganglion 2>&1")).output, /cannot access/);
    proxy.failure = undefined;
  });

  it("a proxy that does not say what a hand may reach: no hand, and the failure names it", async () => {
    proxy.failure = refusal("UNAUTHENTICATED", "SESSION_ENDED");
    await assert.rejects(kit.newHand(), { code: "UNAVAILABLE", reason: "PROVISION_FAILED" });
    proxy.failure = undefined;
  });

  it("a session that has ended is told so at the hand's first connection", async () => {
    const late = await kit.newHand();
    proxy.failure = refusal("UNAUTHENTICATED", "SESSION_ENDED");
    const { output } = await late.bash("curl -sS --max-time 20 -w '%{http_code}' http://shop.example/");
    proxy.failure = undefined;
    assert.equal(output, "ganglion: the session has ended\n503");
  });

  it("what a dead service left is gone at the next start", async () => {
    await kit.restart();
    assert.deepEqual(readdirSync(join(kit.folder, "bubblewrap", "hands")), []);
    const again = await kit.newHand();
    assert.equal((await again.bash("curl -sS --max-time 20 http://shop.example/")).isError, false);
  });
});

const SCAN = `
import os, re, sys
needle = (sys.argv[1] + sys.argv[2]).encode()
hits, agent = 0, False
for name in os.listdir("/proc"):
  if not name.isdigit() or int(name) == os.getpid(): continue
  for part in ("environ", "cmdline"):
    try: hits += open(f"/proc/{name}/{part}", "rb").read().count(needle)
    except OSError: pass
  try:
    maps = open(f"/proc/{name}/maps").read()
    memory = open(f"/proc/{name}/mem", "rb", 0)
  except OSError: continue
  for line in maps.splitlines():
    m = re.match(r"([0-9a-f]+)-([0-9a-f]+) r", line)
    if not m: continue
    start, end = int(m[1], 16), int(m[2], 16)
    try:
      memory.seek(start); hits += memory.read(min(end - start, 1 << 28)).count(needle)
      agent = agent or "/opt/ganglion/bin/node" in line
    except (OSError, ValueError, OverflowError): pass
for root in ("/workspace", "/tmp", "/home/hand", "/run", "/etc", "/opt"):
  for folder, _, files in os.walk(root):
    for f in files:
      p = os.path.join(folder, f)
      try:
        if os.path.isfile(p): hits += open(p, "rb").read().count(needle)
      except OSError: pass
print(f"{hits} hits, agent {'scanned' if agent else 'missed'}")
`;

const FLOOD = `
import select, socket, time
end, kept, refused = time.monotonic() + 4, [], 0
for i in range(60):
  s = socket.create_connection(("127.0.0.1", 3128)) if i % 2 else socket.socket(socket.AF_UNIX)
  try:
    if not i % 2: s.connect("/run/ganglion/egress.sock")
    s.sendall(b"GET http://x/ HTTP/1.1\\r\\n")
    kept.append(s)
  except OSError: refused += 1
# Until only as many are left as may be, and before these are closed because nothing comes.
while len(kept) > 4 and time.monotonic() < end:
  for s in select.select(kept, [], [], max(0, end - time.monotonic()))[0]:
    try: head = s.recv(200)[:12]
    except OSError: head = b""
    refused += head in (b"HTTP/1.1 503", b"")
    kept.remove(s)
print("open", len(kept), "refused", refused)
`;

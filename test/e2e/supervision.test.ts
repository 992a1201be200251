import assert from "node:assert/strict";
import { once } from "node:events";
import { existsSync, readFileSync, statSync } from "node:fs";
import { type AddressInfo, createServer } from "node:net";
import Anthropic from "@anthropic-ai/sdk";
import { runCli, TestMesh } from "../kit/mesh.ts";

/** One session from its making to the end of a turn in which a hand runs a command. */
async function passesSession(mesh: TestMesh): Promise<void> {
  const { code, stdout, stderr } = await mesh.cli(["run", "Run: echo it-$((6*7))", "--json"]);
  assert.equal(code, 0, `${stdout}\n${stderr}`);
  assert.match(stdout, /"agent.tool_result"/, "a hand was used");
  const texts = [...stdout.matchAll(/"json":"([A-Za-z0-9+/=]+)"/g)].map(([, json]) =>
    Buffer.from(json as string, "base64"),
  );
  assert.ok(
    texts.some((text) => text.toString().includes("it-42")),
    "the hand ran the command",
  );
}

describe("a supervised mesh", () => {
  let mesh: TestMesh;

  before(async function () {
    this.timeout(120_000);
    mesh = await TestMesh.start();
  });
  after(async function () {
    this.timeout(60_000);
    await mesh?.stop();
  });

  it("says that it is up already, and starts nothing twice", async () => {
    const before = mesh.pids();
    const again = await mesh.up();
    assert.equal(again.code, 0);
    assert.match(again.stdout, /up already/);
    assert.deepEqual(mesh.pids(), before);
  }).timeout(30_000);

  it("passes the session test", () => passesSession(mesh)).timeout(60_000);

  it("is healthy, says the doctor, and names the part that is not", async () => {
    const well = await mesh.cli(["doctor", "--json"]);
    assert.equal(well.code, 0, well.stdout);
    mesh.kill("sandbox-1", "SIGSTOP");
    const sick = await mesh.cli(["doctor", "--json"]);
    mesh.kill("sandbox-1", "SIGCONT");
    assert.equal(sick.code, 1);
    const findings = sick.stdout
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line) as { part?: string; state?: string });
    assert.deepEqual(
      findings.filter(({ state }) => state === "ill").map(({ part }) => part),
      ["sandbox-1"],
    );
  }).timeout(60_000);

  it("gives everybody a new certificate while it runs", async () => {
    const cert = () => readFileSync(`${mesh.tlsDir("session-1")}/cert.pem`, "utf8");
    const before = cert();
    assert.equal((await mesh.cli(["certs", "renew"])).code, 0);
    assert.notEqual(cert(), before);
    await passesSession(mesh);
  }).timeout(60_000);

  it("keeps its secret files to itself, and secrets out of environments [A079]", () => {
    for (const file of ["client.env", "mesh.json", "tls/ca.key.pem", "vault/keys.json"]) {
      assert.equal(statSync(`${mesh.files.state}/${file}`).mode & 0o077, 0, `${file} is open to others`);
    }
    for (const [name, pid] of Object.entries(mesh.pids())) {
      const environ = readFileSync(`/proc/${pid}/environ`, "utf8");
      assert.ok(!environ.includes(mesh.apiKey), `${name} has the API key in its environment`);
      assert.ok(
        !/VAULT_|ANTHROPIC_|PASSWORD|TOKEN|NODE_EXTRA/.test(environ.replace(/^GANGLION_/gm, "")),
        name,
      );
    }
  });

  it("runs every part as a user of its own when root started it", function () {
    if (process.getuid?.() !== 0) return this.skip();
    const users = new Map(
      Object.entries(mesh.pids()).map(([name, pid]) => [name, statSync(`/proc/${pid}`).uid]),
    );
    assert.ok(![...users.values()].includes(0), "something runs as root");
    users.delete("harness-2");
    assert.equal(new Set(users.values()).size, users.size);
  });

  it("replaces what a killed supervisor left running", async () => {
    const before = mesh.pids();
    process.kill(mesh.supervisorPid(), "SIGKILL");
    const again = await mesh.up();
    assert.equal(again.code, 0, again.stderr);
    for (const [name, pid] of Object.entries(mesh.pids()))
      assert.notEqual(pid, before[name], `${name} was not replaced`);
    for (const [name, pid] of Object.entries(before)) {
      const isGone = !existsSync(`/proc/${pid}`) || /\) Z /.test(readFileSync(`/proc/${pid}/stat`, "utf8"));
      assert.ok(isGone, `the old ${name} still runs`);
    }
    await passesSession(mesh);
  }).timeout(120_000);

  it("leaves a second mesh beside it alone, and keeps its data when it is stopped", async () => {
    const second = await TestMesh.start();
    try {
      const pids = second.pids();
      const client = new Anthropic({ baseURL: mesh.rest, apiKey: mesh.apiKey, maxRetries: 0 });
      const { id } = await client.beta.environments.create({ name: "kept" });
      const down = await mesh.cli(["down"]);
      assert.equal(down.code, 0);
      assert.deepEqual(second.pids(), pids);
      assert.equal((await second.cli(["doctor"])).code, 0);
      const up = await mesh.up();
      assert.equal(up.code, 0, up.stderr);
      // The key of before still opens it.
      const after = new Anthropic({ baseURL: mesh.rest, apiKey: mesh.apiKey, maxRetries: 0 });
      assert.equal((await after.beta.environments.retrieve(id)).name, "kept");
    } finally {
      await second.stop();
    }
  }).timeout(240_000);

  it("says which flag helps when a port is somebody else's", async () => {
    const taken = createServer().listen(0, "127.0.0.1");
    await once(taken, "listening");
    const { port } = taken.address() as AddressInfo;
    const other = `${mesh.files.state}/other`;
    const { code, stderr } = await runCli([
      "up",
      "--state-dir",
      other,
      "--rest-port",
      String(port),
      "--grpc-port",
      "0",
    ]);
    taken.close();
    assert.notEqual(code, 0);
    assert.match(stderr, new RegExp(`port ${port}`));
    assert.match(stderr, /--rest-port/);
  }).timeout(60_000);
});

import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { runCli } from "../../kit/mesh.ts";

describe("the command line without a mesh", function () {
  // Each call is a process of its own.
  this.timeout(60_000);
  let folder: string;
  before(() => {
    folder = mkdtempSync(join(tmpdir(), "ganglion-cli-"));
  });
  after(() => rmSync(folder, { recursive: true, force: true }));

  const run = (...args: string[]) => runCli([...args, "--state-dir", folder]);

  it("lists its commands and describes each", async () => {
    const help = await runCli(["help"]);
    assert.equal(help.code, 0);
    for (const name of [
      "up",
      "down",
      "run",
      "tail",
      "sessions",
      "mcp",
      "vault",
      "policy",
      "audit",
      "certs",
      "doctor",
    ]) {
      assert.match(help.stdout, new RegExp(`^  ${name}\\b`, "m"));
    }
    const vault = await runCli(["help", "vault"]);
    assert.equal(vault.code, 0);
    assert.match(vault.stdout, /^ganglion vault .*\n[\s\S]*model-key/);
    assert.match((await runCli(["version"])).stdout, /^ganglion \d+\.\d+\.\d+/);
  });

  it("says with 64 what is wrong with a command line", async () => {
    for (const args of [
      ["nonsense"],
      ["up", "--nonsense"],
      ["up", "--rest-port", "x"],
      ["tail"],
      ["tail", "sesn_1", "--after", "x"],
      ["sessions", "--limit", "0"],
      ["sessions", "nonsense", "sesn_1"],
      ["sessions", "fork"],
      ["sessions", "fork", "sesn_1", "--at", "0"],
      ["sessions", "kill", "sesn_1", "--at", "1"],
      ["sessions", "kill", "sesn_1", "--all"],
      ["run"],
      ["run", " "],
      ["certs", "issue", "root", "x", "--out", "y"],
    ]) {
      const { code, stderr } = await runCli(args);
      assert.equal(code, 64, `${args.join(" ")}: ${stderr}`);
      assert.match(stderr, /^ganglion: /);
    }
  });

  it("says with 66 that client.env is damaged, and what writes it anew", async () => {
    const damaged = mkdtempSync(join(tmpdir(), "ganglion-cli-"));
    try {
      writeFileSync(join(damaged, "client.env"), "ANTHROPIC_BASE_URL=http://127.0.0.1:1\n");
      const { code, stderr } = await runCli(["sessions", "--state-dir", damaged]);
      assert.equal(code, 66, stderr);
      assert.match(stderr, /damaged[\s\S]*try: ganglion down, then ganglion up/);
    } finally {
      rmSync(damaged, { recursive: true, force: true });
    }
  });

  it("says with 66 that no mesh was started here, and what to type", async () => {
    for (const args of [
      ["sessions"],
      ["run", "x"],
      ["tail", "sesn_1"],
      ["vault", "list"],
      ["certs", "list"],
    ]) {
      const { code, stderr } = await run(...args);
      assert.equal(code, 66, `${args.join(" ")}: ${stderr}`);
      assert.match(stderr, /try: ganglion up/);
    }
  });

  it("stops nothing where nothing runs", async () => {
    const { code, stdout } = await run("down");
    assert.equal(code, 0);
    assert.match(stdout, /no mesh is up/);
  });

  it("tells what is missing for a mesh, and that there is none", async () => {
    const { code, stdout } = await run("doctor", "--json");
    assert.equal(code, 1);
    const lines = stdout
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line) as Record<string, unknown>);
    assert.deepEqual(lines.at(-1), { healthy: false });
    assert.ok(lines.some(({ part, state }) => part === "supervisor" && state === "ill"));
  });

  it("writes one JSON object for an error when asked for JSON", async () => {
    const { stdout } = await run("sessions", "--json");
    assert.ok(typeof (JSON.parse(stdout) as { error: unknown }).error === "string");
  });

  it("writes no colours to what is not a terminal", async () => {
    const { stdout } = await run("doctor");
    assert.ok(!stdout.includes("\u001b"));
  });

  it("names the flag when a port is taken, before it starts anything", async () => {
    const taken = createServer().listen(0, "127.0.0.1");
    await once(taken, "listening");
    const { port } = taken.address() as { port: number };
    const { code, stderr } = await run("up", "--rest-port", "0", "--grpc-port", String(port));
    taken.close();
    assert.equal(code, 69);
    assert.match(stderr, /--rest-port and --grpc-port/);
  });
});

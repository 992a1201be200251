import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { existsSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { GanglionError } from "../../services/common/errors/ganglion-error.ts";
import { createClient } from "../../services/common/grpc/create-client.ts";
import { TlsBundle } from "../../services/common/tls/tls-bundle.ts";
import { AgentServiceService } from "../../services/gen/ganglion/agent/v1/agent_service.ts";
import { ApiKeyServiceService } from "../../services/gen/ganglion/agent/v1/api_key_service.ts";
import { TestMesh } from "../kit/mesh.ts";

type Line = Record<string, unknown>;

const lines = (stdout: string): Line[] =>
  stdout
    .trim()
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line) as Line);

describe("the command line against a mesh", function () {
  this.timeout(60_000);
  let mesh: TestMesh;
  let sessionId: string;

  before(async function () {
    this.timeout(120_000);
    mesh = await TestMesh.start();
  });
  after(() => mesh?.stop());

  it("runs a task to its end, in words, and says that no model was asked", async () => {
    const { code, stdout, stderr } = await mesh.cli(["run", "Run: printf 'a\\033[31mb\\n'"]);
    assert.equal(code, 0, stderr);
    assert.match(stdout, /scripted model/);
    assert.match(stdout, /idle: end of turn/);
    assert.ok(!stdout.includes("\u001b"), "what a tool printed has no power over the terminal [A077]");
    sessionId = /session (sesn_\w+)/.exec(stdout)?.[1] as string;
  });

  it("goes on with a session, and uses the agent and environment of before again", async () => {
    const more = await mesh.cli(["run", "and now?", "--session", sessionId, "--json"]);
    assert.equal(more.code, 0, more.stderr);
    const [first] = lines(more.stdout);
    assert.equal(first?.session_id, sessionId);
    const other = await mesh.cli(["run", "hello", "--json"]);
    assert.equal(other.code, 0);
    const found = lines((await mesh.cli(["sessions", "--json"])).stdout);
    assert.equal(found.length, 2);
    assert.equal(new Set(found.map(({ agentId, environmentId }) => `${agentId} ${environmentId}`)).size, 1);
  });

  it("shows a log from a position on, and each event as JSON", async () => {
    const all = lines((await mesh.cli(["tail", sessionId, "--no-follow", "--json"])).stdout);
    assert.deepEqual(
      all.map(({ position }) => Number(position)),
      all.map((_, index) => index + 1),
      "positions are dense from 1",
    );
    const rest = lines((await mesh.cli(["tail", sessionId, "--no-follow", "--json", "--after", "3"])).stdout);
    assert.equal(rest.length, all.length - 3);
    const unknown = await mesh.cli(["tail", "sesn_unknown"]);
    assert.equal(unknown.code, 66);
  });

  it("keeps secrets: in from standard input only, sealed, and never out again", async () => {
    const secret = `token-${randomBytes(12).toString("hex")}`;
    const [vault] = lines((await mesh.cli(["vault", "create", "alice", "--json"])).stdout);
    const id = vault?.id as string;
    const put = await mesh.cli(
      ["vault", "put", id, "--mcp-url", "https://mcp.example.com/mcp", "--json"],
      `${secret}\n`,
    );
    assert.equal(put.code, 0, put.stderr);
    const [credential] = lines(put.stdout);
    const listed = await mesh.cli(["vault", "list", id, "--json"]);
    assert.deepEqual(
      lines(listed.stdout).map((one) => one.id),
      [credential?.id],
    );
    const outputs = [put, listed].map(({ stdout, stderr }) => stdout + stderr).join("");
    assert.ok(!outputs.includes(secret));
    for (const part of [...Object.keys(mesh.pids()), "supervisor"])
      assert.ok(!mesh.log(part).includes(secret), part);
    const archived = await mesh.cli(["vault", "archive", id, credential?.id as string]);
    assert.equal(archived.code, 0, archived.stderr);
    assert.deepEqual(lines((await mesh.cli(["vault", "list", id, "--json"])).stdout), []);
  });

  it("refuses a secret that is empty, too long or holds control characters", async () => {
    for (const secret of ["", "\n", "a\u0007b", "x".repeat(65_537)]) {
      const { code, stderr } = await mesh.cli(["vault", "model-key"], secret);
      assert.equal(code, 65, stderr);
    }
  });

  it("issues certificates for people: a client's is one workspace, an operator's is all of it", async () => {
    const issue = async (kind: string) => {
      const out = join(mesh.files.state, `issued-${kind}`);
      const { code, stderr } = await mesh.cli(["certs", "issue", kind, "alice", "--out", out]);
      assert.equal(code, 0, stderr);
      assert.equal(statSync(join(out, "key.pem")).mode & 0o077, 0);
      assert.ok(existsSync(join(out, "ca.pem")));
      return new TlsBundle(out);
    };
    const page = { pageSize: 1, pageToken: "", workspaceId: "" };
    for (const [kind, isOperator] of [
      ["client", false],
      ["operator", true],
    ] as const) {
      const tls = await issue(kind);
      const options = { image: null };
      const agents = createClient(AgentServiceService, mesh.grpc, tls, "gateway", options);
      const keys = createClient(ApiKeyServiceService, mesh.grpc, tls, "gateway", options);
      const more = { includeArchived: false, createdAtOrAfter: undefined, createdAtOrBefore: undefined };
      await agents.listAgents({ ...page, ...more });
      const asked = keys.listApiKeys(page);
      if (isOperator) await asked;
      else
        await assert.rejects(
          asked,
          (error) => error instanceof GanglionError && error.code === "PERMISSION_DENIED",
        );
      agents.close();
      keys.close();
      tls.close();
    }
    const again = await mesh.cli([
      "certs",
      "issue",
      "client",
      "alice",
      "--out",
      join(mesh.files.state, "issued-client"),
    ]);
    assert.notEqual(again.code, 0, "a key that is there is not written over");
  });

  it("lets a real key take the place of the script", async () => {
    const stored = await mesh.cli(["vault", "model-key"], "sk-not-a-real-key\n");
    assert.equal(stored.code, 0, stored.stderr);
    const { stdout } = await mesh.cli(["doctor"]);
    assert.match(stdout, /✓ model +a key for https:\/\/api\.anthropic\.com is stored/);
    assert.ok(!readFileSync(mesh.files.mesh, "utf8").includes("sk-not-a-real-key"));
  });
});

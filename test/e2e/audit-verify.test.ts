import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { randomUUID } from "node:crypto";
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { createClient } from "../../services/common/grpc/create-client.ts";
import { AuditServiceService, RecordKind } from "../../services/gen/ganglion/audit/v1/audit_service.ts";
import { bodiesOf } from "../kit/check-log.ts";
import { wholeStage } from "../kit/shared-stage.ts";
import { type Stage, script } from "../kit/stage.ts";

const PYTHON = fileURLToPath(new URL("../security/audit/verify_audit.py", import.meta.url));

describe("a real audit log, verified offline", function () {
  this.timeout(120_000);
  let stage: Stage;
  let folder: string;
  let exported: string;
  let vaultAudit: string;
  let sessionId: string;
  let receipt: string;

  before(async function () {
    stage = await wholeStage(this);
    folder = mkdtempSync(join(tmpdir(), "ganglion-verify-"));
    exported = join(folder, "export");
    vaultAudit = join(folder, "vault-audit.log");
    receipt = join(folder, "receipt.json");
    sessionId = await stage.newSession("verified");
    const word = randomUUID();
    const call = { name: "mcp__everything__echo", input: { message: word } };
    await stage.turn(sessionId, script([{ text: word, calls: [call] }]));
    await stage.sdk.beta.sessions.archive(sessionId);
    await ended(sessionId);
    const kept = await stage.mesh.cli(["audit", "receipt", sessionId]);
    assert.equal(kept.code, 0, kept.stderr);
    writeFileSync(receipt, kept.stdout);
    const { code, stderr } = await stage.mesh.cli(["audit", "export", exported]);
    assert.equal(code, 0, stderr);
    cpSync(join(stage.mesh.files.state, "vault", "data", "audit.log"), vaultAudit);
  });
  after(() => {
    if (folder) rmSync(folder, { recursive: true, force: true });
  });

  /** Resolves when the log has the end of the session, and a checkpoint covers it. */
  const ended = async (id: string): Promise<void> => {
    const audit = createClient(AuditServiceService, stage.mesh.grpc, stage.mesh.tls("operator"), "gateway");
    try {
      const signal = AbortSignal.timeout(60_000);
      const request = { afterSequence: 0n, sessionId: id, withLines: false };
      for await (const { records } of audit.watchRecords(request, { signal })) {
        if (records.some(({ kind }) => kind === RecordKind.RECORD_KIND_SESSION_END)) break;
      }
      await audit.createCheckpoint({});
    } finally {
      audit.close();
    }
  };
  const verify = (...args: string[]) => stage.mesh.cli(["audit", "verify", "--strict", ...args]);
  const python = (of: string) => spawnSync("python3", [PYTHON, of], { encoding: "utf8" }).stdout.trim();

  it("is sound, covered by checkpoints, and agrees with Vault's own log line by line", async () => {
    const { code, stdout } = await verify(
      ...["--dir", exported, "--vault-audit", vaultAudit, "--receipt", receipt, "--json"],
    );
    assert.equal(code, 0, stdout);
    const last = JSON.parse(stdout.trim().split("\n").at(-1) ?? "{}");
    assert.ok(last.anchors >= 1);
    assert.ok(last.vaultReads >= 2, "the model's key and the MCP server's token were read");
    assert.equal(python(exported), "0", "the second verifier");
  });

  it("so is the folder that mcp-proxy writes beside its database", async () => {
    const { code, stdout } = await verify(
      "--dir",
      join(stage.mesh.files.state, "audit"),
      "--receipt",
      receipt,
    );
    assert.equal(code, 0, stdout);
    assert.match(stdout, /^sound: records 1 to /m);
  });

  it("a read that no record names, and a record that Vault knows nothing of, are found", async () => {
    const lines = readFileSync(vaultAudit, "utf8").trimEnd().split("\n");
    const { credential, id } = lastRead();
    const read = lines.findLastIndex((line) => line.includes(id) && line.includes('"type":"response"'));
    assert.ok(read >= 0, "Vault's log has the read");
    const unnamed = join(folder, "unnamed.log");
    writeFileSync(unnamed, `${[...lines, lines[read]?.replaceAll(id, randomUUID())].join("\n")}\n`);
    const more = await verify("--dir", exported, "--vault-audit", unnamed);
    assert.equal(more.code, 8, more.stdout);
    assert.match(more.stdout, new RegExp(`read credential ${credential} for session sesn_`));
    const unknown = join(folder, "unknown.log");
    writeFileSync(unknown, `${lines.filter((line) => !line.includes(id)).join("\n")}\n`);
    const less = await verify("--dir", exported, "--vault-audit", unknown);
    assert.equal(less.code, 8, less.stdout);
    assert.match(less.stdout, /names a request that Vault does not know/);
  });

  it("shortened below its receipt it is found out, whatever else is given [A145]", async () => {
    const short = join(folder, "short");
    cpSync(exported, short, { recursive: true });
    const end = JSON.parse(readFileSync(receipt, "utf8")).record.sequence as string;
    const lines = readFileSync(join(exported, "records.jsonl"), "utf8").split("\n");
    writeFileSync(join(short, "records.jsonl"), `${lines.slice(0, Number(end) - 1).join("\n")}\n`);
    rmSync(join(short, "checkpoints.notes"));
    const { code, stdout } = await verify("--dir", short, "--receipt", receipt);
    assert.equal(code, 4, stdout);
  });

  it("a tool call's event leads to its records and back", async () => {
    const events = await stage.log(sessionId);
    const [result] = bodiesOf(events, "agentMcpToolResult");
    const way = await stage.mesh.cli(["audit", "explain", result?.proxyRequestId ?? ""]);
    assert.equal(way.code, 0, way.stderr);
    assert.ok(way.stdout.includes(`${result?.mcpToolUseId} in the session's log`), way.stdout);
    assert.match(way.stdout, /secured +not at all: plain HTTP/);
    const { credential } = lastRead();
    const used = await stage.mesh.cli(["audit", "who-used", credential, "--json"]);
    assert.ok(used.stdout.includes(sessionId), used.stdout);
  });

  /** The newest read for the session's MCP call. */
  const lastRead = (): { credential: string; id: string } => {
    const records = readFileSync(join(exported, "records.jsonl"), "utf8")
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line) as Record<string, string>);
    const dispatch = records.findLast(
      (record) =>
        record.kind === "dispatch" && record.operation === "mcp_call_tool" && record.session_id === sessionId,
    );
    return { credential: dispatch?.credential_id ?? "", id: dispatch?.vault_request_id ?? "" };
  };
});

import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { ensureSystemUser } from "../../services/cli/up/system-user.ts";
import { GanglionError } from "../../services/common/errors/ganglion-error.ts";
import { createClient } from "../../services/common/grpc/create-client.ts";
import { createMeshFetch } from "../../services/common/tls/mesh-fetch.ts";
import {
  AuditServiceService,
  type Record,
  RecordKind,
} from "../../services/gen/ganglion/audit/v1/audit_service.ts";
import { Audience, BindingServiceService } from "../../services/gen/ganglion/mcpproxy/v1/binding_service.ts";
import { McpProxyServiceService } from "../../services/gen/ganglion/mcpproxy/v1/mcp_proxy_service.ts";
import { SessionServiceService } from "../../services/gen/ganglion/session/v1/session_service.ts";
import { TestCa } from "../kit/ca.ts";
import { bodiesOf, checkLog } from "../kit/check-log.ts";
import { wholeStage } from "../kit/shared-stage.ts";
import { type Stage, script } from "../kit/stage.ts";

const [DECISION, DISPATCH, OUTCOME] = [1, 2, 3];
const HARNESS_AUDIENCE = Audience.AUDIENCE_HARNESS;

describe("the audit log and the end of tokens, over a whole mesh", function () {
  this.timeout(90_000);
  let stage: Stage;
  let ca: TestCa;
  const closed: (() => unknown)[] = [];

  before(async function () {
    stage = await wholeStage(this);
    const pem = (name: string) => readFileSync(join(stage.mesh.files.tls, name), "utf8");
    ca = await TestCa.create({ certPem: pem("ca.pem"), keyPem: pem("ca.key.pem") });
  });
  after(() => {
    for (const close of closed) close();
    ca?.remove();
  });

  const recordsOf = async (sessionId: string): Promise<Record[]> => {
    const operator = stage.mesh.tls("operator");
    const audit = createClient(AuditServiceService, stage.mesh.grpc, operator, "gateway");
    const records: Record[] = [];
    for (;;) {
      const afterSequence = records.at(-1)?.sequence ?? 0n;
      const request = { afterSequence, limit: 100, sessionId, requestId: "", withLines: false };
      const page = await audit.listRecords(request);
      records.push(...page.records);
      if (page.records.length === 0) break;
    }
    audit.close();
    // Not those of its binding, which it does not ask for itself.
    return records.filter(({ operation }) => !operation.startsWith("binding."));
  };

  /** A harness of our own: the real ones never see its sessions, because nothing was said in them. */
  const makeHarness = async (instance: string) => {
    const tls = await ca.bundle("harness", instance);
    const { mesh } = stage;
    const sessions = createClient(SessionServiceService, mesh.address("session-1"), tls, "session");
    const bindings = createClient(BindingServiceService, mesh.address("mcp-proxy-1"), tls, "mcp-proxy");
    const mcp = createClient(McpProxyServiceService, mesh.address("mcp-proxy-1"), tls, "mcp-proxy");
    const door = createMeshFetch(tls, "mcp-proxy");
    closed.push(
      () => sessions.close(),
      () => bindings.close(),
      () => mcp.close(),
      () => door.close(),
    );
    let bootId = "";
    const boot = async () => {
      bootId = randomUUID();
      await sessions.harnessHeartbeat({ bootId, activeSessions: 0, isDraining: false });
    };
    await boot();
    return {
      sessions,
      boot,
      take: async (sessionId: string) => {
        const { lease } = await sessions.acquireLease({ sessionId, bootId, requestId: randomUUID() });
        assert.ok(lease);
        const request = { sessionId, epoch: lease.epoch, audience: HARNESS_AUDIENCE, handId: "" };
        return { epoch: lease.epoch, token: (await bindings.issueToken(request)).token };
      },
      /** What the MCP door says to a token: "OK" or the reason. */
      listTools: (token: string) =>
        reasonOf(
          mcp.listTools({ mcpServerName: "everything" }, { metadata: { "ganglion-session-token": token } }),
        ),
      /** What the model door says to a token. */
      askModel: async (token: string) => {
        const answer = await door.fetch(`https://${mesh.address("mcp-proxy-http")}/v1/messages`, {
          method: "POST",
          headers: {
            authorization: `Bearer ${token}`,
            "content-type": "application/json",
            "anthropic-version": "2023-06-01",
          },
          body: JSON.stringify({
            model: "claude-opus-5-5",
            max_tokens: 16,
            messages: [{ role: "user", content: "hello" }],
          }),
        });
        await answer.text();
        return answer.ok ? "OK" : `${answer.status} ${answer.headers.get("ganglion-reason")}`;
      },
    };
  };
  const reasonOf = async (call: Promise<unknown>): Promise<string> => {
    try {
      await call;
      return "OK";
    } catch (error) {
      if (error instanceof GanglionError) return `${error.code}/${error.reason}`;
      throw error;
    }
  };
  const seenOutside = async () =>
    [...(await stage.model.journal.entries()), ...(await stage.mcp.journal.entries())].length;

  it("has a decision, a dispatch and an outcome of each model request and MCP call, in this order", async () => {
    const sessionId = await stage.newSession("audited");
    const word = randomUUID();
    await stage.turn(
      sessionId,
      script([
        { text: word, calls: [{ name: "mcp__everything__echo", input: { message: word } }] },
        { calls: [{ name: "mcp__everything__get-sum", input: { a: 2, b: 40 } }] },
      ]),
    );
    const events = await stage.log(sessionId);
    checkLog(events);
    const records = await recordsOf(sessionId);
    const steps = Map.groupBy(records, ({ requestId }) => requestId);
    for (const [, own] of steps) {
      assert.deepEqual(
        own.map(({ kind }) => kind),
        [DECISION, DISPATCH, OUTCOME],
        own[0]?.operation,
      );
      const [decision, dispatch, outcome] = own as [Record, Record, Record];
      assert.ok(decision.sequence < dispatch.sequence && dispatch.sequence < outcome.sequence);
      assert.equal(decision.effect, "allow");
      assert.ok(decision.tokenId && decision.destination && decision.target);
      assert.equal(decision.epoch, 1n);
      assert.ok(dispatch.credentialId && dispatch.vaultRequestId, "Vault's own log can be joined");
      assert.equal(dispatch.peerAddress, "127.0.0.1");
      assert.equal(outcome.reason, "ok");
    }
    const [lease] = bodiesOf(events, "ganglionLeaseAcquired");
    assert.deepEqual([...new Set(records.map(({ caller }) => caller))], [lease?.owner]);
    const operations = [...steps.values()].map(([decision]) => decision?.operation);
    const count = (operation: string) => operations.filter((one) => one === operation).length;
    const asked = (await stage.model.journal.entries()).filter(
      ({ kind, body }) => kind === "request" && JSON.stringify(body).includes(word),
    );
    assert.equal(count("model"), asked.length, "one for each request that the model saw");
    assert.equal(asked.length, 3);
    const calls = events.flatMap(({ id, body }) => (body?.$case === "agentMcpToolUse" ? [id] : []));
    const audited = [...steps.values()].flatMap(([decision]) => decision?.callKey || []);
    assert.deepEqual(audited, calls, "each call by its key, in the order of the log");
    assert.equal(count("mcp_call_tool"), 2);
    const ids = bodiesOf(events, "agentMcpToolResult").map(({ proxyRequestId }) => proxyRequestId);
    assert.ok(
      ids.every((id) => steps.has(id)),
      "a result names its records",
    );
    const text = JSON.stringify(records, (_, value) => (typeof value === "bigint" ? String(value) : value));
    for (const secret of [stage.model.apiKey, stage.mcp.token, word]) assert.ok(!text.includes(secret));
  });

  it("refuses the first call with the old token after the session was archived (law L7)", async () => {
    const harness = await makeHarness("audit-archive");
    const sessionId = await stage.newSession("to be archived");
    const { token } = await harness.take(sessionId);
    assert.equal(await harness.listTools(token), "OK");
    assert.equal(await harness.askModel(token), "OK");
    await stage.sdk.beta.sessions.archive(sessionId);
    const before = await seenOutside();
    assert.equal(await harness.listTools(token), "UNAUTHENTICATED/SESSION_ENDED");
    assert.equal(await harness.askModel(token), "401 SESSION_ENDED");
    assert.equal(await seenOutside(), before, "nobody outside was asked");
    await checkDenials(sessionId, "SESSION_ENDED");
  });

  it("an operator gets the receipt of a session that was archived, and a watch of the log, through the gateway", async () => {
    const sessionId = await stage.newSession("to be receipted");
    const audit = createClient(AuditServiceService, stage.mesh.grpc, stage.mesh.tls("operator"), "gateway");
    closed.push(() => audit.close());
    await stage.sdk.beta.sessions.archive(sessionId);
    const request = { afterSequence: 0n, sessionId, withLines: true };
    let end: Record | undefined;
    for await (const { records } of audit.watchRecords(request)) {
      end = records.find(({ kind }) => kind === RecordKind.RECORD_KIND_SESSION_END);
      if (end) break;
    }
    // It covers the record whether or not the proxy has come to it by itself.
    await audit.createCheckpoint({});
    const { record, checkpoint, json } = await audit.getReceipt({ sessionId });
    assert.equal(record?.hash, end?.hash);
    assert.ok(checkpoint && record && checkpoint.size >= record.sequence);
    assert.deepEqual(JSON.parse(json).record, JSON.parse(end?.line ?? ""));
    // Beside the database, for mcp-proxy's user alone.
    const folder = join(stage.mesh.files.state, "audit");
    const proxy = process.getuid?.() === 0 ? ensureSystemUser("ganglion-proxy").uid : process.getuid?.();
    assert.equal(statSync(folder).mode & 0o777, 0o700);
    for (const name of ["records-mcp-proxy-1.jsonl", "checkpoints-mcp-proxy-1.notes", "keys.json"]) {
      const { mode, uid } = statSync(join(folder, name));
      assert.deepEqual([mode & 0o777, uid], [0o600, proxy], name);
    }
    const lines = () => readFileSync(join(folder, "records-mcp-proxy-1.jsonl"), "utf8");
    // The end of a session holds nobody up: the database has it a moment before the file.
    while (!lines().includes(`${end?.line}\n`)) await new Promise((resolve) => setTimeout(resolve, 20));
    assert.ok(readFileSync(join(folder, "checkpoints-mcp-proxy-1.notes"), "utf8").includes(checkpoint.note));
    for (const secret of [stage.model.apiKey, stage.mcp.token]) assert.ok(!lines().includes(secret));
  });

  it("refuses the first call with the old token after a takeover, also from its rightful owner (law L7)", async () => {
    const first = await makeHarness("audit-first");
    const second = await makeHarness("audit-second");
    const sessionId = await stage.newSession("to be taken over");
    const old = await first.take(sessionId);
    assert.equal(await first.askModel(old.token), "OK");
    // It starts anew, and so tells that its earlier run is gone.
    await first.boot();
    const taken = await second.take(sessionId);
    assert.ok(taken.epoch > old.epoch);
    const before = await seenOutside();
    assert.equal(await first.askModel(old.token), "401 TOKEN_STALE_EPOCH");
    assert.equal(await first.listTools(old.token), "UNAUTHENTICATED/TOKEN_STALE_EPOCH");
    assert.equal(await seenOutside(), before, "nobody outside was asked");
    await checkDenials(sessionId, "TOKEN_STALE_EPOCH");
    assert.equal(await second.askModel(taken.token), "OK");
    assert.equal(await first.listTools(taken.token), "PERMISSION_DENIED/CALLER_MISMATCH");
    const append = {
      sessionId,
      events: [],
      expectedPosition: undefined,
      epoch: old.epoch,
    };
    assert.notEqual(await reasonOf(first.sessions.emitEvents(append)), "OK");
  });

  /** The last two requests of a session ended with a decision: denied, for this reason. */
  const checkDenials = async (sessionId: string, reason: string): Promise<void> => {
    const last = (await recordsOf(sessionId)).slice(-2);
    assert.deepEqual(
      last.map((record) => [record.kind, record.effect, record.reason]),
      [
        [DECISION, "deny", reason],
        [DECISION, "deny", reason],
      ],
    );
  };
});

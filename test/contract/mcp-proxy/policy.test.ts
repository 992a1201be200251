import assert from "node:assert/strict";
import { mkdtempSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { AuditServiceService, RecordKind } from "../../../services/gen/ganglion/audit/v1/audit_service.ts";
import { runService } from "../../kit/start-service.ts";
import { failureOf, ProxyKit } from "./proxy-kit.ts";

const MAIN = new URL("../../../services/mcp-proxy/main.ts", import.meta.url);
const NOWHERE = "https://mcp.nowhere.invalid/mcp";

describe("the operator's policy at mcp-proxy", function () {
  this.timeout(60_000);
  let kit: ProxyKit;
  let folder: string;
  let file: string;

  /** Puts a policy in place as a mounted one changes: by rename. */
  const put = (text: string) => {
    writeFileSync(`${file}.new`, text);
    renameSync(`${file}.new`, file);
  };
  const allowing = (host: string) => `version: 1\ndefault: { mcp: [{ to: [${host}] }] }\n`;

  before(async () => {
    folder = mkdtempSync(join(tmpdir(), "ganglion-policy-"));
    file = join(folder, "policy.yaml");
    put(allowing("mcp.other.test"));
    kit = await ProxyKit.start({ GANGLION_POLICY_FILE: file });
  });
  after(async () => {
    await kit?.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  /** What listing the tools of a server that cannot be reached comes to, and its decision. */
  const listed = async () => {
    const session = await kit.bound({
      servers: [{ name: "nowhere", url: NOWHERE, secret: "token-of-nowhere" }],
    });
    const mcp = await kit.mcp();
    const metadata = { "ganglion-session-token": session.token };
    const { reason } = await failureOf(mcp.listTools({ mcpServerName: "nowhere" }, { metadata }));
    const records = await kit.records(session.sessionId);
    const decision = records.find(({ kind }) => kind === RecordKind.RECORD_KIND_DECISION);
    return { reason, decision, kinds: records.map(({ kind }) => kind) };
  };
  /** Resolves with the next record of a change of policy after `after`. */
  const change = async (after: bigint) => {
    const audit = await kit.client(AuditServiceService, "operator");
    const request = { afterSequence: after, sessionId: "", withLines: false };
    for await (const { records } of audit.watchRecords(request, { signal: AbortSignal.timeout(30_000) })) {
      const found = records.find(({ kind }) => kind === RecordKind.RECORD_KIND_POLICY_CHANGE);
      if (found) return found;
    }
    return assert.fail("the watch ended");
  };
  const head = async () => {
    const { records } = await (await kit.client(AuditServiceService, "operator")).listRecords({
      ...{ afterSequence: 0n, limit: 1000, sessionId: "", requestId: "", withLines: false },
    });
    return records.at(-1)?.sequence ?? 0n;
  };

  it("denies what no rule allows before a credential is read, and the record names the policy [A005, A015]", async () => {
    const { reason, decision, kinds } = await listed();
    assert.equal(reason, "DEST_NOT_ALLOWED");
    assert.deepEqual(kinds, [RecordKind.RECORD_KIND_DECISION]);
    assert.equal(decision?.effect, "deny");
    assert.match(decision?.policyDigest ?? "", /^[0-9a-f]{64}$/);
    assert.equal(decision?.ruleId, "");
  });

  it("another policy is in force once it is in place, and written down; the record names its rule", async () => {
    const before = await head();
    put(allowing("mcp.nowhere.invalid"));
    const { policyDigest, detail } = await change(before);
    assert.equal(detail, "taken");
    const { reason, decision } = await listed();
    assert.equal(reason, "UPSTREAM_UNREACHABLE");
    assert.equal(decision?.effect, "allow");
    assert.deepEqual([decision?.policyDigest, decision?.ruleId], [policyDigest, "default.mcp[0]"]);
  });

  it("a bad policy changes nothing: the last good one stays, and the refusal is written down [A155]", async () => {
    const before = await head();
    put("version: 1\ndefault: { mcp: [{ too: [evil.test] }] }\n");
    const { detail, policyDigest } = await change(before);
    assert.match(detail, /^refused/);
    const { reason, decision } = await listed();
    assert.deepEqual([reason, decision?.policyDigest], ["UPSTREAM_UNREACHABLE", policyDigest]);
  });

  it("without a valid policy nothing starts, and its login stays unused [A155]", async () => {
    for (const text of ["", "version: 1\n"]) {
      const bad = join(folder, "bad.yaml");
      writeFileSync(bad, text);
      const env = kit.proxyEnv({ GANGLION_INSTANCE: "mcp-proxy-9", GANGLION_POLICY_FILE: bad });
      const bootstrap = await kit.bootstrap();
      const { exit, output } = await runService(MAIN, { env, bootstrap });
      assert.equal(exit, 78, output);
      assert.match(output, /GANGLION_POLICY_FILE/);
      const missing = { ...env, GANGLION_POLICY_FILE: join(folder, "none.yaml") };
      assert.equal((await runService(MAIN, { env: missing, bootstrap })).exit, 78);
    }
  });
});

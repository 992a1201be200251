import assert from "node:assert/strict";
import {
  type Record as AuditRecord,
  RecordKind,
} from "../../../services/gen/ganglion/audit/v1/audit_service.ts";
import {
  BindingServiceService,
  type BindRequest,
} from "../../../services/gen/ganglion/mcpproxy/v1/binding_service.ts";
import { bindRequest } from "./bind-request.ts";
import { failureOf, ProxyKit, WORKSPACE } from "./proxy-kit.ts";

const WORDS = new Map<RecordKind, string>([
  [RecordKind.RECORD_KIND_DECISION, "decision"],
  [RecordKind.RECORD_KIND_OUTCOME, "outcome"],
]);
const NO_RECORDS = "EXECUTE ON FUNCTION proxy.write_records(jsonb)";

describe("who binds a session, in the audit log", function () {
  this.timeout(60_000);
  let kit: ProxyKit;

  before(async function () {
    this.timeout(90_000);
    kit = await ProxyKit.start();
  });
  after(() => kit?.stop());

  const told = (records: readonly AuditRecord[]) =>
    records
      .filter(({ operation }) => operation.startsWith("binding."))
      .map(({ kind, operation, effect, reason, upstreamEffect }) =>
        [WORDS.get(kind), operation, effect, reason, upstreamEffect].filter(Boolean).join(" "),
      );
  const pair = (operation: string) => [
    `decision binding.${operation} allow`,
    `outcome binding.${operation} ok complete`,
  ];
  const without = async (work: () => Promise<unknown>) => {
    await kit.sql("ganglion_owner", `REVOKE ${NO_RECORDS} FROM ganglion_proxy`);
    try {
      await work();
    } finally {
      await kit.sql("ganglion_owner", `GRANT ${NO_RECORDS} TO ganglion_proxy`);
    }
  };

  it("each binding, other servers and the end have a decision and an outcome, which name session, vaults and caller", async () => {
    const session = await kit.bindings();
    const vaultId = await kit.makeVault();
    const request = bindRequest({ vaultIds: [vaultId] });
    const { sessionId } = request;
    await session.bind(request);
    const other = { ...request, mcpServers: [], replacesMcpServers: true };
    await session.bind(other);
    await session.endBinding({ sessionId });
    const records = await kit.allRecords(sessionId);
    assert.deepEqual(told(records), [...pair("bind"), ...pair("replace_servers"), ...pair("end")]);
    for (const { caller, callerCertSha256, workspaceId, target, operation, destination } of records) {
      if (!operation.startsWith("binding.")) continue;
      assert.equal(caller, "spiffe://ganglion.local/session/session-1");
      assert.match(callerCertSha256, /^[0-9a-f]{64}$/);
      const named = operation === "binding.end" ? "" : vaultId;
      assert.deepEqual([workspaceId, target, destination], [WORKSPACE, named, ""]);
    }
  });

  it("a denial is written before its caller hears of it, and changes nothing", async () => {
    const session = await kit.bindings();
    const request = bindRequest();
    const { sessionId } = request;
    await session.bind(request);
    const refused: [Partial<BindRequest>, string][] = [
      [{ models: ["other"] }, "ID_REUSED"],
      [{ vaultIds: ["vlt_none"] }, "VAULT_NOT_FOUND"],
      [{ replacesMcpServers: true, models: ["other"] }, "ID_REUSED"],
    ];
    for (const [more, reason] of refused) {
      assert.equal((await failureOf(session.bind({ ...request, ...more }))).reason, reason);
    }
    const operations = ["bind", "bind", "replace_servers"];
    assert.deepEqual(told(await kit.allRecords(sessionId)), [
      ...pair("bind"),
      ...refused.map(([, reason], i) => `decision binding.${operations[i]} deny ${reason}`),
    ]);
  });

  it("a token that is refused is a denial, one that is issued is in the decisions which it leads to", async () => {
    const { sessionId } = await kit.bound();
    const client = await kit.client(BindingServiceService, "harness", "harness-2");
    const asked = { sessionId, epoch: 1n, audience: 1 as const, handId: "" };
    assert.equal((await failureOf(client.issueToken(asked))).reason, "LEASE_NOT_CONFIRMED");
    const records = await kit.allRecords(sessionId);
    assert.deepEqual(told(records), [
      ...pair("bind"),
      "decision binding.issue_token deny LEASE_NOT_CONFIRMED",
    ]);
    const { caller, tokenId, tokenAudience, epoch } = records.at(-1) as AuditRecord;
    assert.deepEqual(
      [caller, tokenId, tokenAudience, epoch],
      ["spiffe://ganglion.local/harness/harness-2", "", "harness", 1n],
    );
  });

  it("without a record nothing is bound, and no refusal is told; an end takes effect all the same", async () => {
    const session = await kit.bindings();
    const bound = await kit.bound();
    const request = bindRequest();
    const harness = await kit.client(BindingServiceService, "harness", "harness-2");
    await without(async () => {
      assert.equal((await failureOf(session.bind(request))).reason, "AUDIT_UNAVAILABLE");
      const asked = { sessionId: bound.sessionId, epoch: 1n, audience: 1 as const, handId: "" };
      assert.equal((await failureOf(harness.issueToken(asked))).reason, "AUDIT_UNAVAILABLE");
      const { sessionId } = bound;
      assert.equal((await failureOf(session.endBinding({ sessionId }))).reason, "AUDIT_UNAVAILABLE");
    });
    const rows = "SELECT session_id FROM proxy.bindings WHERE session_id = $1";
    assert.deepEqual(await kit.sql("ganglion_owner", rows, [request.sessionId]), []);
    const fence = "SELECT ended FROM proxy.fences WHERE session_id = $1";
    assert.deepEqual(await kit.sql("ganglion_owner", fence, [bound.sessionId]), [{ ended: true }]);
    await session.endBinding({ sessionId: bound.sessionId });
    assert.deepEqual(told(await kit.allRecords(bound.sessionId)), [...pair("bind"), ...pair("end")]);
  });
});

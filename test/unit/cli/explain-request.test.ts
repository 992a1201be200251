import assert from "node:assert/strict";
import type { AuditRecord } from "../../../services/cli/audit/audit-record.ts";
import { explainRequest } from "../../../services/cli/audit/explain-request.ts";
import { blankRecord, type RecordKind } from "../../../services/mcp-proxy/domain/new-record.ts";

const record = (kind: RecordKind, detail: string) =>
  ({ ...blankRecord(kind, "req_1"), operation: "egress", detail }) as unknown as AuditRecord;

describe("the way of a request", () => {
  it("names the sealed tokens that it used and those that were made of its answer [A066]", () => {
    const decision = record("decision", "used mint_1");
    const told = (...records: AuditRecord[]) =>
      explainRequest(records).filter(([name]) => name === "sealed tokens");
    assert.deepEqual(told(decision), [["sealed tokens", "used mint_1"]]);
    const both = "used mint_1; by default.mint[0] sealed mint_2";
    assert.deepEqual(told(decision, record("outcome", both)), [["sealed tokens", both]]);
    assert.deepEqual(told(record("decision", "")), []);
  });

  it("names certificate, audience, Vault token, bodies, how far it came and who wrote it", () => {
    const of = (kind: RecordKind, more: object) =>
      ({ ...record(kind, ""), v: 3, ...more }) as unknown as AuditRecord;
    const who = { caller: "spiffe://a", caller_cert_sha256: "c1", token_id: "tok_1", token_audience: "hand" };
    const read = { vault_request_id: "v1", credential_version: "2", vault_token_accessor_hmac: "a1" };
    const writer = {
      build: "ganglion 9",
      instance: "mcp-proxy-1",
      hmac_key_id: "k1",
      credential_id: "vcrd_1",
    };
    const bodies = { request_body_hmac: "s1", response_body_hmac: "b1" };
    const ended = { reason: "cancelled", response_withheld: true, upstream_effect: "sent" };
    const steps = new Map(
      explainRequest([
        of("decision", { ...who, ...writer, effect: "allow" }),
        of("dispatch", { ...who, ...writer, ...read }),
        of("outcome", { ...who, ...writer, ...read, ...bodies, ...ended }),
      ]),
    );
    assert.equal(steps.get("certificate"), "sha256:c1");
    assert.equal(steps.get("token"), "tok_1, for a hand");
    assert.match(
      steps.get("credential") ?? "",
      /request v1 with the token whose accessor has hmac:a1 \(key k1\)$/,
    );
    assert.equal(steps.get("body sent"), "hmac:s1 (key k1)");
    assert.equal(steps.get("body back"), "hmac:b1 (key k1)");
    assert.match(steps.get("outcome") ?? "", /, the answer or the rest of it was withheld, /);
    assert.match(steps.get("effect") ?? "", /^sent: /);
    assert.equal(steps.get("written by"), "ganglion 9 as mcp-proxy-1");
    const bound = { operation: "binding.bind", session_id: "sesn_1", target: "vlt_1" };
    const change = new Map(explainRequest([of("decision", { ...bound, effect: "allow" })]));
    assert.equal(change.get("asked"), "binding.bind for session sesn_1 with vlt_1");
  });
});

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
});

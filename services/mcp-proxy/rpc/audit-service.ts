import type { Pool } from "pg";
import { Violations } from "../../common/errors/violations.ts";
import { type Implementation, implement, unary } from "../../common/grpc/handlers.ts";
import {
  Record as AuditRecord,
  AuditServiceService,
  RecordKind,
} from "../../gen/ganglion/audit/v1/audit_service.ts";
import { listRecords, type StoredRecord } from "../audit/record-store.ts";
import { checkText } from "./read-requests.ts";
import { toTimestamp } from "./to-messages.ts";

const KINDS: Record<StoredRecord["kind"], RecordKind> = {
  decision: RecordKind.RECORD_KIND_DECISION,
  dispatch: RecordKind.RECORD_KIND_DISPATCH,
  outcome: RecordKind.RECORD_KIND_OUTCOME,
  recovery: RecordKind.RECORD_KIND_RECOVERY,
};

const MAX_ANSWER_BYTES = 3 << 20;

/** Makes AuditService. */
export function auditService(pool: Pool): Implementation {
  return implement(AuditServiceService, {
    listRecords: unary(async (req) => {
      const found = new Violations();
      found.integer("after_sequence", req.afterSequence, { min: 0 });
      found.integer("limit", req.limit, { min: 0, max: 1000 });
      checkText(found, "session_id", req.sessionId, { required: false, maxLength: 80 });
      checkText(found, "request_id", req.requestId, { required: false, maxLength: 80 });
      found.throwIfAny();
      const { afterSequence, sessionId, requestId } = req;
      const rows = await listRecords(pool, { afterSequence, limit: req.limit || 100, sessionId, requestId });
      return { records: cutAt(rows.map(toRecord), MAX_ANSWER_BYTES) };
    }),
  });
}

function toRecord(row: StoredRecord): AuditRecord {
  return {
    sequence: BigInt(row.sequence),
    createTime: toTimestamp(row.created_at),
    kind: KINDS[row.kind],
    requestId: row.request_id,
    sessionId: row.session_id,
    workspaceId: row.workspace_id,
    epoch: BigInt(row.epoch),
    caller: row.caller,
    tokenId: row.token_id,
    operation: row.operation,
    destination: row.destination,
    target: row.target,
    effect: row.effect,
    reason: row.reason,
    credentialId: row.credential_id,
    credentialVersion: BigInt(row.credential_version),
    vaultRequestId: row.vault_request_id,
    peerAddress: row.peer_address,
    status: row.status,
    requestBytes: BigInt(row.request_bytes),
    responseBytes: BigInt(row.response_bytes),
    callKey: row.call_key,
    redactions: BigInt(row.redactions),
  };
}

function cutAt(records: AuditRecord[], maxBytes: number): AuditRecord[] {
  let size = 0;
  const end = records.findIndex((record) => {
    size += AuditRecord.encode(record).finish().length + 8;
    return size > maxBytes;
  });
  return end === -1 ? records : records.slice(0, end);
}

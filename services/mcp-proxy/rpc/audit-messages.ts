import {
  Record as AuditRecord,
  type Checkpoint,
  RecordKind,
} from "../../gen/ganglion/audit/v1/audit_service.ts";
import type { StoredCheckpoint } from "../audit/checkpoint-store.ts";
import type { StoredRecord } from "../audit/record-store.ts";
import { toTimestamp } from "./to-messages.ts";

const KINDS: Record<StoredRecord["kind"], RecordKind> = {
  decision: RecordKind.RECORD_KIND_DECISION,
  dispatch: RecordKind.RECORD_KIND_DISPATCH,
  outcome: RecordKind.RECORD_KIND_OUTCOME,
  recovery: RecordKind.RECORD_KIND_RECOVERY,
  log_open: RecordKind.RECORD_KIND_LOG_OPEN,
  log_close: RecordKind.RECORD_KIND_LOG_CLOSE,
  session_end: RecordKind.RECORD_KIND_SESSION_END,
  anomaly: RecordKind.RECORD_KIND_ANOMALY,
  key_change: RecordKind.RECORD_KIND_KEY_CHANGE,
  policy_change: RecordKind.RECORD_KIND_POLICY_CHANGE,
  honeytoken: RecordKind.RECORD_KIND_HONEYTOKEN,
};

/** A record of the log as a message. */
export function toRecord(row: StoredRecord, withLine: boolean): AuditRecord {
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
    peerSpkiSha256: row.peer_spki_sha256,
    tlsVersion: row.tls_version,
    status: row.status,
    requestBytes: BigInt(row.request_bytes),
    responseBytes: BigInt(row.response_bytes),
    callKey: row.call_key,
    redactions: BigInt(row.redactions),
    formatVersion: row.v,
    logId: row.log_id,
    policyDigest: row.policy_digest,
    ruleId: row.rule_id,
    recordCount: BigInt(row.record_count),
    detail: row.detail,
    callerCertSha256: row.caller_cert_sha256,
    tokenAudience: row.token_audience,
    requestBodyHmac: row.request_body_hmac,
    responseBodyHmac: row.response_body_hmac,
    vaultTokenAccessorHmac: row.vault_token_accessor_hmac,
    hmacKeyId: row.hmac_key_id,
    responseWithheld: row.response_withheld,
    upstreamEffect: row.upstream_effect,
    build: row.build,
    instance: row.instance,
    bootId: row.boot_id,
    prev: row.prev,
    hash: row.hash,
    line: withLine ? row.line : "",
  };
}

/** A checkpoint as a message. */
export function toCheckpoint({
  size,
  headHash,
  prev,
  digest,
  note,
  createdAt,
}: StoredCheckpoint): Checkpoint {
  return { size, headHash, prev, digest, note, createTime: toTimestamp(createdAt) };
}

/** The file that a session's owner keeps (docs/AUDIT_FORMAT.md). */
export function receiptJson(end: StoredRecord, checkpoint: StoredCheckpoint): string {
  const receipt = {
    v: 1,
    log_id: end.log_id,
    session_id: end.session_id,
    record: JSON.parse(end.line) as unknown,
    checkpoint: checkpoint.note,
  };
  return `${JSON.stringify(receipt, null, 2)}\n`;
}

/** The records that fit into an answer. */
export function cutAt(records: AuditRecord[], maxBytes: number): AuditRecord[] {
  let size = 0;
  const end = records.findIndex((record) => {
    size += AuditRecord.encode(record).finish().length + 8;
    return size > maxBytes;
  });
  return end === -1 ? records : records.slice(0, end);
}

import type { Pool } from "pg";
import { Violations } from "../../common/errors/violations.ts";
import type { CallContext } from "../../common/grpc/call-context.ts";
import { type Implementation, implement, serverStream, unary } from "../../common/grpc/handlers.ts";
import {
  AuditServiceService,
  type ListRecordsRequest,
  type WatchRecordsRequest,
  type WatchRecordsResponse,
} from "../../gen/ganglion/audit/v1/audit_service.ts";
import type { CheckpointStore, StoredCheckpoint } from "../audit/checkpoint-store.ts";
import type { Checkpointer } from "../audit/checkpointer.ts";
import { keyFile, type PublishedKey } from "../audit/key-file.ts";
import { findSessionEnd, listRecords } from "../audit/record-store.ts";
import { proxyError } from "../domain/proxy-error.ts";
import { VaultFailure } from "../vault/vault-failure.ts";
import { cutAt, receiptJson, toCheckpoint, toRecord } from "./audit-messages.ts";
import { checkText } from "./read-requests.ts";
import { toTimestamp } from "./to-messages.ts";

/** What AuditService reads from. */
export interface AuditServiceDeps {
  pool: Pool;
  audit: {
    logId: string;
    store: CheckpointStore;
    checkpointer: Pick<Checkpointer, "make">;
    keys: { all(): readonly PublishedKey[]; reload(): Promise<void> };
  };
  wait: (ms: number, signal: AbortSignal) => Promise<void>;
}

const MAX_ANSWER_BYTES = 3 << 20;
const MAX_WATCHES = 16;
const WATCH_POLL_MS = 400;
const WATCH_QUIET_MS = 20_000;
const WATCH_PAGE = 200;

/** Makes AuditService. */
export function auditService({ pool, audit, wait }: AuditServiceDeps): Implementation {
  const { store } = audit;
  let watches = 0;

  async function* watch(
    req: WatchRecordsRequest,
    { signal }: CallContext,
  ): AsyncGenerator<WatchRecordsResponse> {
    checkWatch(req);
    if (watches >= MAX_WATCHES)
      throw proxyError("TOO_MANY_WATCHES", { metadata: { limit: String(MAX_WATCHES) } });
    watches += 1;
    try {
      let after = req.afterSequence;
      for (let quietSince = Date.now(); ; ) {
        const request = { afterSequence: after, limit: WATCH_PAGE, sessionId: req.sessionId, requestId: "" };
        const rows = await listRecords(pool, request);
        const records = cutAt(
          rows.map((row) => toRecord(row, req.withLines)),
          MAX_ANSWER_BYTES,
        );
        const last = records.at(-1);
        if (last || Date.now() - quietSince > WATCH_QUIET_MS) {
          after = last?.sequence ?? after;
          yield { records, lastSequence: after };
          quietSince = Date.now();
        }
        if (rows.length < WATCH_PAGE && records.length === rows.length) await wait(WATCH_POLL_MS, signal);
      }
    } finally {
      watches -= 1;
    }
  }

  return implement(AuditServiceService, {
    listRecords: unary(async (req) => {
      checkList(req);
      const { afterSequence, sessionId, requestId } = req;
      const rows = await listRecords(pool, { afterSequence, limit: req.limit || 100, sessionId, requestId });
      const records = rows.map((row) => toRecord(row, req.withLines));
      return { records: cutAt(records, MAX_ANSWER_BYTES) };
    }),
    watchRecords: serverStream(watch, {
      resume: ({ lastSequence }) => ({ after_sequence: String(lastSequence) }),
    }),
    getCheckpoint: unary(async ({ coveringSequence }) => {
      const found = new Violations();
      found.integer("covering_sequence", coveringSequence, { min: 0 });
      found.throwIfAny();
      const stored = await (coveringSequence === 0n ? store.newest() : store.covering(coveringSequence));
      if (!stored) throw proxyError("CHECKPOINT_NOT_FOUND");
      return { checkpoint: toCheckpoint(stored) };
    }),
    listCheckpoints: unary(async ({ afterSize, limit }) => {
      const found = new Violations();
      found.integer("after_size", afterSize, { min: 0 });
      found.integer("limit", limit, { min: 0, max: 1000 });
      found.throwIfAny();
      return { checkpoints: (await store.list(afterSize, limit || 100)).map(toCheckpoint) };
    }),
    createCheckpoint: unary(async () => {
      const made = await audit.checkpointer.make();
      const stored = made && (await store.covering(made.size));
      if (!stored) throw proxyError("CHECKPOINT_NOT_FOUND");
      return { checkpoint: toCheckpoint(stored) };
    }),
    getReceipt: unary(async ({ sessionId }) => {
      const found = new Violations();
      checkText(found, "session_id", sessionId, { required: true, maxLength: 80 });
      found.throwIfAny();
      const end = await findSessionEnd(pool, sessionId);
      const checkpoint: StoredCheckpoint | undefined = end && (await store.covering(BigInt(end.sequence)));
      if (!end || !checkpoint) throw proxyError("RECEIPT_NOT_FOUND", { metadata: { session_id: sessionId } });
      return {
        record: toRecord(end, true),
        checkpoint: toCheckpoint(checkpoint),
        json: receiptJson(end, checkpoint),
      };
    }),
    getPublicKeys: unary(async () => {
      try {
        await audit.keys.reload();
      } catch (error) {
        if (!(error instanceof VaultFailure)) throw error;
        throw proxyError("VAULT_UNAVAILABLE", { cause: error });
      }
      const all = audit.keys.all();
      const keys = all.map(({ keyId, vkey, createdAt, signedBy = "", signature = "" }) => ({
        keyId,
        vkey,
        createTime: toTimestamp(new Date(createdAt)),
        signedBy,
        signature,
      }));
      return { logId: audit.logId, keys, json: keyFile(audit.logId, all) };
    }),
  });
}

function checkList({ afterSequence, limit, sessionId, requestId }: ListRecordsRequest): void {
  const found = new Violations();
  found.integer("after_sequence", afterSequence, { min: 0 });
  found.integer("limit", limit, { min: 0, max: 1000 });
  checkText(found, "session_id", sessionId, { required: false, maxLength: 80 });
  checkText(found, "request_id", requestId, { required: false, maxLength: 80 });
  found.throwIfAny();
}

function checkWatch({ afterSequence, sessionId }: WatchRecordsRequest): void {
  const found = new Violations();
  found.integer("after_sequence", afterSequence, { min: 0 });
  checkText(found, "session_id", sessionId, { required: false, maxLength: 80 });
  found.throwIfAny();
}

import { join } from "node:path";
import type { Pool } from "pg";
import { Gauge, type Registry } from "prom-client";
import type { Logger } from "../../common/log/create-logger.ts";
import { blankRecord, recordText } from "../domain/new-record.ts";
import type { Ledger } from "../domain/ports.ts";
import { type CheckpointStore, createCheckpointStore } from "./checkpoint-store.ts";
import { type Checkpointer, type SigningKeys, startCheckpointer } from "./checkpointer.ts";
import { countRecords } from "./count-records.ts";
import { keyFile, type PublishedKey, writeKeyFile } from "./key-file.ts";
import { createLedger, type Writer } from "./ledger.ts";
import { createNotesFile } from "./notes-file.ts";
import { createRecordFile, type RecordSink } from "./record-file.ts";
import { knownKeys, listOwnLines } from "./record-store.ts";
import { recoverOpenRequests } from "./recover.ts";
import { reportAnomalies } from "./report-anomalies.ts";
import { reportHoneytokens } from "./report-honeytokens.ts";
import { type SessionEnds, startSessionEnds } from "./session-ends.ts";
import { settleLeftOpen } from "./settle-left-open.ts";
import type { WrittenRow } from "./written-row.ts";

/** Keys as the audit log needs them. */
export interface AuditKeys extends SigningKeys {
  all(): readonly PublishedKey[];
}

/** What the audit log is made of. */
export interface AuditOptions {
  pool: Pool;
  writer: Omit<Writer, "build">;
  /** Folder outside of the database; undefined = the database only. */
  folder: string | undefined;
  /** `strict`: no call goes on before both places have its record. `any`: the folder follows. */
  sinks: "strict" | "any";
  /** Version of this program. */
  build: string;
  /** Keys of the log with that id. */
  openKeys: (logId: string) => Promise<AuditKeys>;
  registry: Registry;
  log: Logger;
}

/** The audit log of one process. */
export interface Audit {
  logId: string;
  ledger: Ledger;
  store: CheckpointStore;
  checkpointer: Checkpointer;
  keys: AuditKeys;
  /** True for a request of this process whose decision or dispatch failed: nothing was sent, though it may be in the log. */
  isUnsent(requestId: string): boolean;
  /** Writes the log_open, and closes what dead processes left open. Nothing may be served before. */
  begin(policyDigest: string): Promise<void>;
  /** A session may have ended. */
  wake(): void;
  /** Writes the log_close with a checkpoint, and stops. */
  close(): Promise<void>;
}

const KEYS_MS = 3_600_000;
const RECOVER_MS = 30_000;

/** Opens the audit log: ledger, the folder beside it, checkpoints, ends of sessions. */
export async function openAudit(options: AuditOptions): Promise<Audit> {
  const { pool, folder, sinks, log, registry } = options;
  const writer: Writer = { ...options.writer, build: options.build };
  const trouble = (message: string) => (error: unknown) => log.warn({ err: error }, message);
  const store = createCheckpointStore(pool);
  const { logId } = await store.head();
  const ring = await options.openKeys(logId);
  const keys: AuditKeys = {
    ...ring,
    reload: async () => {
      const before = ring.all().length;
      await ring.reload();
      if (ring.all().length !== before) await publishKeys();
    },
  };
  const sink: RecordSink | undefined =
    folder === undefined
      ? undefined
      : createRecordFile({
          path: join(folder, `records-${writer.instance}.jsonl`),
          ownLines: (from, limit) => listOwnLines(pool, writer.instance, from, limit),
          onTrouble: trouble("the audit file cannot be written"),
        });
  const refused = new Gauge({
    name: "ganglion_mcp_proxy_audit_checkpoint_refused",
    help: "1 when the stored audit log does not extend what was signed before",
    registers: [registry],
  });

  const keep = async (rows: readonly WrittenRow[]) => {
    const stored = rows.flatMap(({ sequence, line }) => (line === null ? [] : [{ sequence, line }]));
    const last = stored.at(-1);
    if (!last) return;
    const written = sink?.append(stored.map(({ line }) => line));
    if (sinks === "any") written?.catch(() => {});
    else await written;
    checkpointer.written(BigInt(last.sequence));
  };
  const leftOpen = settleLeftOpen(pool, writer, keep, trouble("requests stay open in the audit log"));
  const written = createLedger(pool, writer, { keep, onUncertain: leftOpen.add });
  const ledger = reportHoneytokens(reportAnomalies(countRecords(written, registry)), registry, log);
  const checkpointer = startCheckpointer({
    store,
    keys,
    notes:
      folder === undefined
        ? undefined
        : createNotesFile(join(folder, `checkpoints-${writer.instance}.notes`)),
    onTrouble: trouble("no checkpoint could be made"),
    onRefused: (why) => {
      refused.set(1);
      log.error({ reason: why }, "the audit log was changed: no checkpoint is signed");
      const anomaly = { ...blankRecord("anomaly"), reason: "CHECKPOINT_REFUSED", detail: recordText(why) };
      ledger.write(anomaly).catch(trouble("the anomaly could not be recorded"));
    },
  });
  let ends: SessionEnds | undefined;

  /** Whoever has taken a key into use has said so before: in the log, and beside it. */
  async function publishKeys() {
    const known = await knownKeys(pool);
    for (const { keyId } of ring.all()) {
      if (!known.has(keyId)) await ledger.write({ ...blankRecord("key_change"), detail: keyId });
    }
    if (folder !== undefined) await writeKeyFile(folder, writer.instance, keyFile(logId, ring.all()));
  }
  const recover = async () => {
    const recovered = await recoverOpenRequests(pool, writer);
    await keep(recovered);
    if (recovered.length > 0)
      log.warn({ requests: recovered.length }, "closed requests that a dead process left open");
  };
  const timers = [
    setInterval(() => void keys.reload().catch(trouble("keys could not be renewed")), KEYS_MS),
    setInterval(() => void recover().catch(trouble("dead processes were not looked for")), RECOVER_MS),
  ];
  for (const timer of timers) timer.unref();

  return {
    logId,
    ledger,
    store,
    checkpointer,
    keys,
    isUnsent: leftOpen.isUnsent,
    begin: async (policyDigest) => {
      if (folder === undefined) log.warn("audit records and checkpoints are in the database only");
      // A call would not wait that long, and a file that cannot be opened is no place to start with.
      if (sinks === "strict") await sink?.open();
      const detail = `${options.build}, sinks ${folder === undefined ? "database" : sinks}`;
      await ledger.write({ ...blankRecord("log_open"), policy_digest: policyDigest, detail });
      await publishKeys();
      await recover();
      ends = startSessionEnds({
        pool,
        writer,
        keep,
        onEnded: (sequence) =>
          void checkpointer.cover(sequence).catch(trouble("no checkpoint for a receipt")),
        onTrouble: trouble("ends of sessions could not be recorded"),
      });
    },
    wake: () => ends?.wake(),
    close: async () => {
      for (const timer of timers) clearInterval(timer);
      leftOpen.close();
      await ends?.close();
      await ledger.write(blankRecord("log_close")).catch(trouble("the audit log could not be closed"));
      await checkpointer.make().catch(trouble("no checkpoint at the end"));
      await checkpointer.close();
      await sink?.close();
    },
  };
}

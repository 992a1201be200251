import type { Pool } from "pg";
import { crashPoint } from "../../common/crash/crash-point.ts";
import type { WriterColumns } from "../domain/new-record.ts";
import type { CallClaim, CallEnd, Guard, Ledger, LedgerRecord } from "../domain/ports.ts";
import { proxyError } from "../domain/proxy-error.ts";
import { stripDatabaseError } from "../store/database-error.ts";
import type { Statement } from "../store/query.ts";
import { createGate, IMMEDIATELY } from "./gate.ts";
import {
  WRITE_AND_CLAIM,
  WRITE_CLAIM_AND_DISPATCH,
  WRITE_DISPATCH,
  WRITE_END,
  WRITE_RECORDS,
  WRITE_TOGETHER,
} from "./ledger-statements.ts";
import type { WrittenRow } from "./written-row.ts";

/** Who writes. */
export interface Writer {
  instance: string;
  bootId: string;
  /** Program and version. */
  build?: string;
  /** Id of the key that its HMACs follow from. */
  hmacKeyId?: string;
}

/** What becomes of records beside their place in the database. */
export interface LedgerOptions {
  /** Makes what was written durable outside of the database too; a call does not go on before. */
  keep?: (rows: readonly WrittenRow[]) => Promise<void>;
  /** This record may or may not be in the log, and its call has failed. */
  onUncertain?: (record: LedgerRecord) => void;
}

interface Refusal {
  refusal: string | null;
}

interface Waiting {
  record: LedgerRecord;
  entry: Record<string, unknown>;
  /** Written behind it, if its guard holds. */
  dispatch?: Record<string, unknown>;
  since: number;
  settle: (refusal: string | undefined) => void;
  fail: (error: unknown) => void;
}

const WRITE_TIMEOUT_MS = 2000;
const MAX_BATCH = 64;
/** Statements of their own that may wait for the head at once; more would take the pool from everybody else. */
const MAX_DIRECT = 3;

/**
 * Makes the writer of the audit log. The log has one head, so commits queue behind each other; records that wait
 * together go in one transaction. No record waits for anything but the commit before it, and none is held in memory
 * as if it were durable: a write that takes longer than 2 s fails the call (law L6). While a batch goes to the second place,
 * the next one goes to the database.
 */
export function createLedger(pool: Pool, writer: Writer, options: LedgerOptions = {}): Ledger {
  const { keep = async () => {}, onUncertain = () => {} } = options;
  const who = writerColumns(writer);
  const entryOf = (record: LedgerRecord, guard?: Guard) => ({
    record: { ...record, ...who },
    ...(guard ? { guard: guardJson(guard) } : {}),
  });
  const commit = async <Row extends object>(statement: Statement, values: unknown[], enter = IMMEDIATELY) => {
    const since = Date.now();
    return enter(async () => {
      // Its caller has been told already; to write it now would announce what will not happen.
      if (Date.now() - since >= WRITE_TIMEOUT_MS) throw proxyError("AUDIT_UNAVAILABLE");
      crashPoint("pg", statement.name, "before");
      const result = await pool.query<Row & WrittenRow>({ ...statement, values });
      crashPoint("pg", statement.name, "after");
      return result.rows;
    });
  };
  const durable = async <Row extends WrittenRow>(rows: Promise<Row[]>): Promise<Row[]> => {
    const keptToo = async () => {
      const written = await rows;
      await keep(written);
      return written;
    };
    try {
      return await inTime(keptToo());
    } catch (error) {
      throw proxyError("AUDIT_UNAVAILABLE", { cause: stripDatabaseError(error) });
    }
  };
  const run = async <Row extends object>(record: LedgerRecord, statement: Statement, values: unknown[]) => {
    try {
      return await durable(commit<Row>(statement, values, gate));
    } catch (error) {
      onUncertain(record);
      throw error;
    }
  };
  const gate = createGate(MAX_DIRECT);

  let waiting: Waiting[] = [];
  let isWriting = false;
  const flush = async () => {
    if (isWriting) return;
    isWriting = true;
    while (waiting.length > 0) {
      const batch = waiting.slice(0, MAX_BATCH).filter(({ since, fail }) => {
        const isLate = Date.now() - since >= WRITE_TIMEOUT_MS;
        if (isLate) fail(proxyError("AUDIT_UNAVAILABLE"));
        return !isLate;
      });
      waiting = waiting.slice(MAX_BATCH);
      if (batch.length === 0) continue;
      const entries = JSON.stringify(batch.map(({ entry }) => entry));
      const dispatches = batch.map(({ dispatch }) => dispatch ?? null);
      const committed = dispatches.some((dispatch) => dispatch)
        ? commit<Refusal>(WRITE_TOGETHER, [entries, JSON.stringify(dispatches)])
        : commit<Refusal>(WRITE_RECORDS, [entries]);
      durable(committed).then(
        (rows) => {
          batch.forEach(({ settle }, i) => {
            settle(rows[i]?.refusal ?? undefined);
          });
        },
        (error) => {
          for (const { fail, record } of batch) {
            if (record.request_id !== "") onUncertain(record);
            fail(error);
          }
        },
      );
      await inTime(committed).catch(() => {});
    }
    isWriting = false;
  };

  const enqueue = (record: LedgerRecord, guard?: Guard, behind?: LedgerRecord) =>
    new Promise<string | undefined>((settle, fail) => {
      const dispatch = behind && { dispatch: entryOf(behind) };
      waiting.push({
        record,
        entry: entryOf(record, guard),
        ...dispatch,
        since: Date.now(),
        settle,
        fail,
      });
      void flush();
    });

  const claimed = async (
    statement: Statement,
    record: LedgerRecord,
    guard: Guard,
    claim: CallClaim,
    behind: unknown[] = [],
  ) => {
    const values = [JSON.stringify([entryOf(record, guard)]), claim.sessionId, claim.callKey, claim.epoch];
    const more = [claim.requestDigest, claim.requestId, writer.instance, writer.bootId, ...behind];
    type Row = { refusal: string | null; claimed: boolean };
    const [row] = await run<Row>(record, statement, [...values, ...more]);
    return { ...(row?.refusal ? { refusal: row.refusal } : {}), isClaimed: row?.claimed === true };
  };

  return {
    write: async (record, guard) => {
      const refusal = await enqueue(record, guard);
      if (!guard) refuseClosed(refusal);
      return refusal;
    },
    writeTogether: enqueue,
    writeAndClaim: (record, guard, claim) => claimed(WRITE_AND_CLAIM, record, guard, claim),
    writeClaimAndDispatch: (record, guard, claim, { record: dispatch, isRepeatable }) => {
      const behind = [JSON.stringify([entryOf(dispatch)]), isRepeatable];
      return claimed(WRITE_CLAIM_AND_DISPATCH, record, guard, claim, behind);
    },
    writeDispatch: async (record, call) => {
      const values = [JSON.stringify([entryOf(record)]), call.sessionId, call.callKey, record.request_id];
      const all = [...values, call.isRepeatable];
      const [row] = await run<Refusal>(record, WRITE_DISPATCH, all);
      refuseClosed(row?.refusal);
      return row !== undefined;
    },
    writeEnd: async (record, end: CallEnd) => {
      const values = [
        JSON.stringify([entryOf(record)]),
        end.sessionId,
        end.callKey,
        end.requestId,
        end.result,
      ];
      const [row] = await run<Refusal>(record, WRITE_END, values);
      refuseClosed(row?.refusal);
    },
  };
}

/** What each record says of its writer. */
export function writerColumns({ instance, bootId, build = "", hmacKeyId = "" }: Writer): WriterColumns {
  return { instance, boot_id: bootId, build, hmac_key_id: hmacKeyId };
}

/** Somebody closed the request already: what it says now comes too late, and is not in the log. */
function refuseClosed(refusal: string | null | undefined): void {
  if (refusal) throw proxyError("AUDIT_UNAVAILABLE");
}

function guardJson(guard: Guard): Record<string, string> {
  return {
    token_hash: guard.tokenHash.toString("hex"),
    token_mac: guard.tokenMac.toString("hex"),
    binding_mac: guard.bindingMac.toString("hex"),
  };
}

/** A statement that hangs must not hang the caller; if it commits later, the record stays without what it announced. */
async function inTime<T>(work: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error("the audit log did not answer in time")), WRITE_TIMEOUT_MS);
  });
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}

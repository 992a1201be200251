import type { Pool } from "pg";
import { crashPoint } from "../../common/crash/crash-point.ts";
import type { CallClaim, CallEnd, Guard, Ledger, LedgerRecord } from "../domain/ports.ts";
import { proxyError } from "../domain/proxy-error.ts";
import { stripDatabaseError } from "../store/database-error.ts";
import type { Statement } from "../store/query.ts";
import { createGate, IMMEDIATELY } from "./gate.ts";
import {
  WRITE_AND_CLAIM,
  WRITE_DISPATCH,
  WRITE_END,
  WRITE_RECORDS,
  WRITE_TOGETHER,
} from "./ledger-statements.ts";

/** Who writes. */
export interface Writer {
  instance: string;
  bootId: string;
}

interface Refusal {
  refusal: string | null;
}

interface Waiting {
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
 * as if it were durable: a write that takes longer than 2 s fails the call (law L6).
 */
export function createLedger(pool: Pool, writer: Writer): Ledger {
  const who = { instance: writer.instance, boot_id: writer.bootId };
  const entryOf = (record: LedgerRecord, guard?: Guard) => ({
    record: { ...record, ...who },
    ...(guard ? { guard: guardJson(guard) } : {}),
  });
  const run = async <Row extends object>(statement: Statement, values: unknown[], enter = IMMEDIATELY) => {
    const since = Date.now();
    const work = async () => {
      // Its caller has been told already; to write it now would announce what will not happen.
      if (Date.now() - since >= WRITE_TIMEOUT_MS) throw proxyError("AUDIT_UNAVAILABLE");
      crashPoint("pg", statement.name, "before");
      const result = await pool.query<Row>({ ...statement, values });
      crashPoint("pg", statement.name, "after");
      return result;
    };
    try {
      return (await inTime(enter(work))).rows;
    } catch (error) {
      throw proxyError("AUDIT_UNAVAILABLE", { cause: stripDatabaseError(error) });
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
      try {
        const entries = JSON.stringify(batch.map(({ entry }) => entry));
        const rows = batch.some(({ dispatch }) => dispatch)
          ? await run<Refusal>(WRITE_TOGETHER, [
              entries,
              JSON.stringify(batch.map(({ dispatch }) => dispatch ?? null)),
            ])
          : await run<Refusal>(WRITE_RECORDS, [entries]);
        batch.forEach(({ settle }, i) => {
          settle(rows[i]?.refusal ?? undefined);
        });
      } catch (error) {
        for (const { fail } of batch) fail(error);
      }
    }
    isWriting = false;
  };

  const enqueue = (entry: Waiting["entry"], dispatch?: Waiting["dispatch"]) =>
    new Promise<string | undefined>((settle, fail) => {
      waiting.push({ entry, ...(dispatch ? { dispatch } : {}), since: Date.now(), settle, fail });
      void flush();
    });

  return {
    write: (record, guard) => enqueue(entryOf(record, guard)),
    writeTogether: (decision, guard, dispatch) => enqueue(entryOf(decision, guard), entryOf(dispatch)),
    writeAndClaim: async (record, guard, claim: CallClaim) => {
      const values = [JSON.stringify([entryOf(record, guard)]), claim.sessionId, claim.callKey, claim.epoch];
      const more = [claim.requestDigest, claim.requestId, writer.instance, writer.bootId];
      const all = [...values, ...more];
      const [row] = await run<{ refusal: string | null; claimed: boolean }>(WRITE_AND_CLAIM, all, gate);
      return { ...(row?.refusal ? { refusal: row.refusal } : {}), isClaimed: row?.claimed === true };
    },
    writeDispatch: async (record, call) => {
      const values = [JSON.stringify([entryOf(record)]), call.sessionId, call.callKey, record.request_id];
      return (await run(WRITE_DISPATCH, [...values, call.isRepeatable], gate)).length === 1;
    },
    writeEnd: async (record, end: CallEnd) => {
      const values = [
        JSON.stringify([entryOf(record)]),
        end.sessionId,
        end.callKey,
        end.requestId,
        end.result,
      ];
      await run(WRITE_END, values, gate);
    },
  };
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

import type { Pool } from "pg";
import type { CallClaim, CallJournal, JournalEntry } from "../domain/ports.ts";
import { query } from "./query.ts";

interface Row {
  epoch: string;
  request_digest: Buffer;
  request_id: string;
  state: JournalEntry["state"];
  is_repeatable: boolean;
  result: Buffer | null;
  boot_id: string;
  is_alive: boolean;
}

const FIND = {
  name: "find_call",
  text: `
SELECT c.epoch, c.request_digest, c.request_id, c.state, c.is_repeatable, c.result, c.boot_id,
       EXISTS (SELECT FROM proxy.replicas r WHERE r.instance = c.instance AND r.boot_id = c.boot_id
               AND r.heartbeat_at > now() - interval '15 s') AS is_alive
FROM proxy.calls c WHERE c.session_id = $1 AND c.call_key = $2`,
};
// The request id is new with each claim, so whoever held it before can no longer dispatch or end the call.
const TAKE_OVER = {
  name: "take_over_call",
  text: `
UPDATE proxy.calls SET state = 'claimed', request_id = $3, epoch = $4, instance = $5, boot_id = $6, dispatched_at = NULL
WHERE session_id = $1 AND call_key = $2 AND request_id = $7 AND state = ANY ($8) RETURNING 1`,
};

// A call without its result is answered as one whose result is no longer kept, and is never made again.
const FORGET = {
  name: "forget_calls",
  text: `UPDATE proxy.calls SET result = NULL
         WHERE session_id = $1 AND call_key = ANY ($2) AND state = 'finished' AND result IS NOT NULL`,
};
// Nobody can ask any more: the end of a session refuses every token of it.
const FORGET_ENDED = {
  name: "forget_ended_calls",
  text: `WITH gone AS (
           DELETE FROM proxy.calls c USING proxy.fences f
           WHERE f.session_id = c.session_id AND f.ended AND f.raised_at < now() - interval '1 h' RETURNING 1)
         SELECT count(*)::int AS count FROM gone`,
};
const FORGET_TOKENS = { name: "forget_tokens", text: "SELECT proxy.forget_tokens()" };

/** Channel on which processes ask each other to give up a call. */
export const CANCEL_CHANNEL = "ganglion_proxy_cancel";
const ASK_TO_CANCEL = { name: "ask_to_cancel", text: `SELECT pg_notify('${CANCEL_CHANNEL}', $1)` };

/**
 * Makes the journal of tool calls for one boot of one instance. `isUnsent` says of a request of that boot that nothing was
 * sent, though its dispatch may be in the database.
 */
export function createCallStore(
  pool: Pool,
  writer: { instance: string; bootId: string },
  isUnsent: (requestId: string) => boolean,
): CallJournal {
  return {
    find: async (sessionId, callKey) => {
      const [row] = await query<Row>(pool, FIND, [sessionId, callKey]);
      return (
        row && {
          epoch: BigInt(row.epoch),
          requestDigest: row.request_digest,
          requestId: row.request_id,
          state: row.state === "dispatched" && isUnsent(row.request_id) ? "claimed" : row.state,
          isRepeatable: row.is_repeatable,
          result: row.result,
          isOwn: row.boot_id === writer.bootId,
          isAlive: row.is_alive,
        }
      );
    },
    takeOver: async (claim: CallClaim, from: JournalEntry) => {
      const values = [
        claim.sessionId,
        claim.callKey,
        claim.requestId,
        claim.epoch,
        writer.instance,
        writer.bootId,
      ];
      const states = isUnsent(from.requestId) ? ["claimed", "dispatched"] : [from.state];
      return (await query(pool, TAKE_OVER, [...values, from.requestId, states])).length === 1;
    },
    forget: async (sessionId, callKeys) => {
      await query(pool, FORGET, [sessionId, callKeys]);
    },
    forgetEnded: async () => {
      await query(pool, FORGET_TOKENS, []);
      const [row] = await query<{ count: number }>(pool, FORGET_ENDED, []);
      return row?.count ?? 0;
    },
    askToCancel: async (sessionId, callKey) => {
      await query(pool, ASK_TO_CANCEL, [JSON.stringify([sessionId, callKey])]);
    },
  };
}

import type { Pool } from "pg";
import { query } from "./query.ts";

/** A Vault token that was made for a session. */
export interface VaultTokenRow {
  accessor: string;
  sessionId: string;
  vaultId: string;
  epoch: bigint;
}

/** Vault tokens by accessor, and the queue of those to revoke. */
export interface VaultTokenStore {
  /** Records a token; when the fence was raised meanwhile, why it may not be used: it is queued for revocation. */
  add(token: VaultTokenRow): Promise<"SESSION_ENDED" | "TOKEN_STALE_EPOCH" | undefined>;
  /** Queues what earlier boots of this instance left: their tokens were in a memory that is gone. */
  queueLeftBehind(): Promise<void>;
  /** Queues all of this boot's tokens. */
  queueOwn(): Promise<void>;
  /** Takes what is due, and hides it from others for a while. */
  takeDue(limit: number): Promise<{ accessor: string; attempts: number }[]>;
  markRevoked(accessor: string): Promise<void>;
}

const ADD = {
  name: "add_vault_token",
  text: "SELECT proxy.add_vault_token($1, $2, $3, $4, $5, $6) AS is_live",
};
// A statement of its own: what that one waited for may have come after it began.
const IS_OPEN = {
  name: "has_open_fence",
  text: "SELECT FROM proxy.fences WHERE session_id = $1 AND NOT ended",
};
const LEFT_BEHIND = {
  name: "queue_left_behind",
  text: `UPDATE proxy.vault_tokens SET state = 'revoke', next_try_at = now()
         WHERE state = 'live' AND instance = $1 AND boot_id <> $2`,
};
const OWN = {
  name: "queue_own",
  text: `UPDATE proxy.vault_tokens SET state = 'revoke', next_try_at = now()
         WHERE state = 'live' AND instance = $1 AND boot_id = $2`,
};
// A taken entry comes back by itself: 1 s, 2 s, 4 s … 60 s, a little apart so that replicas do not knock together.
const TAKE = {
  name: "take_due_revocations",
  text: `UPDATE proxy.vault_tokens t
         SET attempts = attempts + 1,
             next_try_at = now() + LEAST(60, power(2, LEAST(attempts, 6))) * (0.8 + 0.4 * random()) * interval '1 s'
         WHERE t.accessor IN (SELECT accessor FROM proxy.vault_tokens WHERE state = 'revoke' AND next_try_at <= now()
                              ORDER BY next_try_at LIMIT $1 FOR UPDATE SKIP LOCKED)
         RETURNING t.accessor, t.attempts`,
};
const DONE = {
  name: "mark_revoked",
  text: "UPDATE proxy.vault_tokens SET state = 'revoked', revoked_at = now() WHERE accessor = $1",
};

/** Makes the store of Vault tokens for one boot of one instance. */
export function createVaultTokenStore(
  pool: Pool,
  { instance, bootId }: { instance: string; bootId: string },
): VaultTokenStore {
  return {
    add: async (token) => {
      const values = [token.accessor, token.sessionId, token.vaultId, instance, bootId, token.epoch];
      if ((await query<{ is_live: boolean }>(pool, ADD, values))[0]?.is_live === true) return undefined;
      const isOpen = (await query(pool, IS_OPEN, [token.sessionId])).length === 1;
      return isOpen ? "TOKEN_STALE_EPOCH" : "SESSION_ENDED";
    },
    queueLeftBehind: async () => {
      await query(pool, LEFT_BEHIND, [instance, bootId]);
    },
    queueOwn: async () => {
      await query(pool, OWN, [instance, bootId]);
    },
    takeDue: (limit) => query<{ accessor: string; attempts: number }>(pool, TAKE, [limit]),
    markRevoked: async (accessor) => {
      await query(pool, DONE, [accessor]);
    },
  };
}

import type { VaultTokenStore } from "../store/vault-token-store.ts";
import type { VaultClient } from "./vault-client.ts";
import { isVaultFailure } from "./vault-failure.ts";

/** Revokes queued tokens at Vault. */
export interface RevocationWorker {
  /** There may be work now. */
  wake(): void;
  /** Works off what is due; resolves when nothing more is. */
  drain(): Promise<void>;
  close(): Promise<void>;
}

const POLL_MS = 2000;
const BATCH = 32;

/**
 * Works off the durable queue of Vault tokens to revoke, by accessor. What Vault cannot take now stays queued and is
 * tried again, however long that takes and whichever replica does it.
 */
export function startRevocationWorker(options: {
  client: VaultClient;
  loginToken: () => string;
  store: VaultTokenStore;
  onFailure: (error: Error) => void;
}): RevocationWorker {
  const { client, loginToken, store, onFailure } = options;
  let running: Promise<void> | undefined;
  let isAskedAgain = false;

  const revoke = async (accessor: string) => {
    try {
      await client.write("auth/token/revoke-accessor", { accessor }, loginToken());
    } catch (error) {
      // Vault knows no such accessor: the token has ended by itself.
      if (!isVaultFailure(error, "bad_request", "not_found")) throw error;
    }
    await store.markRevoked(accessor);
  };
  const work = async () => {
    do {
      isAskedAgain = false;
      for (;;) {
        const due = await store.takeDue(BATCH);
        const results = await Promise.allSettled(due.map(({ accessor }) => revoke(accessor)));
        const failed = results.find((result) => result.status === "rejected");
        if (failed) onFailure(failed.reason as Error);
        if (due.length < BATCH || failed) break;
      }
    } while (isAskedAgain);
  };
  const run = () => {
    if (running !== undefined) {
      isAskedAgain = true;
      return running;
    }
    running = work()
      .catch((error) => onFailure(error as Error))
      .finally(() => {
        running = undefined;
      });
    return running;
  };
  const timer = setInterval(() => void run(), POLL_MS);
  timer.unref();
  return {
    wake: () => void run(),
    drain: run,
    close: async () => {
      clearInterval(timer);
      await running;
    },
  };
}

import type { Reason } from "./proxy-error.ts";

/** What runs now on behalf of a session. */
export interface LiveUse {
  sessionId: string;
  epoch: bigint;
  /** "epoch": ends with the epoch (a stream of a brain). "session": ends with the session only (a tool call). */
  endsWith: "epoch" | "session";
  cut: (reason: Reason) => void;
}

/** A fence as it stands. */
export interface Fence {
  sessionId: string;
  lowestEpoch: bigint;
  ended: boolean;
}

/** Everything that runs and must be cut when its session's fence rises. */
export class LiveSessions {
  readonly #uses = new Map<string, Set<LiveUse>>();

  /** Registers a use; call the result when it is over. */
  add(use: LiveUse): () => void {
    const uses = this.#uses.get(use.sessionId) ?? new Set();
    uses.add(use);
    this.#uses.set(use.sessionId, uses);
    return () => {
      uses.delete(use);
      if (uses.size === 0 && this.#uses.get(use.sessionId) === uses) this.#uses.delete(use.sessionId);
    };
  }

  /** Sessions of which something runs. */
  sessionIds(): string[] {
    return [...this.#uses.keys()];
  }

  /** Cuts what these fences, read just now for `asked`, no longer allow. A session without fence counts as ended. */
  enforce(asked: readonly string[], fences: readonly Fence[]): void {
    const bySession = new Map(fences.map((fence) => [fence.sessionId, fence]));
    for (const sessionId of asked) {
      const fence = bySession.get(sessionId);
      for (const use of [...(this.#uses.get(sessionId) ?? [])]) {
        if (!fence || fence.ended) use.cut("SESSION_ENDED");
        else if (use.endsWith === "epoch" && use.epoch < fence.lowestEpoch) use.cut("TOKEN_STALE_EPOCH");
      }
    }
  }

  /** Cuts everything: nobody can say any more whether it may go on. */
  cutAll(reason: Reason): void {
    for (const uses of [...this.#uses.values()]) for (const use of [...uses]) use.cut(reason);
  }
}

import { setTimeout as pass } from "node:timers/promises";
import type { TestMesh } from "../../kit/mesh.ts";
import type { Random } from "../../kit/random.ts";
import { PARTS } from "../../kit/stage.ts";

/** How long after one kill the next one comes. */
export interface KillPlan {
  readonly minMs: number;
  readonly maxMs: number;
}

/**
 * Killer ends a random part with SIGKILL every few seconds. Parts come in random order, each once before one comes
 * again; whoever is not running is not waited for. The supervisor starts them again.
 */
export class Killer {
  readonly kills: Record<string, number> = {};
  readonly #mesh: TestMesh;
  readonly #random: Random;
  readonly #plan: KillPlan;
  readonly #stop = new AbortController();

  constructor(mesh: TestMesh, random: Random, plan: KillPlan) {
    this.#mesh = mesh;
    this.#random = random;
    this.#plan = plan;
  }

  /** Number of kills so far. */
  get total(): number {
    return Object.values(this.kills).reduce((sum, count) => sum + count, 0);
  }

  /** Kills until it is stopped. */
  async run(): Promise<void> {
    const { minMs, maxMs } = this.#plan;
    const { signal } = this.#stop;
    while (!signal.aborted) {
      for (const part of this.#random.shuffled(PARTS)) {
        await pass(this.#random.between(minMs, maxMs), undefined, { signal }).catch(() => {});
        if (signal.aborted) return;
        this.#kill(part);
      }
    }
  }

  stop(): void {
    this.#stop.abort();
  }

  #kill(part: string): void {
    try {
      this.#mesh.kill(part);
      this.kills[part] = (this.kills[part] ?? 0) + 1;
    } catch {
      // It is between two starts.
    }
  }
}

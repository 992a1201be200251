/** What tools did to the world outside, counted by the one number that each call of the model carries. */
export class Effects {
  readonly #counts = new Map<string, number>();

  /** A tool takes effect. */
  take(nonce: string): void {
    this.#counts.set(nonce, this.of(nonce) + 1);
  }

  /** How often a call took effect. */
  of(nonce: string): number {
    return this.#counts.get(nonce) ?? 0;
  }
}

/** What a scripted call says about itself in its input. */
export interface CallScript {
  nonce: string;
  /** Time until it takes effect, and from there to its end. */
  beforeMs: number;
  afterMs: number;
}

/** Reads a scripted input; undefined = it is not one. */
export function scriptOf(inputJson: string | Uint8Array): CallScript | undefined {
  try {
    const text = typeof inputJson === "string" ? inputJson : Buffer.from(inputJson).toString("utf8");
    const { nonce, beforeMs, afterMs } = JSON.parse(text) as Partial<CallScript>;
    if (typeof nonce !== "string") return undefined;
    return { nonce, beforeMs: beforeMs ?? 1, afterMs: afterMs ?? 1 };
  } catch {
    return undefined;
  }
}

/** What a check of an audit log can find, with the exit code by which `ganglion audit verify` says so. */
export const FINDINGS = {
  /** The log is empty although a checkpoint or receipt says that it was not. */
  empty: 10,
  altered: 2,
  /** Gap, reorder or duplicate. */
  order: 3,
  leading_loss: 5,
  signature: 6,
  fork: 7,
  /** The log ends before what a checkpoint or receipt covers. */
  tail_lost: 4,
  /** Somebody looked at a decoy at Vault. */
  honeytoken: 12,
  /** A credential was read at Vault that no record names, or the other way round. */
  vault: 8,
  /** An allowed request without an end, past the time that one may take. */
  open_request: 9,
  /** Nothing outside of the log anchors it; counts with --strict only. */
  no_anchor: 11,
} as const;

/** A kind of finding. */
export type FindingKind = keyof typeof FINDINGS;

/** Something that is not as it should be. */
export interface Finding {
  readonly kind: FindingKind;
  /** Where and what, in one line. */
  readonly text: string;
  /** Sequence of the record, where one is meant. */
  readonly sequence?: string;
}

const MOST_OF_A_KIND = 20;

/** Collects findings; of one kind the first ones say it all. */
export class Findings {
  readonly list: Finding[] = [];
  readonly #counts = new Map<FindingKind, number>();

  /** Adds a finding. */
  add(kind: FindingKind, text: string, sequence?: string): void {
    const count = (this.#counts.get(kind) ?? 0) + 1;
    this.#counts.set(kind, count);
    if (count <= MOST_OF_A_KIND)
      this.list.push({ kind, text, ...(sequence === undefined ? {} : { sequence }) });
  }

  /** How many there were of each kind, also of those that are not listed. */
  counts(): Partial<Record<FindingKind, number>> {
    return Object.fromEntries(this.#counts);
  }

  /** The exit code: that of the gravest kind, in the order of FINDINGS; 0 when there is none. */
  exitCode(options: { strict: boolean }): number {
    for (const [kind, code] of Object.entries(FINDINGS)) {
      if (kind === "no_anchor" && !options.strict) continue;
      if (this.#counts.has(kind as FindingKind)) return code;
    }
    return 0;
  }
}

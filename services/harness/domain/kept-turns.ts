import { type Places, readPart, splitParts } from "./checkpoint-part.ts";
import type { AssistantTurn, Turn, UserTurn } from "./session-state.ts";

/** What a checkpoint has of the older turns, unread. */
export interface KeptSource {
  count: number;
  /** Last position that belongs to the last of them; none goes beyond the next one's. */
  through: bigint;
  /** Characters of their entries in a transcript, all together. */
  chars: number;
  /** Their parts, one behind the other. Asked for once, when the first of them is looked at. */
  parts: () => Buffer;
  text: Buffer;
  /** Of `text`: what was written of these turns points there. */
  places: Places;
}

/** Older turns of a checkpoint: each is read when somebody looks at it, and most never are. */
class KeptTurns {
  readonly source: KeptSource;
  #parts: Buffer[] | undefined;

  constructor(source: KeptSource) {
    this.source = source;
  }

  partOf(index: number): Buffer {
    this.#parts ??= splitParts(this.source.parts());
    const part = this.#parts[index];
    if (!part) throw new Error("a checkpoint has fewer turns than it says");
    return part;
  }
}

/** Which of the two it is shows in `kind`, as with every turn. */
type Either = Omit<UserTurn, "kind"> & Omit<AssistantTurn, "kind"> & Pick<Turn, "kind">;

/** A turn that looks like any other and is one as soon as it is looked at. Copy plainTurn() of it, never itself. */
class KeptTurn {
  readonly kept: KeptTurns;
  readonly index: number;
  #plain: Either | undefined;

  constructor(kept: KeptTurns, index: number) {
    this.kept = kept;
    this.index = index;
  }

  get plain(): Either {
    this.#plain ??= readPart(this.kept.partOf(this.index), this.kept.source.text) as Either;
    return this.#plain;
  }

  get kind(): "user" | "assistant" {
    return this.plain.kind;
  }
  get position(): bigint {
    return this.plain.position;
  }
  get through(): bigint {
    return this.plain.through;
  }
  get content(): UserTurn["content"] {
    return this.plain.content;
  }
  get spanId(): string {
    return this.plain.spanId;
  }
  get blocks(): AssistantTurn["blocks"] {
    return this.plain.blocks;
  }
  get calls(): AssistantTurn["calls"] {
    return this.plain.calls;
  }
  get stopReason(): string {
    return this.plain.stopReason;
  }
  get stopDetailsJson(): Uint8Array {
    return this.plain.stopDetailsJson;
  }
}

/** The turns of a source, none of them read. All of them are final: no open call, and nothing stored beside the log. */
export function keptTurns(source: KeptSource): Turn[] {
  const kept = new KeptTurns(source);
  return Array.from({ length: source.count }, (_, index) => new KeptTurn(kept, index) as unknown as Turn);
}

/** True for a turn that comes from keptTurns(): what is never true of those need not be looked for in it. */
export function isKept(turn: Turn): boolean {
  return (turn as unknown) instanceof KeptTurn;
}

/** The kept turns of a conversation: they come first, and all of them from one source. */
export interface KeptPrefix {
  source: KeptSource;
  /** How many are left of the source: the oldest may have left the window. */
  count: number;
  isWhole: boolean;
}

/** The turns of a conversation that are kept, none of them looked at; undefined when there are none. */
export function keptPrefix(turns: readonly Turn[]): KeptPrefix | undefined {
  const first: unknown = turns[0];
  if (!(first instanceof KeptTurn)) return undefined;
  const { source } = first.kept;
  return { source, count: source.count - first.index, isWhole: first.index === 0 };
}

/** What a checkpoint wrote of a turn, if it points into the text of these places. */
export function keptPart(turn: Turn, places: Places): Buffer | undefined {
  const kept: unknown = turn;
  if (!(kept instanceof KeptTurn) || kept.kept.source.places !== places) return undefined;
  return kept.kept.partOf(kept.index);
}

/** A turn as an object with properties of its own, which may be copied. */
export function plainTurn<T extends Turn>(turn: T): T {
  const kept: unknown = turn;
  return kept instanceof KeptTurn ? (kept.plain as unknown as T) : turn;
}

/** Where a session stands, as its row says. */
export type Status = "idle" | "running" | "rescheduling" | "terminated";

/** An event that is to be appended; the body is encoded and never looked into again. */
export interface NewEvent {
  readonly id: string;
  readonly type: string;
  readonly threadId: string;
  readonly traceparent: string;
  readonly mayIgnore: boolean;
  readonly body: Uint8Array;
  readonly digest: Uint8Array;
  /** What it changes in the session's row; null = nothing. */
  readonly effect: RowEffect | null;
}

/** What an event changes in its session's row, in the same statement; null = unchanged. */
export interface RowEffect {
  readonly status: Status | null;
  readonly runnable: boolean | null;
  readonly usage: Uint8Array | null;
  readonly activeMs: bigint | null;
  readonly stopReason: Uint8Array | null;
  readonly listCost: bigint | null;
  readonly isBudgetPaused: boolean | null;
}

/** One atomic append. */
export interface Append {
  readonly sessionId: string;
  /** Workspace that the caller is confined to; null = any. */
  readonly scope: string | null;
  /** The lease that a harness appends under; null for others. */
  readonly lease: { readonly owner: string; readonly epoch: bigint } | null;
  readonly expectedPosition: bigint | null;
  readonly actor: { readonly role: number; readonly subject: string };
  readonly events: readonly NewEvent[];
}

/** Nothing changes. */
export const NO_EFFECT: RowEffect = {
  status: null,
  runnable: null,
  usage: null,
  activeMs: null,
  stopReason: null,
  listCost: null,
  isBudgetPaused: null,
};

// What answers an open call or ends a turn is taken at any time; these begin work.
const NEW_INPUT: readonly string[] = ["user.message", "user.define_outcome", "system.message"];

/** bringsInput says whether a batch holds input that a session paused at its budget does not take. */
export function bringsInput(events: readonly NewEvent[]): boolean {
  return events.some(({ type }) => NEW_INPUT.includes(type));
}

/** combinedEffect is what a batch changes in its session's row: of each column the last change. */
export function combinedEffect(events: readonly NewEvent[]): RowEffect {
  return events.reduce((sum, { effect }) => combineEffects(sum, effect), NO_EFFECT);
}

/** combineEffects is what one event changes after what came before it. */
export function combineEffects(sum: RowEffect, effect: RowEffect | null): RowEffect {
  if (effect === null) return sum;
  return {
    status: effect.status ?? sum.status,
    runnable: effect.runnable ?? sum.runnable,
    usage: effect.usage ?? sum.usage,
    activeMs: effect.activeMs ?? sum.activeMs,
    stopReason: effect.stopReason ?? sum.stopReason,
    listCost: effect.listCost ?? sum.listCost,
    isBudgetPaused: effect.isBudgetPaused ?? sum.isBudgetPaused,
  };
}

/** bytesOf is about what a batch takes in memory and on the wire. */
export function bytesOf(events: readonly NewEvent[]): number {
  return events.reduce((sum, { body }) => sum + body.length + 512, 0);
}

/** Where an append's events are. `at` is the database's text of the time. */
export interface Appended {
  readonly head: bigint;
  readonly stored: readonly StoredAt[];
}

/** Where one event is. */
export interface StoredAt {
  readonly eventId: string;
  readonly position: bigint;
  readonly at: string;
  readonly isDuplicate: boolean;
}

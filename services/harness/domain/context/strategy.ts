import type { SessionState, Turn } from "../session-state.ts";

/** Options of a strategy: whole numbers by name. */
export type ContextOptions = Readonly<Record<string, number>>;

/** One option: what it is when nobody says, and what it may be. */
export interface OptionRule {
  byDefault: (given: ContextOptions) => number;
  min: number;
  max: number;
}

/**
 * A way to fill the model's window from the folded log: pure, so that two brains that folded the same log show the model
 * the same bytes, and nothing that it leaves out leaves the log (law L9). A change to what it makes of a log is a new
 * version, never an edit: sessions go on with the version that their log names.
 */
export interface ContextStrategy {
  /** Name and version, as the log records them. */
  readonly name: string;
  readonly options: Readonly<Record<string, OptionRule>>;
  /** True when the model may be shown less than there is: then it is offered `session_log`. */
  readonly mayDrop: boolean;
  /** True when older turns are replaced by a summary once the window fills. */
  readonly isCompacting: boolean;
  /**
   * What is known of the request's beginning. "none": nothing. "recorded": it stays the same until a recorded change,
   * and the log says how far. "enforced": as recorded, and a request that breaks it is not sent.
   */
  readonly promise: "none" | "recorded" | "enforced";
  /** Who places the cache's breakpoints: the API by itself, or this code, in up to four blocks. */
  readonly breakpoints: "automatic" | "explicit";
  /** Where the settings of a request stand that change from one to the next: before the conversation, or behind it. */
  readonly settings: "first" | "last";
  /** The conversation as the model is to see it. */
  view(state: SessionState, options: ContextOptions): readonly Turn[];
}

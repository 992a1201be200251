import type { ExecutionResult } from "../domain/execution-result.ts";

/** One line of the journal. `at` is the host's clock in milliseconds. */
export type JournalRecord =
  | { kind: "epoch"; session: string; epoch: string; at: number }
  | { kind: "hand"; session: string; hand: string; at: number }
  | { kind: "start"; session: string; key: string; hand: string; digest: string; at: number }
  | { kind: "end"; session: string; key: string; result: ExecutionResult; at: number }
  /** The call ended, but its result is no longer kept. */
  | { kind: "dropped"; session: string; key: string; at: number };

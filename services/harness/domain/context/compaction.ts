import type { ContextStrategy, OptionRule } from "./strategy.ts";

/** Options of strategies that compact. */
export const compactionOptions: Readonly<Record<string, OptionRule>> = {
  /** What the model can read, in tokens. */
  window_tokens: { byDefault: () => 200_000, min: 200, max: 100_000_000 },
  /** Compact before a request of this size. */
  compact_at_tokens: {
    byDefault: (given) => Math.floor((given.window_tokens ?? 0) * 0.8),
    min: 100,
    max: 100_000_000,
  },
  /** About how much of the newest turns stays as it is. */
  keep_tokens: {
    byDefault: (given) => Math.floor((given.compact_at_tokens ?? 0) / 5),
    min: 0,
    max: 100_000_000,
  },
  /** Longest summary. */
  summary_tokens: { byDefault: () => 4096, min: 64, max: 64_000 },
};

/** Replaces older turns by a summary when the window fills. The summary is an event; what it replaces stays in the log. */
export const compaction: ContextStrategy = {
  name: "compaction/1",
  options: compactionOptions,
  mayDrop: true,
  isCompacting: true,
  promise: "recorded",
  breakpoints: "automatic",
  settings: "last",
  view: (state) => state.turns,
};

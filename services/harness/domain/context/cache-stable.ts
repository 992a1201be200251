import { compactionOptions } from "./compaction.ts";
import type { ContextStrategy } from "./strategy.ts";

/**
 * As compaction, with cache breakpoints of its own, and strict: a request that does not begin with what was promised
 * before is not sent. The only changes are those that the log records, and a compaction is one.
 */
export const cacheStable: ContextStrategy = {
  name: "cache-stable/1",
  options: compactionOptions,
  mayDrop: true,
  isCompacting: true,
  promise: "enforced",
  breakpoints: "explicit",
  settings: "last",
  view: (state) => state.turns,
};

import type { ContextStrategy } from "./strategy.ts";

/** Everything, always. A conversation that no longer fits ends its turn. */
export const full: ContextStrategy = {
  name: "full/1",
  options: {},
  mayDrop: false,
  isCompacting: false,
  promise: "none",
  breakpoints: "automatic",
  settings: "first",
  view: (state) => state.turns,
};

import type { ChosenStrategy, SessionState } from "../session-state.ts";
import { cacheStable } from "./cache-stable.ts";
import { compaction } from "./compaction.ts";
import { full } from "./full.ts";
import type { ContextOptions, ContextStrategy } from "./strategy.ts";
import { trim } from "./trim.ts";

const STRATEGIES: ReadonlyMap<string, ContextStrategy> = new Map(
  [full, trim, compaction, cacheStable].map((strategy) => [strategy.name, strategy]),
);

/** A strategy with its options filled in. */
export interface Context {
  strategy: ContextStrategy;
  options: ContextOptions;
  /** True when the log says so already. */
  isRecorded: boolean;
}

/**
 * The strategy of a session: what the log records, else what its agent asks for, else the default. Undefined = this
 * version does not know the name or does not understand the options, and must not guess.
 */
export function contextOf(state: SessionState): Context | undefined {
  const chosen = chosenStrategy(state);
  const before = known.get(chosen);
  if (before) return { ...before, isRecorded: state.strategy !== null };
  const strategy = STRATEGIES.get(chosen.name);
  const options = strategy && readOptions(strategy, chosen.optionsJson);
  if (!strategy || !options) return undefined;
  known.set(chosen, { strategy, options });
  return { strategy, options, isRecorded: state.strategy !== null };
}

/** The strategy as it is, or would be, recorded. */
export function chosenStrategy(state: SessionState): ChosenStrategy {
  return state.strategy ?? state.askedStrategy ?? BY_DEFAULT;
}

const BY_DEFAULT: ChosenStrategy = { name: compaction.name, optionsJson: new Uint8Array(0) };
// Asked for at every step; its JSON is read once.
const known = new WeakMap<ChosenStrategy, Pick<Context, "strategy" | "options">>();

function readOptions(strategy: ContextStrategy, json: Uint8Array): ContextOptions | undefined {
  let given: unknown;
  try {
    given = json.length === 0 ? {} : JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(json));
  } catch {
    return undefined;
  }
  if (typeof given !== "object" || given === null || Array.isArray(given)) return undefined;
  const left = new Map<string, unknown>(Object.entries(given));
  const options: Record<string, number> = {};
  for (const [name, { byDefault, min, max }] of Object.entries(strategy.options)) {
    const value = left.get(name) ?? byDefault(options);
    left.delete(name);
    if (!Number.isSafeInteger(value) || (value as number) < min || (value as number) > max) return undefined;
    options[name] = value as number;
  }
  return left.size === 0 ? options : undefined;
}

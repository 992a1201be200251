import type { AccessLookup, AccessReader } from "./ports.ts";

/** A request that takes longer to come is looked up again when it is there. */
const MAX_AGE_MS = 100;

/**
 * Looks a token up while the rest of its request is still coming, and gives that to the one who decides. It decides
 * nothing: the decision is written only if token, binding and fence are then as they were looked up.
 */
export function lookEarly(
  access: AccessReader,
  lookup: AccessLookup,
  now = () => performance.now(),
): AccessReader {
  const since = now();
  const early = access.find(lookup);
  // Nobody may ever ask for it: the request may not come.
  early.catch(() => {});
  return {
    find: (asked) => {
      const isSame = asked.tokenHash.equals(lookup.tokenHash);
      return isSame && now() - since <= MAX_AGE_MS ? early : access.find(asked);
    },
  };
}

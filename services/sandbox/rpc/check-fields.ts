import type { Violations } from "../../common/errors/violations.ts";
import { isId } from "../../common/ids/new-id.ts";

const MAX_EPOCH = 2n ** 63n - 1n;

/** checkSessionId wants an id of the form that the session service mints. */
export function checkSessionId(violations: Violations, value: string, isRequired = true): Violations {
  if (value === "" && !isRequired) return violations;
  if (value === "") return violations.add("session_id", "is required");
  return violations.check(
    value.length <= 64 && isId("sesn", value),
    "session_id",
    "must be an id that starts with sesn_, at most 64 characters",
  );
}

/** checkHandId wants an id of the form that this service mints. */
export function checkHandId(violations: Violations, value: string): Violations {
  if (value === "") return violations.add("hand_id", "is required");
  return violations.check(
    value.length <= 64 && isId("hand", value),
    "hand_id",
    "must be an id that starts with hand_, at most 64 characters",
  );
}

/** checkKey wants the id of a tool-use event. */
export function checkKey(violations: Violations, value: string): Violations {
  const rules = {
    required: true,
    pattern: /^[A-Za-z0-9_-]{1,64}$/,
    patternMeans: "1 to 64 of A-Z a-z 0-9 _ -",
  };
  return violations.string("key", value, rules);
}

/** checkEpoch wants the epoch of a lease; 0 is what a caller that forgot it sends. */
export function checkEpoch(violations: Violations, value: bigint): Violations {
  if (value === 0n) return violations.add("epoch", "is required");
  return violations.integer("epoch", value, { min: 1n, max: MAX_EPOCH });
}

import type { Violations } from "../../../common/errors/violations.ts";
import type { Budget } from "../../../gen/ganglion/types/v1/content.ts";

/** Ten billion dollars: in millionths of a cent it is still far from what 64 bits hold. */
const MAX_CENTS = 1_000_000_000_000n;

/** Checks what a session may cost. */
export function checkBudget(violations: Violations, { maxListCostCents }: Budget): void {
  violations.integer("budget.max_list_cost_cents", maxListCostCents, { min: 1n, max: MAX_CENTS });
}

import type { Budget } from "../../gen/ganglion/types/v1/content.ts";
import { asObject, invalid, refuseUnknown } from "./refuse.ts";

const MICROCENTS_IN_A_CENT = 1_000_000n;
const MAX_CENTS = 1_000_000_000_000n;

/** budgetFromJson reads a budget as the REST API has it. */
export function budgetFromJson(value: unknown, path = "budget"): Budget {
  const budget = asObject(value, path);
  refuseUnknown(budget, ["type", "max_list_cost"], `${path}.`);
  if (budget.type !== "limit") throw invalid(`${path}.type`, "must be limit");
  const at = `${path}.max_list_cost`;
  const cost = asObject(budget.max_list_cost, at);
  refuseUnknown(cost, ["amount", "currency"], `${at}.`);
  if (cost.currency !== "USD") throw invalid(`${at}.currency`, "must be USD");
  const { amount } = cost;
  if (typeof amount !== "string" || !/^[1-9]\d{0,12}$/.test(amount) || BigInt(amount) > MAX_CENTS) {
    throw invalid(`${at}.amount`, `must be whole cents as a string, from "1" to "${MAX_CENTS}"`);
  }
  return { maxListCostCents: BigInt(amount) };
}

/** budgetToJson writes a budget; null when there is none. */
export function budgetToJson(budget: Budget | undefined): Record<string, unknown> | null {
  return budget ? { type: "limit", max_list_cost: money(budget.maxListCostCents) } : null;
}

/** listCostToJson writes what was spent in whole cents, what is begun of the next one left out; null = not known. */
export function listCostToJson(microcents: bigint | undefined): Record<string, unknown> | null {
  return microcents === undefined ? null : money(microcents / MICROCENTS_IN_A_CENT);
}

function money(cents: bigint): Record<string, unknown> {
  return { amount: cents.toString(), currency: "USD" };
}

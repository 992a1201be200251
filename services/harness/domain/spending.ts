import type { Budget, ModelPrice, ModelUsage } from "../../gen/ganglion/types/v1/content.ts";

/** What a session has cost so far and may cost, in millionths of a cent. */
export interface Spending {
  /** What the model costs; null = not known, and no cost is counted. */
  price: ModelPrice | null;
  cost: bigint;
  /** Most that may be spent; null = no limit. */
  limit: bigint | null;
  /** The session said that it waits because of its budget. */
  isPaused: boolean;
}

const MICROCENTS_IN_A_CENT = 1_000_000n;

/** Nothing spent, no limit, no price. */
export function noSpending(): Spending {
  return { price: null, cost: 0n, limit: null, isPaused: false };
}

/** A budget as a limit. One that says nothing sensible allows nothing. */
export function limitOf(budget: Budget | undefined): bigint | null {
  if (!budget) return null;
  return budget.maxListCostCents > 0n ? budget.maxListCostCents * MICROCENTS_IN_A_CENT : 0n;
}

/** What one request costs, exactly. Cache writes of which no time is known count as those for five minutes. */
export function costOf(price: ModelPrice, usage: ModelUsage): bigint {
  const { cacheCreation1hInputTokens: hour, cacheCreationInputTokens: written } = usage;
  const fiveMinutes = usage.cacheCreation5mInputTokens;
  // The parts may be given without the sum.
  const short = written > fiveMinutes + hour ? written - hour : fiveMinutes;
  return (
    usage.inputTokens * price.inputMicrocents +
    usage.outputTokens * price.outputMicrocents +
    usage.cacheReadInputTokens * price.cacheReadMicrocents +
    short * price.cacheWrite5mMicrocents +
    hour * price.cacheWrite1hMicrocents
  );
}

/** True when no further model request may be made. Without a price nothing is counted, so nothing is used up. */
export function isUsedUp({ price, cost, limit }: Spending): boolean {
  return price !== null && limit !== null && cost >= limit;
}

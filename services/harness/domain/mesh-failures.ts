import { LIMITS } from "./limits.ts";
import type { SessionState } from "./session-state.ts";

// Reasons of a model request that failed at the proxy or at what the proxy needs, so that nothing was asked. They say
// nothing about the model, and the part comes back.
const REASONS: ReadonlySet<string> = new Set([
  "UNREACHABLE",
  "DRAINING",
  "DEADLINE_EXCEEDED",
  "VAULT_UNAVAILABLE",
  "AUDIT_UNAVAILABLE",
  "DATABASE_UNAVAILABLE",
  "LOG_UNAVAILABLE",
]);

/** How often a step has failed. */
type Failed = Pick<SessionState, "failedAttempt" | "failedAtModel">;

/** The same once that attempt has failed as well. */
export function countFailure({ failedAtModel }: Failed, attempt: number, reason: string): Failed {
  return { failedAttempt: attempt, failedAtModel: failedAtModel + (REASONS.has(reason) ? 0 : 1) };
}

const SOON_ATTEMPTS = 20;
const SOON_STEP = 3;

/**
 * Which step of the growing wait follows a failed attempt. A part of the mesh is mostly back within seconds, and a brain
 * that waits has no room for another session: for a while the wait grows no further than two seconds.
 */
export function waitStep(reason: string, { failedAttempt, failedAtModel }: Failed): number {
  if (!REASONS.has(reason)) return failedAtModel;
  return Math.max(Math.min(failedAttempt, SOON_STEP), failedAttempt - SOON_ATTEMPTS);
}

/** True when a step that failed so often is not tried again. */
export function areAttemptsUsedUp({ failedAttempt, failedAtModel }: Failed): boolean {
  return failedAtModel >= LIMITS.modelAttempts || failedAttempt >= LIMITS.attempts;
}

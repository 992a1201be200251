import { LIMITS } from "./limits.ts";

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

/** True when a model request failed at a part of the mesh. */
export function isOfTheMesh(reason: string): boolean {
  return REASONS.has(reason);
}

const SOON_ATTEMPTS = 20;
const SOON_STEP = 3;

/**
 * Which step of the growing wait follows a failed attempt. A part of the mesh is mostly back within seconds, and a brain
 * that waits has no room for another session: for a while the wait grows no further than two seconds.
 */
export function waitStep(reason: string, attempts: { attempts: number; atModel: number }): number {
  if (!isOfTheMesh(reason)) return attempts.atModel;
  return Math.max(Math.min(attempts.attempts, SOON_STEP), attempts.attempts - SOON_ATTEMPTS);
}

/** True when a step that failed so often is not tried again. */
export function areAttemptsUsedUp({ attempts, atModel }: { attempts: number; atModel: number }): boolean {
  return atModel >= LIMITS.modelAttempts || attempts >= LIMITS.attempts;
}

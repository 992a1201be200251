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

/** True when a step that failed so often is not tried again. */
export function areAttemptsUsedUp({ attempts, atModel }: { attempts: number; atModel: number }): boolean {
  return atModel >= LIMITS.modelAttempts || attempts >= LIMITS.attempts;
}

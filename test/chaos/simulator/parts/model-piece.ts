import type { Answer } from "../../../../services/harness/ports/model.ts";

/** What comes over the model door, piece by piece. */
export type ModelPiece =
  | { kind: "block"; index: number; type: string }
  | { kind: "whole"; answer: Answer }
  | { kind: "failed"; status: number; type: string; retryAfterMs?: number };

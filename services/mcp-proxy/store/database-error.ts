import { GanglionError } from "../../common/errors/ganglion-error.ts";
import { proxyError } from "../domain/proxy-error.ts";

/** What may be kept of a database error: its code. Messages and details can quote values (case A139). */
export class DatabaseError extends Error {
  override readonly name = "DatabaseError";
  /** SQLSTATE or the system's error code. */
  readonly code: string;
  /** Constraint that was violated. */
  readonly constraint: string | undefined;

  constructor(code: string, constraint: string | undefined) {
    super(`database error ${code}`);
    this.code = code;
    this.constraint = constraint;
  }
}

/** Strips an error of `pg` and turns trouble with the connection into DATABASE_UNAVAILABLE. */
export function stripDatabaseError(error: unknown): Error {
  if (error instanceof GanglionError || error instanceof DatabaseError) return error;
  const { code, constraint } = error as { code?: unknown; constraint?: unknown };
  const kept = new DatabaseError(
    typeof code === "string" ? code : "NO_ANSWER",
    typeof constraint === "string" ? constraint : undefined,
  );
  // Classes of SQLSTATE: 22 data, 23 constraint, 42 syntax or grant. Those are ours; all else is the server's state.
  return /^(22|23|42)/.test(kept.code) ? kept : proxyError("DATABASE_UNAVAILABLE", { cause: kept });
}

/** True for a unique violation, of that constraint when one is named. */
export function isDuplicate(error: unknown, constraint?: string): boolean {
  return (
    error instanceof DatabaseError &&
    error.code === "23505" &&
    (constraint === undefined || error.constraint === constraint)
  );
}

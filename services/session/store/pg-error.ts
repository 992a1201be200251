import { GanglionError } from "../../common/errors/ganglion-error.ts";

// Classes of SQLSTATE that mean: not now, or not on this connection.
const UNAVAILABLE = /^(08|53|57P|25006|57014|40001|40P01|55P03|58)/;
const NETWORK = new Set([
  "ECONNREFUSED",
  "ECONNRESET",
  "EPIPE",
  "ETIMEDOUT",
  "EHOSTUNREACH",
  "ENETUNREACH",
  "ENOTFOUND",
]);
const DRIVER =
  /terminated|timeout|not queryable|Connection ended|ended by|socket disconnected|Client was closed/i;

/** True for a unique violation, of that constraint when one is named. */
export function isUniqueViolation(error: unknown, constraint?: string): boolean {
  const { code, constraint: broken } = (error ?? {}) as { code?: unknown; constraint?: string };
  // Constraints of a partition are named after it, so that only the end of the name is ours.
  return code === "23505" && (constraint === undefined || broken === constraint);
}

/** SQLSTATE of an error of the server, or "". */
export function sqlState(error: unknown): string {
  const { code } = (error ?? {}) as { code?: unknown };
  return typeof code === "string" && /^[0-9A-Z]{5}$/.test(code) ? code : "";
}

/**
 * mapPgError makes of a database error what may be told and logged: SQLSTATE, table and constraint. The server's
 * message and detail quote values of the query, so neither they nor the query survive. [A139]
 */
export function mapPgError(error: unknown): Error {
  if (error instanceof GanglionError) return error;
  const { code, table, constraint, message } = (error ?? {}) as Record<string, string | undefined>;
  const state = sqlState(error);
  const isDown = state
    ? UNAVAILABLE.test(state)
    : NETWORK.has(code ?? "") || DRIVER.test(message ?? "") || error instanceof AggregateError;
  if (isDown) return databaseUnavailable(state || code || "connection");
  // A fault of our own code, not of the database.
  if (!state && code === undefined && error instanceof Error) return error;
  return new Error(
    `database error ${state || code || "unknown"}${table ? ` on ${table}` : ""}${constraint ? ` (${constraint})` : ""}`,
  );
}

/** The error for a database that cannot be reached now. */
export function databaseUnavailable(why: string): GanglionError {
  return new GanglionError({
    code: "UNAVAILABLE",
    reason: "DATABASE_UNAVAILABLE",
    message: "the log's database cannot be reached",
    metadata: { cause: why },
    retryAfterMs: 200,
  });
}

/** The error for a fence that could not be raised: the change that needs it was not made. */
export function fenceUnavailable(error: unknown): GanglionError {
  return new GanglionError({
    code: "UNAVAILABLE",
    reason: "FENCE_UNAVAILABLE",
    message: "the session's tokens could not be revoked, so nothing was changed",
    retryAfterMs: 500,
    cause: new Error(`fence: database error ${sqlState(error) || "unknown"}`),
  });
}

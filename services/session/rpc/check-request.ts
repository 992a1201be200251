import { createHash } from "node:crypto";
import type { Violations } from "../../common/errors/violations.ts";
import type { Timestamp } from "../../gen/google/protobuf/timestamp.ts";
import { ID } from "../domain/id-shape.ts";
import { isPlainText } from "../domain/json-shape.ts";
import type { RequestKey } from "../ports/session-store.ts";
import { fromTimestamp, isTimestamp } from "../store/pg-time.ts";

const PRINTABLE = { pattern: /^[\x21-\x7e]{1,64}$/, patternMeans: "1 to 64 printable characters" };

/** Checks an id that a request must name. */
export function checkId(violations: Violations, field: string, value: string): void {
  violations.string(field, value, { required: true, pattern: ID, patternMeans: "an id" });
}

/** Checks the name and version of a fold. */
export function checkFormat(violations: Violations, value: string, field = "format"): void {
  violations.string(field, value, { required: true, ...PRINTABLE });
}

/** Checks text that is stored as such: bounded, without U+0000. */
export function checkText(violations: Violations, field: string, value: string, maxLength: number): void {
  violations.check([...value].length <= maxLength, field, `is longer than ${maxLength} characters`);
  violations.check(isPlainText(value), field, "must not contain U+0000");
}

/** Checks a request id. */
export function checkRequestId(violations: Violations, value: string): void {
  violations.string("request_id", value, PRINTABLE);
}

/** Page size within 1 to 100; 0 means 20. */
export function checkPageSize(violations: Violations, value: number): number {
  violations.integer("page_size", value, { min: 0, max: 100 });
  return value === 0 ? 20 : value;
}

/** Checks an opaque token's length; what it says is checked where it is read. */
export function checkPageToken(violations: Violations, value: string): void {
  violations.string("page_token", value, {
    maxLength: 512,
    pattern: /^[A-Za-z0-9_-]+$/,
    patternMeans: "a page token",
  });
}

/** A time as the database reads it; null when there is none. */
export function checkTime(
  violations: Violations,
  field: string,
  value: Timestamp | undefined,
): string | null {
  if (!value) return null;
  if (isTimestamp(value) && value.seconds >= 0n) return fromTimestamp(value);
  violations.add(field, "must be a time from 1970 to 9999");
  return null;
}

/** A request id with a digest of what was asked; null when the caller sent none. */
export function requestKey(
  method: string,
  requestId: string,
  ...asked: (Uint8Array | string)[]
): RequestKey | null {
  if (requestId === "") return null;
  const hash = createHash("sha256");
  for (const part of asked) hash.update(String(part.length)).update("\n").update(part);
  return { method, requestId, digest: hash.digest() };
}

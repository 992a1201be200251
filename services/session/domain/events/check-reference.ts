import type { Violations } from "../../../common/errors/violations.ts";

const REFERENCE = /^[A-Za-z0-9_-]{1,64}$/;

/** checkReference checks the id of another event. */
export function checkReference(violations: Violations, path: string, id: string): void {
  violations.string(path, id, { required: true, pattern: REFERENCE, patternMeans: "the id of an event" });
}

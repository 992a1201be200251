import type { Violations } from "../../../common/errors/violations.ts";
import { ID } from "../id-shape.ts";

/** checkReference checks the id of another event. */
export function checkReference(violations: Violations, path: string, id: string): void {
  violations.string(path, id, { required: true, pattern: ID, patternMeans: "the id of an event" });
}

import type { Metadata } from "@grpc/grpc-js";
import { GanglionError } from "../errors/ganglion-error.ts";

// Keys that decide who somebody is or what they may do.
const GUARDED = new Set(["authorization", "x-api-key"]);

/**
 * The one value of a metadata key, or undefined. Two values are an error, never a choice: a
 * check that reads the first and a user that reads the last would disagree. [A100]
 */
export function singleMetadata(metadata: Metadata, key: string): string | undefined {
  const values = metadata.get(key);
  if (values.length === 0) return undefined;
  const [value] = values;
  // grpc-js joins repeated text headers with a comma, which none of our values contains.
  if (values.length > 1 || (typeof value === "string" && value.includes(","))) throw repeated(key);
  return typeof value === "string" ? value : value?.toString("base64");
}

/** Refuses a call in which a key that we act upon has more than one value. */
export function refuseRepeatedMetadata(metadata: Metadata): void {
  for (const key of Object.keys(metadata.getMap())) {
    if (key.startsWith("ganglion-") || GUARDED.has(key)) singleMetadata(metadata, key);
  }
}

function repeated(key: string): GanglionError {
  return new GanglionError({
    code: "INVALID_ARGUMENT",
    reason: "METADATA_NOT_SINGLE",
    message: `metadata ${key} must have exactly one value`,
    metadata: { key },
  });
}

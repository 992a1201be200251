import type { Violations } from "../../common/errors/violations.ts";
import { invalidField } from "./errors.ts";

// Refuses what is not UTF-8. Made once: making one costs more than most documents.
const UTF8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** A JSON object. */
export type Json = Record<string, unknown>;

/** Reads a JSON document that must be one object; anything else is the field's fault. */
export function parseJsonObject(field: string, bytes: Uint8Array): Json {
  const value = parseJson(bytes);
  if (!isObject(value)) throw invalidField(field, "must be one JSON object in UTF-8");
  return value;
}

/** Reads JSON, or undefined when the bytes are none. */
export function parseJson(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(UTF8.decode(bytes));
  } catch {
    return undefined;
  }
}

/** True for a JSON object. */
export function isObject(value: unknown): value is Json {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Checks values of a JSON document and names each by its path. */
export class Shape {
  readonly #violations: Violations;

  constructor(violations: Violations) {
    this.#violations = violations;
  }

  /** Says what is wrong with a value. */
  wrong(path: string, description: string): undefined {
    this.#violations.add(path, description);
    return undefined;
  }

  /** An object with no other keys than these; every other is refused by name. */
  object(path: string, value: unknown, keys: readonly string[]): Json | undefined {
    if (!isObject(value)) return this.wrong(path, "must be an object");
    for (const key of Object.keys(value)) {
      if (!keys.includes(key)) this.wrong(`${path}.${key.slice(0, 64)}`, "is not a known key");
    }
    return value;
  }

  /** Text within bounds, in characters, that PostgreSQL and every client can hold. */
  string(path: string, value: unknown, { min = 0, max }: { min?: number; max: number }): string | undefined {
    if (typeof value !== "string") return this.wrong(path, "must be a string");
    if (!isPlainText(value)) return this.wrong(path, "must not contain U+0000 or half of a surrogate pair");
    const length = [...value].length;
    if (length < min) return this.wrong(path, min === 1 ? "must not be empty" : `needs ${min} characters`);
    if (length > max) return this.wrong(path, `is longer than ${max} characters`);
    return value;
  }

  /** An array of at most `max` entries; null and absent read as empty. */
  array(path: string, value: unknown, max: number): unknown[] {
    if (value === undefined || value === null) return [];
    if (!Array.isArray(value)) {
      this.wrong(path, "must be an array");
      return [];
    }
    if (value.length > max) this.wrong(path, `may have at most ${max} entries`);
    return value.slice(0, max);
  }

  /** One of a closed set. */
  oneOf<const T extends string>(path: string, value: unknown, of: readonly T[]): T | undefined {
    return of.find((entry) => entry === value) ?? this.wrong(path, `must be one of ${of.join(", ")}`);
  }

  /** A truth value; null and absent read as the fallback. */
  boolean(path: string, value: unknown, fallback: boolean): boolean {
    if (value === undefined || value === null) return fallback;
    if (typeof value === "boolean") return value;
    this.wrong(path, "must be true or false");
    return fallback;
  }

  /** Refuses by name what is known but does not work yet; absent, null and empty are fine. */
  unsupported(path: string, value: unknown): void {
    const isEmpty = value === undefined || value === null || (Array.isArray(value) && value.length === 0);
    if (!isEmpty) this.wrong(path, "is not supported yet");
  }

  /** Metadata: string to string, within the limits, keys sorted so that equal sets are equal bytes. */
  metadata(path: string, value: unknown): Record<string, string> {
    if (value === undefined || value === null) return {};
    if (!isObject(value)) {
      this.wrong(path, "must be an object");
      return {};
    }
    const entries = Object.entries(value);
    for (const [key, text] of entries) checkMetadataPair(this, path, key, text);
    if (entries.length > METADATA_MAX_PAIRS) this.wrong(path, `may have at most ${METADATA_MAX_PAIRS} pairs`);
    return Object.fromEntries(entries.sort(([a], [b]) => (a < b ? -1 : 1))) as Record<string, string>;
  }
}

/** Limits of metadata everywhere. */
export const METADATA_MAX_PAIRS = 16;

/** Checks one pair of metadata. */
export function checkMetadataPair(shape: Shape, path: string, key: string, value: unknown): void {
  if (shape.string(path, key, { min: 1, max: 64 }) === undefined) return;
  shape.string(`${path}.${key}`, value, { max: 512 });
}

/** True for text without U+0000 and without lone surrogates: PostgreSQL's text holds neither. */
export function isPlainText(value: string): boolean {
  return value.isWellFormed() && !value.includes("\0");
}

/** mergeMetadata applies a patch: a string sets, null removes. */
export function mergeMetadata(
  current: Readonly<Record<string, string>>,
  patch: unknown,
  isRemoved: (value: unknown) => boolean,
): unknown {
  if (patch === undefined || patch === null || !isObject(patch)) return patch ?? current;
  const merged = new Map<string, unknown>(Object.entries(current));
  for (const [key, value] of Object.entries(patch)) {
    if (isRemoved(value)) merged.delete(key);
    else merged.set(key, value);
  }
  return Object.fromEntries(merged);
}

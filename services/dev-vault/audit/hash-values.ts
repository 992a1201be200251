import { createHmac } from "node:crypto";

/** Times are not secrets, and a log without them is hard to read. */
const PLAIN_KEYS = new Set(["created_time", "creation_time", "updated_time"]);

/** hashText is the form in which an audit device writes a text: comparable, not readable. */
export function hashText(salt: string, value: string): string {
  return `hmac-sha256:${createHmac("sha256", salt).update(value).digest("hex")}`;
}

/** hashValues replaces every text in a value, however deep, by its hash; numbers and booleans stay. */
export function hashValues(salt: string, value: unknown): unknown {
  if (typeof value === "string") return hashText(salt, value);
  if (Array.isArray(value)) return value.map((item) => hashValues(salt, item));
  if (typeof value !== "object" || value === null) return value;
  const entries = Object.entries(value).map(([key, item]) => [
    key,
    PLAIN_KEYS.has(key) && typeof item === "string" ? item : hashValues(salt, item),
  ]);
  return Object.fromEntries(entries);
}

import type { Timestamp } from "../../gen/google/protobuf/timestamp.ts";

const FORM = /^(\d{4}-\d\d-\d\d) (\d\d:\d\d:\d\d)(?:\.(\d{1,6}))?\+00$/;

// What an append stores has one time, and comes together.
let last: { readonly text: string; readonly at: Timestamp } | undefined;

/** toTimestamp reads PostgreSQL's text of a UTC time without losing microseconds. [M30] */
export function toTimestamp(text: string): Timestamp {
  if (text === last?.text) return { ...last.at };
  const match = FORM.exec(text);
  if (!match) throw new Error("a time of the database has an unknown form");
  const [, day, time, fraction = ""] = match;
  const at = {
    seconds: BigInt(Date.parse(`${day}T${time}Z`)) / 1000n,
    nanos: Number(fraction.padEnd(6, "0")) * 1000,
  };
  last = { text, at };
  return { ...at };
}

/** The same for a time that may be absent. */
export function toOptionalTimestamp(text: string | null): Timestamp | undefined {
  return text === null ? undefined : toTimestamp(text);
}

/** fromTimestamp writes a time as PostgreSQL reads it. */
export function fromTimestamp({ seconds, nanos }: Timestamp): string {
  const date = new Date(Number(seconds) * 1000).toISOString().slice(0, 19);
  return `${date}.${String(Math.floor(nanos / 1000)).padStart(6, "0")}Z`;
}

/** True when a timestamp is one that the database can hold: years 1 to 9999. */
export function isTimestamp({ seconds, nanos }: Timestamp): boolean {
  return seconds >= -62_135_596_800n && seconds <= 253_402_300_799n && nanos >= 0 && nanos <= 999_999_999;
}

import { GanglionError } from "../../common/errors/ganglion-error.ts";
import type { Timestamp } from "../../gen/google/protobuf/timestamp.ts";

/** toRfc3339 writes a timestamp as the REST API does; null where there is none. */
export function toRfc3339(at: Timestamp | undefined): string | null {
  if (!at) return null;
  const whole = new Date(Number(at.seconds) * 1000).toISOString().slice(0, 19);
  const fraction = at.nanos === 0 ? "" : `.${String(at.nanos).padStart(9, "0").replace(/0+$/, "")}`;
  return `${whole}${fraction}Z`;
}

const FORM = /^(\d{4}-\d{2}-\d{2})[Tt ](\d{2}:\d{2}:\d{2})(?:\.(\d{1,9}))?([Zz]|[+-]\d{2}:\d{2})$/;

/** fromRfc3339 reads a timestamp of a request; `name` is the parameter it came in. */
export function fromRfc3339(text: string, name: string): Timestamp {
  const match = FORM.exec(text);
  const ms = match ? Date.parse(`${match[1]}T${match[2]}${match[4]?.toUpperCase()}`) : Number.NaN;
  if (!match || Number.isNaN(ms)) {
    throw new GanglionError({
      code: "INVALID_ARGUMENT",
      reason: "INVALID_FIELD",
      message: `${name} must be an RFC 3339 time`,
      violations: [{ field: name, description: "must be an RFC 3339 time" }],
    });
  }
  return { seconds: BigInt(Math.floor(ms / 1000)), nanos: Number((match[3] ?? "").padEnd(9, "0")) };
}

/** The first moment after one: the database keeps microseconds. */
export function justAfter(at: Timestamp): Timestamp {
  const nanos = at.nanos + 1000;
  return nanos < 1_000_000_000
    ? { seconds: at.seconds, nanos }
    : { seconds: at.seconds + 1n, nanos: nanos - 1_000_000_000 };
}

/** compareTimes is negative when the first is earlier. */
export function compareTimes(a: Timestamp, b: Timestamp): number {
  return a.seconds === b.seconds ? a.nanos - b.nanos : a.seconds < b.seconds ? -1 : 1;
}

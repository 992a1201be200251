import type { ParentCall } from "../../common/grpc/call-context.ts";
import type { Duration } from "../../gen/google/protobuf/duration.ts";

/** The step on whose behalf a call is made: its signal and its trace, without a deadline of its own. */
export function parentOf(signal: AbortSignal, traceparent: string): ParentCall {
  return { signal, traceparent, deadlineMs: Number.POSITIVE_INFINITY };
}

/** Milliseconds as a Duration. */
export function toDuration(ms: number): Duration {
  return { seconds: BigInt(Math.floor(ms / 1000)), nanos: Math.round((ms % 1000) * 1_000_000) };
}

/** A Duration in whole milliseconds. */
export function fromDuration(duration: Duration | undefined): bigint | undefined {
  return duration && duration.seconds * 1000n + BigInt(Math.round(duration.nanos / 1_000_000));
}

import type { CallRef, HandExecution } from "../ports/hands.ts";
import type { DriveContext } from "./drive-context.ts";
import { LeaseLost, saysLeaseIsLost } from "./lease-lost.ts";
import { orStop } from "./or-stop.ts";
import { pause } from "./pause.ts";

/** What all the hosts together know of a key; "unknown" = one that may know could not be asked. */
export type Found =
  | { kind: "never" }
  | { kind: "running"; address: string }
  | { kind: "known"; value: HandExecution }
  | { kind: "unknown" };

/**
 * Asks every host that ever had a hand of the session, and the one that makes hands now, what its journal knows of a
 * key. Runs nothing. "never" only when every one of them has answered so.
 */
export async function lookUpExecution(
  ctx: DriveContext,
  ref: CallRef,
  options: { wait: boolean; forMs?: number },
): Promise<Found> {
  const answers = await Promise.all(hostsOf(ctx).map((address) => lookUpAt(ctx, ref, address, options)));
  return (
    answers.find((answer) => answer.kind === "known") ??
    answers.find((answer) => answer.kind === "running") ??
    answers.find((answer) => answer.kind === "unknown") ?? { kind: "never" }
  );
}

/** Every host that may know a call of the session. */
export function hostsOf(ctx: DriveContext): string[] {
  return [...new Set([...ctx.log.state.sandboxAddrs, ctx.ports.hands.address])];
}

async function lookUpAt(
  ctx: DriveContext,
  ref: CallRef,
  address: string,
  { wait, forMs = ctx.patience.callMs }: { wait: boolean; forMs?: number },
): Promise<Found> {
  let until = performance.now() + forMs;
  while (!ref.signal.aborted) {
    try {
      const found = await orStop(ctx.ports.hands.lookUp({ ...ref, address, wait }), ref.signal);
      if (found.kind !== "running") return found;
      if (!wait) return { kind: "running", address };
      // It runs, and is bounded by its own time limit at the host.
      until = performance.now() + forMs;
    } catch (error) {
      if (saysLeaseIsLost(error)) throw new LeaseLost("the sandbox refused the epoch", { cause: error });
      if (performance.now() > until) return { kind: "unknown" };
    }
    await pause(ctx.patience.retryMs, ref.signal);
  }
  return { kind: "unknown" };
}

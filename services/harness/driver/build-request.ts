import type { PayloadRef } from "../../gen/ganglion/types/v1/content.ts";
import { contextOf } from "../domain/context/context-of.ts";
import { type Contents, neededPayloads, payloadKey } from "../domain/payload-contents.ts";
import { type Projection, project } from "../domain/project-request.ts";
import type { SessionState } from "../domain/session-state.ts";
import type { DriveContext } from "./drive-context.ts";
import { stepSignal } from "./step-signal.ts";

/**
 * Builds the next request. Contents that are stored beside the log are read before, so that the projection itself stays
 * pure. Undefined = stopped, or interrupted, while they were read.
 */
export async function buildRequest(ctx: DriveContext): Promise<Projection | undefined> {
  const { state } = ctx.log;
  let contents: Contents = new Map();
  for (;;) {
    const missing = payloadsIn(state).filter((ref) => !contents.has(payloadKey(ref)));
    // Nothing is awaited between the last look at the state and the request that is made of it.
    if (missing.length === 0) return project(state, contents);
    const { signal, dispose } = stepSignal(ctx);
    try {
      const read = await ctx.payloads.readAll(ctx.log.lease.sessionId, missing, signal);
      if (signal.aborted) return undefined;
      contents = new Map([...contents, ...read]);
    } finally {
      dispose();
    }
  }
}

/** The contents stored beside the log that the next request shows. */
export function payloadsIn(state: SessionState): PayloadRef[] {
  const context = contextOf(state);
  return neededPayloads(context ? context.strategy.view(state, context.options) : [], state);
}

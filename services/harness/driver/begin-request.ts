import { chosenStrategy } from "../domain/context/context-of.ts";
import type { SessionState } from "../domain/session-state.ts";
import type { NewEvent } from "../ports/event-log.ts";
import type { OpenedRequest } from "../ports/model.ts";
import type { DriveContext } from "./drive-context.ts";
import { newEvent, statusRunning } from "./new-events.ts";

/**
 * Brings a request to the door but for its end, for the time in which its span is appended: only what is durable is sent.
 * Cancel it when the span was not appended.
 */
export function openRequest(
  { ports, token, traceparent }: DriveContext,
  body: Buffer,
): OpenedRequest | undefined {
  return ports.model.open?.({ body, token: token.get(), traceparent });
}

/** Makes a request's span durable before it is sent. */
export async function beginRequest(ctx: DriveContext, span: NewEvent): Promise<void> {
  await ctx.log.append(openingOf(ctx.log.state, span), ctx.traceparent);
}

/** A request's span, after what the log must say first: that the session works, and how. */
export function openingOf(state: SessionState, span: NewEvent): NewEvent[] {
  return [
    ...(state.status === "running" ? [] : [statusRunning()]),
    ...(state.strategy ? [] : [recordStrategy(state)]),
    span,
  ];
}

/** The strategy in force from here on. */
export function recordStrategy(state: SessionState): NewEvent {
  const { name, optionsJson } = chosenStrategy(state);
  return newEvent({
    $case: "ganglionContextStrategySet",
    value: { strategy: name, optionsJson: Buffer.from(optionsJson) },
  });
}

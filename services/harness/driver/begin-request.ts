import { chosenStrategy } from "../domain/context/context-of.ts";
import type { SessionState } from "../domain/session-state.ts";
import type { NewEvent } from "../ports/event-log.ts";
import type { OpenedRequest } from "../ports/model.ts";
import type { DriveContext } from "./drive-context.ts";
import { newEvent, statusRunning } from "./new-events.ts";

/** A request whose span was asked to be appended. */
interface Begun {
  isAppended: boolean;
  /** The request at the door, but for its end; undefined where the model does without. */
  opened: OpenedRequest | undefined;
}

/**
 * Brings a request to the door but for its end while its span is being appended. Only what is durable is sent: without the
 * span it is given up.
 */
export async function openMeanwhile(
  { ports, token, traceparent }: DriveContext,
  body: Buffer,
  appending: Promise<boolean>,
): Promise<Begun> {
  const opened = ports.model.open?.({ body, token: token.get(), traceparent });
  let isAppended = false;
  try {
    isAppended = await appending;
  } finally {
    if (!isAppended) opened?.cancel();
  }
  return { isAppended, opened };
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

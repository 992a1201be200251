import type { Event } from "../../../../services/gen/ganglion/types/v1/event.ts";
import { OUTCOME } from "../../../../services/harness/domain/proto-values.ts";

/** What the checks are about. A part of the simulation that does not work any more would leave them nothing to look at. */
export const WANTED = [
  "an answer of the model",
  "a call that a hand ran",
  "a call that an MCP server ran",
  "a call that a client answered",
  "a confirmation",
  "an interrupt",
  "a summary",
] as const;

type Wanted = (typeof WANTED)[number];

/** Which of it a log came by. */
export function cameBy(events: readonly Event[]): Wanted[] {
  return events.flatMap(({ body }): Wanted[] => {
    switch (body?.$case) {
      case "spanModelRequestEnd":
        return body.value.isError ? [] : ["an answer of the model"];
      case "agentToolResult":
        // The brain's own tool needs no hand.
        return body.value.outcome === OUTCOME.COMPLETED && body.value.handId !== ""
          ? ["a call that a hand ran"]
          : [];
      case "agentMcpToolResult":
        return body.value.outcome === OUTCOME.COMPLETED ? ["a call that an MCP server ran"] : [];
      case "userCustomToolResult":
        return ["a call that a client answered"];
      case "userToolConfirmation":
        return ["a confirmation"];
      case "userInterrupt":
        return ["an interrupt"];
      case "agentThreadContextCompacted":
        return ["a summary"];
      default:
        return [];
    }
  });
}

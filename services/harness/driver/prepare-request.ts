import type { Projection } from "../domain/project-request.ts";
import { PURPOSE } from "../domain/proto-values.ts";
import type { SessionState } from "../domain/session-state.ts";
import { type ToolCatalog, toolCatalog } from "../domain/tool-catalog.ts";
import type { NewEvent } from "../ports/event-log.ts";
import { spanStart } from "./new-events.ts";

/** A request to the model that can be sent once its span is durable. */
export interface PreparedRequest {
  span: NewEvent;
  body: Buffer;
  attempt: number;
  /** What the model may call. */
  catalog: ToolCatalog;
}

/** Makes the span that a request of this state has. */
export function prepareRequest(
  state: SessionState,
  { body, stablePrefix, digests }: Projection,
  attempt: number,
): PreparedRequest {
  const span = spanStart(state, {
    purpose: PURPOSE.TURN,
    consumedPosition: state.position,
    attempt,
    requestSha256: digests.body,
    ...(stablePrefix && digests.stablePrefix
      ? { stablePrefixBytes: BigInt(stablePrefix.length), stablePrefixSha256: digests.stablePrefix }
      : {}),
  });
  return { span, body, attempt, catalog: toolCatalog(state) };
}

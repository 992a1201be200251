import { Violations } from "../../../common/errors/violations.ts";
import type { CallContext } from "../../../common/grpc/call-context.ts";
import { unary } from "../../../common/grpc/handlers.ts";
import type {
  Session,
  UpdateSessionRequest,
  UpdateSessionResponse,
} from "../../../gen/ganglion/session/v1/session_service.ts";
import { Event } from "../../../gen/ganglion/types/v1/event.ts";
import { scopeOf } from "../../domain/caller.ts";
import { invalidField, sessionNotFound } from "../../domain/errors.ts";
import { checkMetadataPair, METADATA_MAX_PAIRS, Shape } from "../../domain/json-shape.ts";
import type { SessionChange } from "../../ports/session-store.ts";
import { encodeNewEvent } from "../../store/event-codec.ts";
import { writeMetadata } from "../../store/session-row.ts";
import { callerOf, requestedBy } from "../caller-of.ts";
import { checkId, checkText } from "../check-request.ts";
import type { Deps } from "../deps.ts";

/** Changes title and metadata. */
export const updateSession = (deps: Deps) =>
  unary<UpdateSessionRequest, UpdateSessionResponse>(async (request, ctx) => {
    checkUpdateSession(request);
    const scope = scopeOf(callerOf(ctx));
    const decide = (current: Session) => changeOf(current, request, ctx);
    const changed = await deps.sessions.update(request.sessionId, scope, decide, ctx.signal);
    if (!changed) throw sessionNotFound(request.sessionId);
    if (changed.head !== null) deps.announce(request.sessionId, false);
    return { session: changed.session };
  });

function checkUpdateSession(request: UpdateSessionRequest): void {
  const violations = new Violations();
  checkId(violations, "session_id", request.sessionId);
  if (request.title !== undefined) checkText(violations, "title", request.title, 256);
  const pairs = Object.entries(request.metadataSet);
  violations.count("metadata_set", pairs.length, { max: METADATA_MAX_PAIRS });
  for (const [key, value] of pairs) checkMetadataPair(new Shape(violations), "metadata_set", key, value);
  violations.count("metadata_remove", request.metadataRemove.length, { max: METADATA_MAX_PAIRS });
  request.metadataRemove.forEach((key, index) => {
    violations.check(!Object.hasOwn(request.metadataSet, key), `metadata_remove[${index}]`, "is also set");
    checkText(violations, `metadata_remove[${index}]`, key, 64);
  });
  violations.throwIfAny();
}

// Only what really changes is said: a client that repeats itself adds nothing to the log.
function changeOf(current: Session, request: UpdateSessionRequest, ctx: CallContext): SessionChange | null {
  const title = request.title !== undefined && request.title !== current.title ? request.title : null;
  const merged = { ...current.metadata, ...request.metadataSet };
  for (const key of request.metadataRemove) delete merged[key];
  if (Object.keys(merged).length > METADATA_MAX_PAIRS) {
    throw invalidField("metadata_set", `would make more than ${METADATA_MAX_PAIRS} pairs`);
  }
  const metadata = writeMetadata(merged).equals(writeMetadata(current.metadata)) ? null : merged;
  if (title === null && metadata === null) return null;
  const event = Event.fromPartial({
    traceparent: ctx.traceparent,
    body: {
      $case: "sessionUpdated",
      value: {
        title: title ?? undefined,
        metadata: metadata ? { entries: metadata } : undefined,
        requestedBy: requestedBy(ctx),
      },
    },
  });
  return { title, metadata, event: encodeNewEvent(event, "session.updated") };
}

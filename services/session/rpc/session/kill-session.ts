import { unary } from "../../../common/grpc/handlers.ts";
import type {
  KillSessionRequest,
  KillSessionResponse,
} from "../../../gen/ganglion/session/v1/session_service.ts";
import { Event } from "../../../gen/ganglion/types/v1/event.ts";
import { scopeOf } from "../../domain/caller.ts";
import { sessionNotFound } from "../../domain/errors.ts";
import { encodeNewEvent } from "../../store/event-codec.ts";
import { callerOf, requestedBy } from "../caller-of.ts";
import type { Deps } from "../deps.ts";
import { checkSessionId } from "./get-session.ts";

/** Ends a session at once, whatever it is doing. */
export const killSession = (deps: Deps) =>
  unary<KillSessionRequest, KillSessionResponse>(async ({ sessionId }, ctx) => {
    checkSessionId(sessionId);
    const terminated = Event.fromPartial({
      traceparent: ctx.traceparent,
      body: { $case: "sessionStatusTerminated", value: { reason: "killed", requestedBy: requestedBy(ctx) } },
    });
    const event = encodeNewEvent(terminated, "session.status_terminated");
    const changed = await deps.sessions.kill(sessionId, scopeOf(callerOf(ctx)), event, ctx.signal);
    if (!changed) throw sessionNotFound(sessionId);
    deps.announce(sessionId, false);
    return { session: changed.session };
  });

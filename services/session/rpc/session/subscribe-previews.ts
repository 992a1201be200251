import { serverStream } from "../../../common/grpc/handlers.ts";
import type {
  SubscribePreviewsRequest,
  SubscribePreviewsResponse,
} from "../../../gen/ganglion/session/v1/session_service.ts";
import { sessionNotFound } from "../../domain/errors.ts";
import type { Deps } from "../deps.ts";
import { checkSessionId } from "./get-session.ts";

/** Streams the previews of a session whose harness publishes to this replica to another one. */
export const subscribePreviews = (deps: Pick<Deps, "publications" | "quietMs">) =>
  serverStream<SubscribePreviewsRequest, SubscribePreviewsResponse>(async function* ({ sessionId }, ctx) {
    checkSessionId(sessionId);
    const subscription = await deps.publications.subscribe(sessionId);
    if (!subscription) throw sessionNotFound(sessionId);
    const { subscriber, leave } = subscription;
    try {
      yield { preview: undefined };
      for (;;) {
        const next = await subscriber.next(deps.quietMs, ctx.signal);
        if (next === undefined) return;
        if (next !== "quiet" && next.message?.$case === "preview") yield { preview: next.message.value };
      }
    } finally {
      leave();
    }
  });

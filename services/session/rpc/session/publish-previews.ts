import { GanglionError } from "../../../common/errors/ganglion-error.ts";
import { Violations } from "../../../common/errors/violations.ts";
import { clientStream } from "../../../common/grpc/handlers.ts";
import type {
  Preview,
  PublishPreviewsRequest,
  PublishPreviewsResponse,
} from "../../../gen/ganglion/session/v1/session_service.ts";
import { staleEpoch } from "../../domain/errors.ts";
import type { Publication } from "../../previews/publication.ts";
import { callerOf } from "../caller-of.ts";
import { checkId } from "../check-request.ts";
import type { Deps } from "../deps.ts";

const RECHECK_MS = 1_000;
const MAX_TEXT = 65_536;
const MAX_PROGRESS_TEXT = 512;
const PREVIEWED = ["agent.message", "agent.thinking"];

/** Passes on text as it is generated, and how far tools are. Nothing is stored; the stored events are the truth. */
export const publishPreviews = (deps: Deps) =>
  clientStream<PublishPreviewsRequest, PublishPreviewsResponse>(async (requests, ctx) => {
    const owner = callerOf(ctx).subject;
    let current: { key: string; at: number; sessionId: string; publication: Publication } | undefined;
    const end = async () => {
      if (current) await deps.publications.end(current.sessionId, current.publication);
      current = undefined;
    };
    try {
      for await (const { sessionId, epoch, preview } of requests) {
        const checked = checkPreview(sessionId, epoch, preview);
        const key = `${sessionId} ${epoch}`;
        // Not asked for each word: a brain that lost its lease is told within a second.
        if (current?.key !== key || performance.now() - current.at > RECHECK_MS) {
          const lease = await deps.leases.get(sessionId, null, ctx.signal);
          if (lease?.owner !== owner || lease.epoch !== epoch) throw staleEpoch(lease?.epoch ?? epoch);
          if (current?.key === key) current.at = performance.now();
          else {
            await end();
            const publication = deps.publications.begin(sessionId, epoch);
            current = { key, at: performance.now(), sessionId, publication };
          }
        }
        current.publication.push(checked);
      }
      return {};
    } finally {
      await end();
    }
  });

function checkPreview(sessionId: string, epoch: bigint, preview: Preview | undefined): Preview {
  const violations = new Violations();
  checkId(violations, "session_id", sessionId);
  violations.integer("epoch", epoch, { min: 1n });
  violations.present("preview", preview);
  checkId(violations, "preview.event_id", preview?.eventId ?? "");
  const message = preview?.message;
  violations.present("preview.message", message);
  if (message?.$case === "start") {
    violations.string("preview.start.event_type", message.value.eventType, {
      required: true,
      oneOf: PREVIEWED,
    });
  }
  if (message?.$case === "text") {
    violations.string("preview.text.text", message.value.text, { maxLength: MAX_TEXT });
  }
  if (message?.$case === "toolProgress") {
    const { progress, total, message: said } = message.value;
    violations.check(Number.isFinite(progress), "preview.tool_progress.progress", "must be finite");
    const isTotal = Number.isFinite(total) && total >= 0;
    violations.check(isTotal, "preview.tool_progress.total", "must be finite and not below 0");
    violations.string("preview.tool_progress.message", said, { maxLength: MAX_PROGRESS_TEXT });
  }
  violations.throwIfAny();
  if (!preview) throw new GanglionError({ code: "INTERNAL", reason: "INTERNAL", message: "internal error" });
  return preview;
}

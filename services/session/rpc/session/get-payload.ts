import { GanglionError } from "../../../common/errors/ganglion-error.ts";
import { Violations } from "../../../common/errors/violations.ts";
import { serverStream } from "../../../common/grpc/handlers.ts";
import type {
  GetPayloadRequest,
  GetPayloadResponse,
} from "../../../gen/ganglion/session/v1/session_service.ts";
import { scopeOf } from "../../domain/caller.ts";
import { payloadNotFound, sessionNotFound } from "../../domain/errors.ts";
import { PIECE_BYTES } from "../../ports/payload-store.ts";
import { callerOf } from "../caller-of.ts";
import { checkId } from "../check-request.ts";
import type { Deps } from "../deps.ts";

/** Reads stored content, one piece at a time, as fast as the reader takes it. */
export const getPayload = (deps: Pick<Deps, "payloads">) =>
  serverStream<GetPayloadRequest, GetPayloadResponse>(async function* (request, ctx) {
    const { sessionId, payloadId, offsetBytes } = request;
    const violations = new Violations();
    checkId(violations, "session_id", sessionId);
    checkId(violations, "payload_id", payloadId);
    violations.integer("offset_bytes", offsetBytes, { min: 0n });
    violations.throwIfAny();
    const owner = { sessionId, scope: scopeOf(callerOf(ctx)) };
    const found = await deps.payloads.find(owner, payloadId, ctx.signal);
    if (!found) throw sessionNotFound(sessionId);
    if (found === "none") throw payloadNotFound(payloadId);
    const { upload } = found;
    const size = Number(found.facts.sizeBytes);
    if (offsetBytes > found.facts.sizeBytes) throw behindTheEnd(size);
    for (let at = Number(offsetBytes); at < size; ) {
      const nth = Math.floor(at / PIECE_BYTES);
      const data = await deps.payloads.readPiece(upload, nth, at % PIECE_BYTES, ctx.signal);
      // Its session was removed meanwhile.
      if (!data || data.length === 0) throw payloadNotFound(payloadId);
      at += data.length;
      yield { data };
    }
  });

function behindTheEnd(size: number): GanglionError {
  const description = `lies behind the end: the payload has ${size} bytes`;
  return new GanglionError({
    code: "OUT_OF_RANGE",
    reason: "INVALID_FIELD",
    message: `offset_bytes ${description}`,
    metadata: { field: "offset_bytes" },
    violations: [{ field: "offset_bytes", description }],
  });
}

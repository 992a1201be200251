import { GanglionError } from "../../../../services/common/errors/ganglion-error.ts";
import { modelErrorOf } from "../../../../services/harness/model/model-error.ts";
import { cut } from "../../../../services/harness/model/read-answer.ts";
import { type Model, ModelError } from "../../../../services/harness/ports/model.ts";
import { callStream } from "../core/call-stream.ts";
import type { Route } from "../core/route.ts";
import type { ModelPiece } from "./model-piece.ts";

/** The model as a brain reaches it: through the proxy's door, over the simulated network. */
export function simModel(route: Route): Model {
  return {
    async ask({ body, token, listener, signal }) {
      const options = { signal, metadata: { "ganglion-session-token": token } };
      let hasBegun = false;
      try {
        for await (const message of callStream(route, { body }, options)) {
          const piece = message as ModelPiece;
          hasBegun = true;
          if (piece.kind === "block") listener.onBlockStart(piece.index, piece.type);
          if (piece.kind === "failed") throw failure(piece);
          if (piece.kind === "whole") return piece.answer;
        }
        throw cut();
      } catch (error) {
        throw explain(error, signal, hasBegun);
      }
    },
  };
}

function failure({ status, type, retryAfterMs }: Extract<ModelPiece, { kind: "failed" }>): ModelError {
  const headers = new Headers(retryAfterMs === undefined ? {} : { "retry-after-ms": String(retryAfterMs) });
  return modelErrorOf({ status, body: { error: { type } }, headers });
}

function explain(error: unknown, signal: AbortSignal, hasBegun: boolean): unknown {
  if (signal.aborted) return new ModelError({ ...LOST, reason: "INTERRUPTED", isRetryable: false });
  if (error instanceof ModelError || !(error instanceof GanglionError)) return error;
  if (error.reason === "UNREACHABLE") return hasBegun ? cut(error) : new ModelError(LOST);
  if (hasBegun || error.reason === "CUT" || error.reason === "INTERNAL") return cut(error);
  return modelErrorOf({
    status: 503,
    body: {},
    headers: new Headers({ "ganglion-reason": error.reason }),
  });
}

const LOST = {
  reason: "UNREACHABLE",
  part: 4,
  errorType: "model_request_failed_error",
  message: "The credential proxy cannot be reached.",
  isRetryable: true,
} as const;

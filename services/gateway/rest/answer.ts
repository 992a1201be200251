import { asGanglionError } from "../../common/errors/to-status.ts";
import { toRestError } from "../domain/error-envelope.ts";
import { writeJson } from "../domain/raw-json.ts";
import type { RestContext } from "./rest-deps.ts";

/** answer sends a JSON document. */
export function answer(c: RestContext, value: unknown, status = 200): Response {
  return new Response(writeJson(value), {
    status,
    headers: {
      "content-type": "application/json",
      "request-id": c.get("requestId"),
      "cache-control": "no-store",
    },
  });
}

/** answerError sends an error envelope. What nobody expected is INTERNAL, with a trace id to find it by. */
export function answerError(c: RestContext, error: unknown): Response {
  const { status, headers, body } = toRestError(asGanglionError(error, c.get("traceId")), c.get("requestId"));
  return new Response(writeJson(body), {
    status,
    headers: { "content-type": "application/json", "request-id": c.get("requestId"), ...headers },
  });
}

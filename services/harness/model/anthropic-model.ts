import { Anthropic, APIConnectionError, APIError, APIUserAbortError } from "@anthropic-ai/sdk";
import { crashPoint } from "../../common/crash/crash-point.ts";
import { PART } from "../domain/proto-values.ts";
import { type Model, ModelError } from "../ports/model.ts";
import { HeldRequest } from "./held-request.ts";
import { modelErrorOf } from "./model-error.ts";
import { type AnswerProgress, cut, readAnswer } from "./read-answer.ts";
import { readSse } from "./read-sse.ts";

/** Where the model route is and how it is dialled. */
export interface AnthropicModelOptions {
  /** https address of the proxy's model door. */
  baseUrl: string;
  /** fetch over the mesh's TLS, to the proxy and nobody else. */
  fetch: typeof globalThis.fetch;
}

interface Posted {
  token: string;
  traceparent: string | undefined;
  signal: AbortSignal;
  /** Further headers. */
  more: Record<string, string>;
}

/**
 * The model through the official SDK. Its base address is the credential proxy and its only credential the session
 * token; nothing is taken from the environment (A158). It asks once: retries are the loop's, which can show them and
 * keep its lease meanwhile (M17, M18). Bodies go out and answers come in as raw bytes.
 */
export function createAnthropicModel({ baseUrl, fetch }: AnthropicModelOptions): Model {
  // One for all requests: making it costs more than a request does.
  const client = new Anthropic({
    baseURL: baseUrl,
    apiKey: null,
    // Each request brings its session's own. Without any the SDK would look for one in the environment.
    authToken: "none",
    webhookKey: null,
    maxRetries: 0,
    logLevel: "off",
    fetch,
  });
  const post = (
    body: Buffer | ReadableStream<Uint8Array>,
    { token, traceparent, signal, more }: Posted,
  ): Promise<Response> =>
    client
      .post("/v1/messages", {
        body,
        headers: {
          authorization: `Bearer ${token}`,
          "content-type": "application/json",
          accept: "text/event-stream",
          ...more,
          ...(traceparent ? { traceparent } : {}),
        },
        stream: true,
        timeout: 600_000,
        signal,
      })
      .asResponse();
  return {
    open({ body, token, traceparent }) {
      const more = { ...betasOf(body), "content-length": String(body.length) };
      return new HeldRequest(body, token, async (held, signal) => {
        crashPoint("model.open");
        return post(held, { token: await token, traceparent, signal, more });
      });
    },

    async ask({ body, token, listener, signal, traceparent, opened }) {
      const startedAt = performance.now();
      const elapsedMs = () => Math.round(performance.now() - startedAt);
      const progress: AnswerProgress = { usage: undefined, firstTokenMs: undefined };
      let upstream = "";
      try {
        crashPoint("model.send");
        const begun = opened instanceof HeldRequest ? opened.complete(signal) : undefined;
        const response = await (begun ?? post(body, { token, traceparent, signal, more: betasOf(body) }));
        crashPoint("model.receive");
        upstream = response.headers.get("ganglion-model-upstream") ?? "";
        if (!response.body) throw cut();
        const chunks = response.body as unknown as AsyncIterable<Uint8Array>;
        const answer = await readAnswer(readSse(chunks), listener, progress, elapsedMs);
        crashPoint("model.end");
        return { ...answer, ...progress, upstream };
      } catch (error) {
        const known = explain(error, signal);
        throw new ModelError({ ...known.facts, ...progress, upstream: known.facts.upstream || upstream });
      }
    },
  };
}

function explain(error: unknown, signal: AbortSignal): ModelError {
  if (signal.aborted || error instanceof APIUserAbortError) {
    return new ModelError({
      reason: "INTERRUPTED",
      part: PART.BRAIN,
      errorType: "unknown_error",
      message: "The request was stopped.",
      isRetryable: false,
    });
  }
  if (error instanceof ModelError) return error;
  if (error instanceof APIConnectionError) return unreachable(error);
  if (error instanceof APIError) {
    return modelErrorOf({ status: error.status, body: error.error, headers: error.headers });
  }
  // The body broke off: a reset or a timeout in mid-stream (M22).
  return cut(error);
}

// The far end of this connection is always the proxy.
function unreachable(cause: unknown): ModelError {
  return new ModelError({
    reason: "UNREACHABLE",
    part: PART.PROXY,
    errorType: "model_request_failed_error",
    message: "The credential proxy cannot be reached.",
    isRetryable: true,
    cause,
  });
}

function betasOf(body: Buffer): Record<string, string> {
  // The projection puts it before anything a user wrote.
  const wantsFastMode = body.subarray(0, 512).includes('"speed":"fast"');
  return wantsFastMode ? { "anthropic-beta": "fast-mode-2026-02-01" } : {};
}

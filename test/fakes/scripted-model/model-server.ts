import { createHash } from "node:crypto";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { Journal } from "../process/journal.ts";
import { bearerOf, createSecretCheck, type SecretCheck } from "../process/secret-check.ts";
import { composeMessage, makeId } from "./compose-message.ts";
import { readConversation } from "./conversation.ts";
import { errorBody, errorTypeOf } from "./error-body.ts";
import type { MessagesRequest } from "./messages-request.ts";
import { findScenario } from "./scenarios/catalogue.ts";
import { sendStream, sendWhole } from "./send-reply.ts";
import { countTokens, PromptCache } from "./usage.ts";
import { validateMaxTokens, validateRequest } from "./validate-request.ts";

const MAX_BODY_BYTES = 32 * 1024 * 1024;
/** Bodies above this are journalled by size only. */
const MAX_JOURNAL_BODY_BYTES = 256 * 1024;
/** Only these are journalled; in particular nothing that can carry a credential. */
const JOURNAL_HEADERS = ["anthropic-version", "anthropic-beta", "content-type", "user-agent", "traceparent"];

/** What the scripted model is started with. */
export interface ModelServerOptions {
  readonly apiKey: string;
  readonly journalToken?: string;
}

/** createModelServer makes the HTTP server of the scripted model; the caller listens. */
export function createModelServer({ apiKey, journalToken }: ModelServerOptions): Server {
  const journal = new Journal(journalToken);
  const model = new ScriptedModel(createSecretCheck(apiKey), journal);
  return createServer((request, response) => {
    const url = new URL(request.url ?? "/", "http://localhost");
    const route = `${request.method} ${url.pathname}`;
    const work = (() => {
      if (route === "GET /healthz") return Promise.resolve(void response.end("ok\n"));
      if (route === "GET /journal") return journal.serve(request, response, url);
      return model.answer(request, response, route);
    })();
    work.catch((error: Error) => {
      // A request body may be in the message: only the kind of error is told.
      console.error(JSON.stringify({ msg: "request failed", error: error.name }));
      response.destroy();
    });
  });
}

/** Refused with a status before any reply began. */
class Refusal extends Error {
  readonly status: number;
  readonly retryAfterSeconds: number | undefined;
  constructor(status: number, message: string, retryAfterSeconds?: number) {
    super(message);
    this.status = status;
    this.retryAfterSeconds = retryAfterSeconds;
  }
}

class ScriptedModel {
  readonly #isKey: SecretCheck;
  readonly #journal: Journal;
  readonly #cache = new PromptCache();
  /** Requests seen for each ruling message: only faults that pass by themselves look at it. */
  readonly #attempts = new Map<string, number>();

  constructor(isKey: SecretCheck, journal: Journal) {
    this.#isKey = isKey;
    this.#journal = journal;
  }

  async answer(request: IncomingMessage, response: ServerResponse, route: string): Promise<void> {
    const requestId = makeId("req");
    response.setHeader("request-id", requestId);
    try {
      const presented = request.headers["x-api-key"] ?? bearerOf(request.headers);
      if (typeof presented !== "string" || !this.#isKey(presented)) throw new Refusal(401, "invalid API key");
      if (route === "POST /v1/messages/count_tokens") return await this.#count(request, response);
      if (route === "POST /v1/messages") return await this.#converse(request, response, requestId);
      throw new Refusal(404, "no such route");
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      this.#journal.write("refused", {
        request_id: requestId,
        route,
        status: error.status,
        message: error.message,
      });
      refuse(request, response, error, requestId);
    }
  }

  async #count(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { body } = await readBody(request);
    const problem = validateRequest(body);
    if (problem) throw new Refusal(400, problem);
    response.setHeader("content-type", "application/json");
    response.end(JSON.stringify({ input_tokens: countTokens(body as MessagesRequest) }));
  }

  async #converse(request: IncomingMessage, response: ServerResponse, requestId: string): Promise<void> {
    const { body, bytes } = await readBody(request);
    if (!request.headers["anthropic-version"])
      throw new Refusal(400, "anthropic-version: header is required");
    const problem = validateRequest(body) ?? validateMaxTokens(body);
    if (problem) throw new Refusal(400, problem);
    const asked = body as MessagesRequest;
    const conversation = readConversation(asked);
    const { scenario } = conversation;
    const play = findScenario(scenario);
    if (!play) throw new Refusal(400, `the scripted model knows no scenario "${scenario}"`);
    const attempt = this.#countAttempt(asked, conversation.task);
    const seen = { request_id: requestId, scenario, attempt, turn: conversation.turns };
    this.#journal.write("request", { ...seen, ...describe(request, asked, bytes) });
    const reply = play(conversation, attempt);
    if (reply.fault?.kind === "status") {
      throw new Refusal(reply.fault.status, "scripted error", reply.fault.retryAfterSeconds);
    }
    const message = composeMessage(reply, asked.max_tokens);
    const onFirstDelta = () => this.#journal.write("first_delta", seen);
    const sending = { model: asked.model, reply, message, usage: this.#cache.measure(asked), onFirstDelta };
    const ending = await (asked.stream === true ? sendStream : sendWhole)(response, sending);
    this.#journal.write("end", { ...seen, ending, stop_reason: message.stopReason });
  }

  #countAttempt(request: MessagesRequest, task: unknown): number {
    const upToTask = JSON.stringify(request.messages.slice(0, request.messages.indexOf(task as never) + 1));
    const key = createHash("sha256").update(upToTask).digest("base64");
    const attempt = (this.#attempts.get(key) ?? 0) + 1;
    this.#attempts.set(key, attempt);
    return attempt;
  }
}

function describe(request: IncomingMessage, asked: MessagesRequest, bytes: number) {
  const headers = Object.fromEntries(JOURNAL_HEADERS.map((name) => [name, request.headers[name]]));
  return {
    headers,
    bytes,
    stream: asked.stream === true,
    body: bytes > MAX_JOURNAL_BODY_BYTES ? undefined : asked,
  };
}

function refuse(request: IncomingMessage, response: ServerResponse, error: Refusal, requestId: string): void {
  if (error.retryAfterSeconds !== undefined)
    response.setHeader("retry-after", String(error.retryAfterSeconds));
  // What was not read must not be taken for the next request on this connection.
  if (!request.complete) response.setHeader("connection", "close");
  response.writeHead(error.status, { "content-type": "application/json" });
  response.end(JSON.stringify(errorBody(errorTypeOf(error.status), error.message, requestId)));
}

async function readBody(request: IncomingMessage): Promise<{ body: unknown; bytes: number }> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > MAX_BODY_BYTES) throw new Refusal(413, "request exceeds the maximum size");
    chunks.push(chunk);
  }
  try {
    return { body: JSON.parse(Buffer.concat(chunks).toString("utf8")), bytes };
  } catch {
    throw new Refusal(400, "body: is not JSON");
  }
}

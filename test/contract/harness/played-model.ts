import type { IncomingMessage, Server, ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { createMeshHttpsServer } from "../../../services/common/tls/https-server.ts";
import type { TlsBundle } from "../../../services/common/tls/tls-bundle.ts";

/** One answer of the model door. */
export type Reply = (response: ServerResponse, request: SeenRequest) => void | Promise<void>;

/** What the door was asked. */
export interface SeenRequest {
  url: string;
  authorization: string;
  headers: IncomingMessage["headers"];
  body: { messages: { role: string; content: Record<string, unknown>[] }[]; [field: string]: unknown };
}

/** A model door that answers from a list, over the mesh's TLS. */
export class PlayedModel {
  readonly seen: SeenRequest[] = [];
  readonly #replies: Reply[] = [];
  readonly #server: Server;
  #asked: (() => void) | undefined;

  private constructor(tls: TlsBundle) {
    this.#server = createMeshHttpsServer(tls, (request, response) => void this.#answer(request, response));
  }

  static async start(tls: TlsBundle): Promise<PlayedModel> {
    const model = new PlayedModel(tls);
    await new Promise<void>((resolve) => model.#server.listen(0, "127.0.0.1", resolve));
    return model;
  }

  get address(): string {
    return `127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** Adds answers for requests to come. */
  will(...replies: Reply[]): void {
    this.#replies.push(...replies);
  }

  /** Resolves when that many requests have come. */
  async asked(count: number): Promise<void> {
    while (this.seen.length < count) {
      await new Promise<void>((resolve) => {
        this.#asked = resolve;
      });
    }
  }

  stop(): void {
    this.#server.closeAllConnections();
    this.#server.close();
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const seen: SeenRequest = {
      url: request.url ?? "",
      authorization: request.headers.authorization ?? "",
      headers: request.headers,
      body: JSON.parse(Buffer.concat(chunks).toString("utf8")) as SeenRequest["body"],
    };
    this.seen.push(seen);
    this.#asked?.();
    const reply = this.#replies.shift();
    if (reply) await reply(response, seen);
    else await httpError(500, "api_error")(response, seen);
  }
}

/** A whole streamed answer. Blocks are given as they stand in the API's JSON. */
export function streamed(stopReason: string, ...blocks: Record<string, unknown>[]): Reply {
  return (response) => {
    begin(response);
    for (const [index, block] of blocks.entries()) sendBlock(response, index, block);
    send(response, {
      type: "message_delta",
      delta: { stop_reason: stopReason, stop_sequence: null },
      usage: { output_tokens: 9 },
    });
    send(response, { type: "message_stop" });
    response.end();
  };
}

/** Begins an answer, sends some events, and then does something else with the connection. */
export function broken(events: unknown[], then: (response: ServerResponse) => void): Reply {
  return (response) => {
    begin(response);
    for (const event of events) send(response, event);
    then(response);
  };
}

/** An answer that is an error. */
export function httpError(status: number, type: string, headers: Record<string, string> = {}): Reply {
  return (response) => {
    response.writeHead(status, { "content-type": "application/json", ...headers });
    response.end(JSON.stringify({ type: "error", error: { type, message: "upstream words" } }));
  };
}

export const text = (value: string) => ({ type: "text", text: value });
export const use = (id: string, name: string, input: unknown) => ({ type: "tool_use", id, name, input });

/** Sends one event of an answer. */
export function send(response: ServerResponse, event: unknown): void {
  const { type } = event as { type: string };
  response.write(`event: ${type}\ndata: ${JSON.stringify(event)}\n\n`);
}

function begin(response: ServerResponse): void {
  response.writeHead(200, { "content-type": "text/event-stream", "ganglion-model-upstream": "scripted" });
  send(response, {
    type: "message_start",
    message: { id: "msg_1", usage: { input_tokens: 7, output_tokens: 1 } },
  });
}

function sendBlock(response: ServerResponse, index: number, block: Record<string, unknown>): void {
  if (block.type === "text") {
    send(response, { type: "content_block_start", index, content_block: { type: "text", text: "" } });
    for (const part of String(block.text).match(/.{1,5}/gsu) ?? []) {
      send(response, { type: "content_block_delta", index, delta: { type: "text_delta", text: part } });
    }
  } else if (block.type === "tool_use") {
    send(response, { type: "content_block_start", index, content_block: { ...block, input: {} } });
    for (const part of JSON.stringify(block.input).match(/.{1,7}/gsu) ?? []) {
      const delta = { type: "input_json_delta", partial_json: part };
      send(response, { type: "content_block_delta", index, delta });
    }
  } else {
    send(response, { type: "content_block_start", index, content_block: block });
  }
  send(response, { type: "content_block_stop", index });
}

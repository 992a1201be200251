import type { IncomingHttpHeaders } from "node:http";
import { request } from "node:https";
import type { VaultAddress } from "../../../../services/cli/up/vault-http.ts";

/** RawReply is an answer as it came over the wire. */
export interface RawReply {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
  /** The text as JSON, or undefined. */
  // biome-ignore lint/suspicious/noExplicitAny: tests look into answers of any shape
  readonly body: any;
}

/** RawCall is what a raw call sends. */
export interface RawCall {
  readonly token?: string;
  readonly json?: unknown;
  readonly text?: string;
  readonly headers?: Record<string, string>;
}

/** rawCall sends a request exactly as written: neither path nor method is changed. */
export function rawCall(
  address: VaultAddress,
  method: string,
  path: string,
  call: RawCall = {},
): Promise<RawReply> {
  const content = call.text ?? (call.json === undefined ? undefined : JSON.stringify(call.json));
  const { hostname, port } = new URL(address.addr);
  return new Promise((resolve, reject) => {
    const message = request(
      {
        hostname,
        port,
        path,
        method,
        ca: address.caPem,
        agent: false,
        headers: {
          ...(call.token === undefined ? {} : { "x-vault-token": call.token }),
          ...(content === undefined ? {} : { "content-type": "application/json" }),
          ...call.headers,
        },
      },
      (reply) => {
        let text = "";
        reply.setEncoding("utf8");
        reply.on("data", (chunk: string) => {
          text += chunk;
        });
        reply.on("end", () =>
          resolve({ status: reply.statusCode as number, headers: reply.headers, text, body: parsed(text) }),
        );
      },
    );
    message.on("error", reject);
    message.end(content);
  });
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

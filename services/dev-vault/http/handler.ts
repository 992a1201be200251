import type { IncomingMessage, ServerResponse } from "node:http";
import type { Answer } from "../core/pipeline.ts";
import type { Vault } from "../core/vault.ts";
import { VaultError } from "../core/vault-error.ts";
import type { OpenEndpoints } from "../sys/open-endpoints.ts";
import { readBody } from "./read-body.ts";
import { readRequest } from "./read-request.ts";
import { readTarget } from "./request-path.ts";

/** createHandler answers HTTP requests with a vault; `onBug` hears of errors that should not exist. */
export function createHandler(
  vault: Vault,
  open: OpenEndpoints,
  onBug: (cause: unknown) => void,
): (message: IncomingMessage, reply: ServerResponse) => void {
  const refuse = (message: IncomingMessage, cause: unknown): Reply => {
    // A client that hangs up in the middle of its request is no bug.
    if (!(cause instanceof VaultError) && !message.destroyed) onBug(cause);
    const { status, errors } = cause instanceof VaultError ? cause : new VaultError(500, "internal error");
    return { status, body: { errors } };
  };
  return (message, reply) => {
    answer(message, vault, open)
      .catch((cause: unknown) => refuse(message, cause))
      .then((result) => send(reply, message.method, result))
      .catch((cause: unknown) => {
        onBug(cause);
        reply.destroy();
      });
  };
}

type Reply = Answer & { readonly location?: string };

async function answer(message: IncomingMessage, vault: Vault, open: OpenEndpoints): Promise<Reply> {
  const target = readTarget(message.url ?? "/");
  if (target.kind === "redirect") return { status: 307, body: undefined, location: target.location };
  if (target.kind === "unknown") throw new VaultError(404);
  const endpoint = open.find(target.path, message.method ?? "");
  const body = await readBody(message);
  if (endpoint) return endpoint(message.method === "GET" || message.method === "HEAD" ? target.query : body);
  return vault.handle(readRequest(message, target.path, target.query, body));
}

function send(reply: ServerResponse, method: string | undefined, result: Reply): void {
  if (reply.headersSent || reply.destroyed) return;
  const text = result.body === undefined ? "" : `${JSON.stringify(result.body)}\n`;
  reply.writeHead(result.status, {
    "cache-control": "no-store",
    "content-type": "application/json",
    "strict-transport-security": "max-age=31536000; includeSubDomains",
    ...(result.location === undefined ? {} : { location: result.location }),
    ...(result.status === 204 ? {} : { "content-length": Buffer.byteLength(text) }),
  });
  reply.end(method === "HEAD" ? undefined : text);
}

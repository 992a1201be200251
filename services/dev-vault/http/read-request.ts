import type { IncomingMessage } from "node:http";
import { parseDuration } from "../core/duration.ts";
import type { Operation, VaultRequest } from "../core/request.ts";
import { badRequest, VaultError } from "../core/vault-error.ts";

const OPERATIONS: Readonly<Record<string, Operation>> = {
  GET: "read",
  HEAD: "read",
  LIST: "list",
  POST: "update",
  PUT: "update",
  DELETE: "delete",
  PATCH: "patch",
};
const MERGE_PATCH = "application/merge-patch+json";

/** readRequest makes the request that the core understands. X-Vault-Request and X-Vault-Namespace change nothing. */
export function readRequest(
  message: IncomingMessage,
  path: string,
  query: Readonly<Record<string, string>>,
  body: Readonly<Record<string, unknown>>,
): Omit<VaultRequest, "id"> {
  const { list, ...parameters } = query;
  let operation = OPERATIONS[message.method ?? ""];
  if (!operation) throw new VaultError(405, "unsupported operation");
  if (operation === "patch" && message.headers["content-type"] !== MERGE_PATCH) {
    throw new VaultError(415, `PATCH requires Content-Type of ${MERGE_PATCH}`);
  }
  if (operation === "read" && (list === "true" || list === "1")) operation = "list";
  return {
    operation,
    // As in Vault, what is listed is a folder, and policies see it so: `a/*` covers listing `a`.
    path: path.replace(/\/$/, "") + (operation === "list" ? "/" : ""),
    data: operation === "update" || operation === "patch" ? body : parameters,
    token: tokenOf(message),
    wrapTtlMs: wrapTtlOf(message),
    remoteAddress: message.socket.remoteAddress ?? "",
    remotePort: message.socket.remotePort ?? 0,
  };
}

function tokenOf(message: IncomingMessage): string | undefined {
  const values = message.headersDistinct["x-vault-token"] ?? [];
  if (values.length > 1) throw badRequest("more than one X-Vault-Token header");
  if (values[0]) return values[0];
  const bearer = /^Bearer (\S+)$/i.exec(message.headers.authorization ?? "");
  return bearer?.[1];
}

function wrapTtlOf(message: IncomingMessage): number {
  const value = message.headers["x-vault-wrap-ttl"];
  if (value === undefined || value === "") return 0;
  try {
    return parseDuration(value, "X-Vault-Wrap-TTL");
  } catch {
    throw badRequest("error parsing X-Vault-Wrap-TTL header");
  }
}

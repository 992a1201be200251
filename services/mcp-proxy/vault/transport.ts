import { Agent, request } from "undici";
import { checkVaultServer } from "../../common/tls/check-vault-server.ts";
import { VaultFailure } from "./vault-failure.ts";

const TIMEOUT_MS = 4000;
const MAX_ANSWER_BYTES = 1 << 20;

/** What node-vault hands to its transport. */
interface TransportRequest {
  method: string;
  uri: string;
  headers?: Record<string, string>;
  json?: unknown;
}

/** What node-vault wants back. */
interface TransportAnswer {
  statusCode: number;
  body: unknown;
  request: { path: string };
}

/** node-vault's `request-promise` option. */
export interface Transport {
  defaults: () => (options: TransportRequest) => Promise<TransportAnswer>;
  close: () => Promise<void>;
}

/**
 * The transport under node-vault: follows no redirect (node-vault's own sends the token along, M14), knows no proxy
 * variables (A021), gives up in time (M15), verifies the server against the given authority only, and fails with a
 * VaultFailure, which holds nothing of the request.
 */
export function createTransport(caPem: string | undefined): Transport {
  const agent = new Agent({
    connect: {
      ...(caPem === undefined ? {} : { ca: caPem }),
      checkServerIdentity: checkVaultServer,
      timeout: 2000,
      maxCachedSessions: 0,
    },
    connections: 16,
    headersTimeout: TIMEOUT_MS,
    bodyTimeout: TIMEOUT_MS,
    keepAliveTimeout: 30_000,
  });
  const send = async ({ method, uri, headers, json }: TransportRequest): Promise<TransportAnswer> => {
    const url = new URL(uri);
    const body = json !== undefined && json !== true ? JSON.stringify(json) : undefined;
    const clean: Record<string, string> = { "x-vault-request": "true", accept: "application/json" };
    for (const name of ["X-Vault-Token", "X-Vault-Namespace"]) {
      const value = headers?.[name];
      if (value !== undefined) clean[name.toLowerCase()] = value;
    }
    if (body !== undefined) clean["content-type"] = headers?.["Content-Type"] ?? "application/json";
    const signal = AbortSignal.timeout(TIMEOUT_MS);
    try {
      const answer = await request(url, {
        method: method as "GET",
        headers: clean,
        ...(body === undefined ? {} : { body }),
        dispatcher: agent,
        signal,
      });
      const text = await readCapped(answer.body);
      if (answer.statusCode >= 300 && answer.statusCode < 400) {
        throw new VaultFailure("redirect", answer.statusCode);
      }
      return { statusCode: answer.statusCode, body: parse(text), request: { path: url.pathname } };
    } catch (error) {
      if (error instanceof VaultFailure) throw error;
      throw new VaultFailure(signal.aborted || isTimeout(error) ? "timeout" : "unreachable");
    }
  };
  return { defaults: () => send, close: () => agent.destroy() };
}

async function readCapped(body: AsyncIterable<Buffer>): Promise<string> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of body) {
    size += chunk.length;
    if (size > MAX_ANSWER_BYTES) throw new VaultFailure("malformed");
    chunks.push(chunk);
  }
  return Buffer.concat(chunks, size).toString("utf8");
}

function parse(text: string): unknown {
  if (text === "") return {};
  try {
    const parsed: unknown = JSON.parse(text);
    if (typeof parsed === "object" && parsed !== null) return parsed;
  } catch {
    // JSON.parse quotes its input; a page of HTML or a credential must not get any further.
  }
  throw new VaultFailure("malformed");
}

function isTimeout(error: unknown): boolean {
  const code = (error as { code?: unknown }).code;
  return (
    code === "UND_ERR_HEADERS_TIMEOUT" ||
    code === "UND_ERR_BODY_TIMEOUT" ||
    code === "UND_ERR_CONNECT_TIMEOUT"
  );
}

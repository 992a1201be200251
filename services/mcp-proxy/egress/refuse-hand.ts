import { type ServerResponse, STATUS_CODES } from "node:http";
import type { Duplex } from "node:stream";
import { GanglionError } from "../../common/errors/ganglion-error.ts";

// By code. Not 401 or 407 for a token: a program in a hand would ask its user for a password.
const BY_CODE: Record<string, number> = {
  INVALID_ARGUMENT: 400,
  UNAUTHENTICATED: 403,
  PERMISSION_DENIED: 403,
  FAILED_PRECONDITION: 403,
  NOT_FOUND: 404,
  RESOURCE_EXHAUSTED: 413,
  DEADLINE_EXCEEDED: 504,
  UNAVAILABLE: 503,
};
const BY_REASON: Record<string, number> = {
  UPSTREAM_UNREACHABLE: 502,
  UPSTREAM_MALFORMED: 502,
  GIT_REDIRECT: 502,
  RESPONSE_WITHHELD: 502,
};

interface Refusal {
  status: number;
  headers: Record<string, string>;
  body: string;
}

/** What a hand is told when something is refused: the reason, for programs in a header, and our own fixed text. */
export function refusalOf(error: unknown): Refusal {
  const known = GanglionError.is(error) ? error : undefined;
  const status = known ? (BY_REASON[known.reason] ?? BY_CODE[known.code] ?? 500) : 500;
  const body = `ganglion: ${known ? `${known.reason}: ${known.message}` : "internal error"}\n`;
  const headers: Record<string, string> = {
    "content-type": "text/plain; charset=utf-8",
    "content-length": String(Buffer.byteLength(body)),
    "cache-control": "no-store",
    "ganglion-error-domain": "ganglion.mcp-proxy",
    ...(known ? { "ganglion-reason": known.reason } : {}),
  };
  return { status, headers, body };
}

/** Answers a request with what is wrong. An answer that has begun is cut: it must not look complete. */
export function refuseRequest(response: ServerResponse, error: unknown): void {
  if (response.headersSent || response.destroyed) {
    response.destroy();
    return;
  }
  const { status, headers, body } = refusalOf(error);
  // What is left of a body that nobody wants is not read; the connection goes with it.
  if (!response.req.complete) headers.connection = "close";
  response.writeHead(status, headers).end(body);
}

/** Answers on a bare connection, and closes it. */
export function refuseSocket(socket: Duplex, error: unknown): void {
  if (socket.destroyed || !socket.writable) return void socket.destroy();
  const { status, headers, body } = refusalOf(error);
  const lines = Object.entries({ ...headers, connection: "close" }).map(
    ([name, value]) => `${name}: ${value}`,
  );
  const head = [`HTTP/1.1 ${status} ${STATUS_CODES[status] ?? "Refused"}`, ...lines].join("\r\n");
  socket.end(`${head}\r\n\r\n${body}`, () => socket.destroy());
}

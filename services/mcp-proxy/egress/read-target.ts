import type { IncomingMessage } from "node:http";
import { type Destination, parseDestination } from "../domain/canonical-url.ts";
import { proxyError } from "../domain/proxy-error.ts";

/** Where a request wants to go, or a stand-in for the record and what is wrong with it. */
export interface Target {
  destination: Destination;
  path: string;
  problem?: unknown;
}

const NOWHERE = parseDestination("https://invalid./") as Destination;
const PATH = /^\/[\x21-\x7e]*$/;

/** Reads the target of a request to a proxy: an absolute http URL (RFC 9112 §3.2.2). */
export function readAbsolute(request: IncomingMessage): Target {
  const text = request.url ?? "";
  const destination = parseDestination(text);
  if (destination?.scheme !== "http") return wrong("URL_NOT_CANONICAL");
  const { pathname, search } = new URL(text);
  return { destination, path: pathname + search, ...judgeHead(request, destination) };
}

/** Reads the target of a CONNECT: a host and a port (RFC 9110 §9.3.6). */
export function readAuthority(request: IncomingMessage): Target {
  const text = request.url ?? "";
  const match = /^(\[[0-9A-Fa-f:.]+\]|[^\s:/?#@[\]\\]+):([1-9]\d{0,4})$/.exec(text);
  const destination = match && Number(match[2]) < 65_536 ? parseDestination(`https://${text}/`) : undefined;
  if (!destination) return wrong("URL_NOT_CANONICAL");
  const hosts = request.headersDistinct.host ?? [];
  const isSame = hosts.length === 0 || (hosts.length === 1 && isHost(hosts[0], destination));
  const problem = isSame ? undefined : proxyError("HEADER_FORBIDDEN", { metadata: { header: "host" } });
  return { destination, path: "/", problem };
}

/** Reads the target of a request inside a connection that was asked for to one host: a path, and nothing else. */
export function readOrigin(request: IncomingMessage, destination: Destination): Target {
  const path = request.url ?? "";
  if (!PATH.test(path) || path.includes("#")) {
    return { destination, path: "/", problem: proxyError("URL_NOT_CANONICAL") };
  }
  return { destination, path, ...judgeHead(request, destination) };
}

/** The Host header must name what is dialled (case A001). */
function judgeHead(request: IncomingMessage, destination: Destination): { problem?: unknown } {
  const hosts = request.headersDistinct.host ?? [];
  if (hosts.length !== 1 || !isHost(hosts[0], destination)) {
    return { problem: proxyError("HEADER_FORBIDDEN", { metadata: { header: "host" } }) };
  }
  return request.method === "TRACE" ? { problem: proxyError("METHOD_NOT_ALLOWED") } : {};
}

function isHost(text: string | undefined, { scheme, origin }: Destination): boolean {
  if (!text || /[/?#@\\]/.test(text)) return false;
  return parseDestination(`${scheme}://${text}/`)?.origin === origin;
}

function wrong(reason: "URL_NOT_CANONICAL"): Target {
  return { destination: NOWHERE, path: "/", problem: proxyError(reason) };
}

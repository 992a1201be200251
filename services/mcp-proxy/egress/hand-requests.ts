import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { Duplex } from "node:stream";
import { GanglionError } from "../../common/errors/ganglion-error.ts";
import type { Logger } from "../../common/log/create-logger.ts";
import type { Destination } from "../domain/canonical-url.ts";
import { proxyError, type Reason } from "../domain/proxy-error.ts";
import { explainToHand } from "./explain-to-hand.ts";
import { type GitDoorDeps, passGit } from "./git/pass-git.ts";
import type { HandConnection } from "./hand-connection.ts";
import { intercept } from "./intercept.ts";
import { type Egress, openEgress } from "./open-egress.ts";
import { openTunnel } from "./open-tunnel.ts";
import { type PassDeps, passRequest } from "./pass-request.ts";
import { readAbsolute, readAuthority, readOrigin } from "./read-target.ts";
import { refuseRequest, refuseSocket } from "./refuse-hand.ts";
import type { SessionAuthorities } from "./session-authority.ts";
import { writeDenial } from "./write-denial.ts";

/** What serving hands needs. */
export interface HandDeps extends PassDeps, GitDoorDeps {
  authorities: SessionAuthorities;
  isDraining: () => boolean;
  log: Logger;
}

/** Speaks HTTP/1.1 with hands. */
export interface HandServer {
  /** Takes a connection whose preamble has been read. */
  take(connection: HandConnection): void;
}

/** A connection inside which requests go to one host only. */
interface Inside {
  connection: HandConnection;
  destination: Destination;
}

const UNREAD: Record<string, Reason> = {
  HPE_HEADER_OVERFLOW: "MESSAGE_TOO_LARGE",
  HPE_INVALID_URL: "URL_NOT_CANONICAL",
};
const ACCEPTED = "HTTP/1.1 200 Connection established\r\n\r\n";

/** Makes the forward proxy that hands see: http by absolute URL, https by CONNECT, and git below /git/. */
export function createHandServer(deps: HandDeps): HandServer {
  const outer = new WeakMap<Duplex, HandConnection>();
  const inside = new WeakMap<Duplex, Inside>();
  const fail = (error: unknown) => {
    if (!GanglionError.is(error)) deps.log.error({ err: error }, "egress door failed");
  };

  const serve = (
    door: string,
    connection: HandConnection,
    response: ServerResponse,
    work: () => Promise<void>,
  ) => {
    if (deps.isDraining()) return refuseRequest(response, proxyError("DRAINING"));
    const startedAt = performance.now();
    response.once("close", () => {
      const outcome = { status: response.statusCode, is_complete: response.writableFinished };
      note(deps.log, door, connection, startedAt, outcome);
    });
    work().catch((error: unknown) => {
      fail(error);
      refuseRequest(response, error);
    });
  };

  const inner = makeServer((request, response) => {
    const known = inside.get(request.socket);
    if (!known) return void response.destroy();
    const target = readOrigin(request, known.destination);
    const work = () => passRequest(deps, { request, response, ...known, ...target });
    serve("egress", known.connection, response, work);
  });
  const front = makeServer((request, response) => {
    const connection = outer.get(request.socket);
    if (!connection) return void response.destroy();
    const isGit = request.url?.startsWith("/git/") === true;
    const work = () =>
      isGit
        ? passGit(deps, { request, response, connection })
        : passRequest(deps, { request, response, connection, ...readAbsolute(request) });
    serve(isGit ? "git" : "egress", connection, response, work);
  });

  front.on("connect", (request, socket: Duplex, head: Buffer) => {
    const connection = outer.get(socket);
    socket.on("error", () => socket.destroy());
    if (!connection) return void socket.destroy();
    if (deps.isDraining()) return refuseSocket(socket, proxyError("DRAINING"));
    if (head.length > 0) socket.unshift(head);
    openWay(request, socket, connection).catch((error: unknown) => {
      fail(error);
      refuseSocket(socket, error);
    });
  });

  const openWay = async (request: IncomingMessage, socket: Duplex, connection: HandConnection) => {
    const { destination, problem } = readAuthority(request);
    const startedAt = performance.now();
    const { signal, end } = connection.begin(socket);
    let egress: Egress | undefined;
    try {
      const target = `CONNECT ${request.url}`;
      const asked = { connection, target, destination, problem, rawHeaders: [] };
      egress = await openEgress(deps, asked);
      signal.throwIfAborted();
      if (egress.variables.length === 0) {
        const accept = () => void socket.write(ACCEPTED);
        await openTunnel({ socket, destination, egress, signal, accept });
        return;
      }
      await egress.finish({ reason: "intercepted" });
      const sessionId = egress.passages[0]?.access.sessionId ?? "";
      socket.write(ACCEPTED);
      const plain = await intercept(deps.authorities, { socket, sessionId, host: destination.host });
      if (!plain) return;
      inside.set(plain, { connection, destination });
      inner.emit("connection", plain);
    } catch (error) {
      const { told, ending } = explainToHand(error, signal);
      await egress?.finish({ reason: ending }).catch(() => {});
      throw told;
    } finally {
      end();
      note(deps.log, "connect", connection, startedAt, {});
    }
  };

  // What is no HTTP at all: a header with CR or NUL in it, two lengths, a head without end (cases A023, A030).
  const onUnread = (error: NodeJS.ErrnoException, socket: Duplex) => {
    const connection = outer.get(socket) ?? inside.get(socket)?.connection;
    if (!connection || !error.code?.startsWith("HPE_")) return void socket.destroy();
    const { token, caller, callerCert } = connection;
    const problem = proxyError(UNREAD[error.code] ?? "HEADER_FORBIDDEN");
    writeDenial(deps, { token, caller, callerCert, target: "unreadable request" }, problem).then(
      (told) => refuseSocket(socket, told),
      (failure: unknown) => {
        fail(failure);
        refuseSocket(socket, failure);
      },
    );
  };
  front.on("clientError", onUnread);
  inner.on("clientError", onUnread);

  return {
    take: (connection) => {
      outer.set(connection.socket, connection);
      front.emit("connection", connection.socket);
    },
  };
}

/** One line for each request, without its target: no path and no header of a hand's is in it. */
function note(
  log: Logger,
  door: string,
  { sessionId, caller }: HandConnection,
  startedAt: number,
  outcome: Record<string, unknown>,
): void {
  const duration = Math.round((performance.now() - startedAt) * 1000) / 1000;
  log.info({ door, session_id: sessionId, peer: caller, ...outcome, dur_ms: duration }, "hand request");
}

function makeServer(listener: (request: IncomingMessage, response: ServerResponse) => void): Server {
  const options = { maxHeaderSize: 32_768, requireHostHeader: false, connectionsCheckingInterval: 2000 };
  const server = createServer(options, listener);
  server.maxHeadersCount = 200;
  server.headersTimeout = 10_000;
  // A body may be as large as it likes and take as long; a socket over which nothing comes is closed.
  server.requestTimeout = 0;
  server.keepAliveTimeout = 60_000;
  server.timeout = 600_000;
  // It never listens itself, and watches the time that heads take only from this event on.
  server.emit("listening");
  return server;
}

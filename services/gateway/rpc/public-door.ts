import {
  createSecureServer,
  type Http2SecureServer,
  type IncomingHttpHeaders,
  type OutgoingHttpHeaders,
  type ServerHttp2Session,
  type ServerHttp2Stream,
} from "node:http2";
import type { AddressInfo } from "node:net";
import type { TLSSocket } from "node:tls";
import { CODES, GanglionError } from "../../common/errors/ganglion-error.ts";
import type { Logger } from "../../common/log/create-logger.ts";
import type { Metrics } from "../../common/telemetry/metrics.ts";
import { endSpan, type Tracing } from "../../common/telemetry/tracing.ts";
import { type SpiffeId, spiffeIdOf } from "../../common/tls/spiffe-id.ts";
import type { TlsBundle } from "../../common/tls/tls-bundle.ts";
import type { Authenticator } from "../auth/authenticator.ts";
import type { Caller } from "../auth/caller.ts";
import { encodeCaller, roleOf } from "../auth/forwarded-principal.ts";
import type { StreamLimits } from "../domain/stream-limits.ts";
import type { Route, UpstreamName } from "../upstream/route-table.ts";
import { pingOrDestroy, type UpstreamConnection } from "../upstream/upstream-connection.ts";
import { statusTrailers } from "./grpc-status.ts";
import { type PassingCall, passCall, respondStatus } from "./pass-call.ts";
import { refuseOwnNames, upstreamHeaders } from "./passed-headers.ts";

/** What the public gRPC address is made of. */
export interface PublicDoorOptions {
  readonly listen: string;
  readonly tls: TlsBundle;
  readonly routes: ReadonlyMap<string, Route>;
  readonly upstreams: Readonly<Record<UpstreamName, UpstreamConnection>>;
  readonly authenticator: Authenticator;
  readonly limits: StreamLimits;
  readonly log: Logger;
  readonly metrics: Metrics;
  readonly tracing: Tracing;
}

const PING_MS = 30_000;
const HANDSHAKE_TIMEOUT_MS = 10_000;
const CODE_NAMES = new Map<number, string>(Object.entries(CODES).map(([name, code]) => [code, name]));

/** PublicDoor is the public gRPC address: it finds out who calls and passes the call to the service that owns it. */
export class PublicDoor {
  readonly #options: PublicDoorOptions;
  readonly #server: Http2SecureServer;
  readonly #active = new Set<PassingCall>();
  readonly #sessions = new Set<ServerHttp2Session>();
  #isDraining = false;

  constructor(options: PublicDoorOptions) {
    this.#options = options;
    this.#server = createSecureServer({
      ...options.tls.contextOptions(),
      // Verified if given: callers with an API key have none.
      requestCert: true,
      rejectUnauthorized: false,
      handshakeTimeout: HANDSHAKE_TIMEOUT_MS,
      settings: { maxConcurrentStreams: 1000, initialWindowSize: 1 << 20 },
      maxSessionMemory: 64,
    });
    options.tls.on("change", () => this.#server.setSecureContext(options.tls.contextOptions()));
    this.#server.on("session", (session) => this.#admit(session));
    this.#server.on("sessionError", () => {});
    this.#server.on("stream", (stream, headers) => this.#take(stream, headers));
  }

  /** Starts to listen; resolves with host:port. */
  async listen(): Promise<string> {
    const { listen } = this.#options;
    const at = listen.lastIndexOf(":");
    const host = listen.slice(0, at);
    await new Promise<void>((resolve, reject) => {
      this.#server.once("error", reject);
      this.#server.listen(Number(listen.slice(at + 1)), host.replace(/^\[|\]$/g, ""), resolve);
    });
    return `${host}:${(this.#server.address() as AddressInfo).port}`;
  }

  /** Takes no new calls, gives those under way the grace, and ends the rest with UNAVAILABLE. */
  async drain(graceMs: number): Promise<void> {
    this.#isDraining = true;
    this.#server.close();
    for (const session of this.#sessions) session.goaway();
    await Promise.race([
      Promise.all([...this.#active].map((call) => call.done)),
      new Promise((resolve) => setTimeout(resolve, graceMs)),
    ]);
    for (const call of this.#active) call.end(draining());
    for (const session of this.#sessions) session.close();
    setTimeout(() => this.force(), 200).unref();
  }

  /** Ends everything now. */
  force(): void {
    for (const session of this.#sessions) session.destroy();
  }

  #admit(session: ServerHttp2Session): void {
    const socket = session.socket as TLSSocket;
    // A certificate that is shown must be good: one of another authority is no way to be nobody.
    if (hasCertificate(socket) && !socket.authorized) {
      session.destroy();
      return;
    }
    const pings = setInterval(() => pingOrDestroy(session), PING_MS);
    pings.unref();
    this.#sessions.add(session);
    session.on("error", () => {});
    session.once("close", () => {
      clearInterval(pings);
      this.#sessions.delete(session);
    });
  }

  #take(stream: ServerHttp2Stream, headers: IncomingHttpHeaders): void {
    // A caller that leaves resets its stream: not an error of ours.
    stream.on("error", () => {});
    if (headers[":method"] !== "POST" || !headers["content-type"]?.startsWith("application/grpc")) {
      if (!stream.closed) stream.respond({ ":status": 415 }, { endStream: true });
      return;
    }
    const { tracing, log, metrics } = this.#options;
    const path = headers[":path"] ?? "";
    const route = this.#options.routes.get(path);
    const name = route ? path.slice(1) : "unknown";
    const span = tracing.startSpan(name, "server", single(headers.traceparent));
    const labels = { grpc_service: route?.service ?? "unknown", grpc_method: route?.method ?? "unknown" };
    const begun = process.hrtime.bigint();
    metrics.serverStarted.inc({ ...labels, grpc_type: "passed" });
    const finish = (code: number) => {
      const codeName = code === 0 ? "OK" : (CODE_NAMES.get(code) ?? "UNKNOWN");
      const seconds = Number(process.hrtime.bigint() - begun) / 1e9;
      metrics.serverHandled.inc({ ...labels, grpc_type: "passed", grpc_code: codeName });
      metrics.serverHandling.observe({ ...labels, grpc_type: "passed" }, seconds);
      endSpan(span, codeName);
      log.debug(
        { rpc: name, code: codeName, dur_ms: Math.round(seconds * 1000), trace_id: span.traceId },
        "call",
      );
    };
    this.#pass(stream, headers, route, span).then(finish, (error: unknown) => {
      if (!(error instanceof GanglionError))
        log.error({ err: error, trace_id: span.traceId }, "a call failed by a bug");
      const status = statusTrailers(error, span.traceId);
      respondStatus(stream, status);
      finish(Number(status["grpc-status"]));
    });
  }

  async #pass(
    stream: ServerHttp2Stream,
    headers: IncomingHttpHeaders,
    route: Route | undefined,
    span: { traceId: string; traceparent: string },
  ): Promise<number> {
    if (this.#isDraining) throw draining();
    refuseOwnNames(headers);
    const caller = route?.callers === "anybody" ? undefined : await this.#authenticate(stream, headers);
    if (!route) throw unknownMethod();
    if (route.callers !== "anybody" && !(caller && route.callers.has(roleOf(caller)))) {
      throw roleNotAllowed(caller?.role ?? "nobody");
    }
    const passed = upstreamHeaders(headers, caller && encodeCaller(caller), span.traceparent);
    const counted = route.isStream ? caller?.subject : undefined;
    if (counted !== undefined) this.#options.limits.opened(counted);
    try {
      return await this.#passTo(this.#options.upstreams[route.upstream], stream, passed, span.traceId);
    } finally {
      if (counted !== undefined) this.#options.limits.closed(counted);
    }
  }

  async #passTo(
    upstream: UpstreamConnection,
    stream: ServerHttp2Stream,
    passed: OutgoingHttpHeaders,
    traceId: string,
  ): Promise<number> {
    const session = await upstream.session();
    if (stream.destroyed) return CODES.CANCELLED;
    const call = passCall(stream, session, passed, { service: upstream.service, traceId });
    this.#active.add(call);
    const { code } = await call.done;
    this.#active.delete(call);
    return code;
  }

  #authenticate(stream: ServerHttp2Stream, headers: IncomingHttpHeaders): Promise<Caller> {
    return this.#options.authenticator.authenticate({
      authorization: headers.authorization,
      certificate: certificateOf(stream.session?.socket as TLSSocket | undefined),
    });
  }
}

function hasCertificate(socket: TLSSocket): boolean {
  return socket.getPeerCertificate().raw !== undefined;
}

function certificateOf(socket: TLSSocket | undefined): SpiffeId | undefined {
  if (!socket?.authorized) return undefined;
  const certificate = socket.getPeerCertificate();
  // A connection may outlive the certificate it was made with.
  if (certificate.raw === undefined || !(Date.parse(certificate.valid_to) > Date.now())) return undefined;
  return spiffeIdOf(certificate);
}

function single(value: string | string[] | undefined): string | undefined {
  return Array.isArray(value) ? value[0] : value;
}

function draining(): GanglionError {
  return new GanglionError({
    code: "UNAVAILABLE",
    reason: "DRAINING",
    message: "the gateway is shutting down",
  });
}

function unknownMethod(): GanglionError {
  return new GanglionError({
    code: "UNIMPLEMENTED",
    reason: "METHOD_UNKNOWN",
    message: "there is no such method",
  });
}

function roleNotAllowed(role: string): GanglionError {
  return new GanglionError({
    code: "PERMISSION_DENIED",
    reason: "ROLE_NOT_ALLOWED",
    message: `callers with role ${role} may not call this method`,
  });
}

import { type SpiffeId, spiffeIdWithDigest } from "../tls/spiffe-id.ts";
import type { AuthContext } from "./transport-types.ts";

/** What a call gives to find out who is at the other end. */
export interface PeerSource {
  getAuthContext(): AuthContext;
}

interface Known {
  id: SpiffeId | null;
  /** Epoch milliseconds at which the certificate stops counting. */
  until: number;
}

// Reading a certificate costs more than handling a small call, and it cannot change during a
// connection. Keyed by the HTTP/2 session, which dies with the connection.
const bySession = new WeakMap<object, Known>();

/**
 * The verified identity of the peer, or null when it showed none. A certificate that has expired
 * since the connection was made gives null as well.
 */
export function peerIdentity(call: PeerSource): SpiffeId | null {
  const session = sessionOf(call);
  let known = session && bySession.get(session);
  if (!known) {
    known = read(call.getAuthContext());
    if (session) bySession.set(session, known);
  }
  return known.until > Date.now() ? known.id : null;
}

function read(context: AuthContext): Known {
  const certificate = context.sslPeerCertificate;
  // grpc-js leaves this empty unless the certificate was verified.
  if (!certificate) return { id: null, until: Number.POSITIVE_INFINITY };
  const until = Date.parse(certificate.valid_to);
  return { id: spiffeIdWithDigest(certificate) ?? null, until: Number.isNaN(until) ? 0 : until };
}

// Not public in grpc-js; without it every call reads the certificate, and is right all the same.
function sessionOf(call: unknown): object | undefined {
  const stream = http2StreamOf(call);
  return typeof stream?.session === "object" && stream.session !== null ? stream.session : undefined;
}

/** The HTTP/2 stream under a grpc-js server call, when it can be had. */
export function http2StreamOf(call: unknown): { session?: object; close?(code: number): void } | undefined {
  const inner = (call as { call?: { stream?: unknown; nextCall?: { stream?: unknown } } }).call;
  const stream = inner?.stream ?? inner?.nextCall?.stream;
  return typeof stream === "object" && stream !== null ? stream : undefined;
}

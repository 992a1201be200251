import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { createServer, type TLSSocket } from "node:tls";
import { peerOf } from "../../common/tls/https-server.ts";
import type { TlsBundle } from "../../common/tls/tls-bundle.ts";
import { judgeAccess } from "../domain/access.ts";
import type { LiveSessions } from "../domain/live-sessions.ts";
import { proxyError, type Reason } from "../domain/proxy-error.ts";
import { hashSessionToken } from "../domain/session-token.ts";
import { HandConnection } from "./hand-connection.ts";
import { createHandServer, type HandDeps } from "./hand-requests.ts";
import { readPreamble } from "./read-preamble.ts";
import { writeDenial } from "./write-denial.ts";

/** An egress door that takes connections. */
export interface RunningEgressDoor {
  /** host:port. */
  address: string;
  /** Answers new requests with DRAINING from now on. */
  drain(): void;
  /** Takes no more connections and resolves when those under way have ended, or after the grace. */
  close(graceMs: number): Promise<void>;
}

/** What the door needs beside what its requests need. */
export interface EgressDoorDeps extends Omit<HandDeps, "isDraining"> {
  live: LiveSessions;
}

const MAX_CONNECTIONS = 4096;
const NO_LOOKUP = { kinds: [], urls: [], mcpServerName: "" } as const;

/**
 * Starts the egress door: TLS with client certificates, for sandbox instances. Each connection is one of a hand; its first
 * line carries the hand's token, and all that follows is the hand's.
 */
export async function serveEgressDoor(
  { tls, listen }: { tls: TlsBundle; listen: string },
  deps: EgressDoorDeps,
): Promise<RunningEgressDoor> {
  let isDraining = false;
  const hands = createHandServer({ ...deps, isDraining: () => isDraining });
  const open = new Map<TLSSocket, HandConnection | undefined>();
  const server = createServer(
    {
      ...tls.contextOptions(),
      requestCert: true,
      rejectUnauthorized: true,
      handshakeTimeout: 10_000,
      allowHalfOpen: true,
    },
    (socket) => {
      open.set(socket, undefined);
      socket.on("error", () => socket.destroy());
      socket.once("close", () => open.delete(socket));
      const take = (connection: HandConnection) => {
        open.set(socket, connection);
        hands.take(connection);
      };
      admit(deps, socket, take).catch((error: unknown) => {
        deps.log.warn({ err: error }, "a hand's connection could not be taken");
        socket.destroy();
      });
    },
  );
  server.maxConnections = MAX_CONNECTIONS;
  const onChange = () => server.setSecureContext(tls.contextOptions());
  tls.on("change", onChange);
  const colon = listen.lastIndexOf(":");
  const host = listen.slice(0, colon);
  server.listen(Number(listen.slice(colon + 1)), host.replace(/^\[|\]$/g, ""));
  await once(server, "listening");
  return {
    address: `${host}:${(server.address() as AddressInfo).port}`,
    drain: () => {
      isDraining = true;
    },
    close: async (graceMs) => {
      isDraining = true;
      tls.off("change", onChange);
      const closed = once(server, "close");
      server.close();
      for (const [socket, connection] of open) if (connection?.isIdle !== false) socket.destroy();
      const timer = setTimeout(() => {
        for (const socket of open.keys()) socket.destroy();
      }, graceMs);
      await closed;
      clearTimeout(timer);
    },
  };
}

/** Reads who a connection is for. What has no valid token is closed without a word, and written down. */
async function admit(
  deps: EgressDoorDeps,
  socket: TLSSocket,
  take: (connection: HandConnection) => void,
): Promise<void> {
  const peer = peerOf(socket);
  if (peer?.service !== "sandbox") {
    deps.log.warn({ peer: peer?.uri ?? "" }, "only sandbox instances may use the egress door");
    socket.destroy();
    return;
  }
  const token = await readPreamble(socket);
  const { reason, sessionId } = await judgeToken(deps, token, peer.uri);
  // The end of its session is told to the hand, at each request.
  if (reason && reason !== "SESSION_ENDED") {
    await writeDenial(
      deps,
      { token, caller: peer.uri, callerCert: peer.certSha256 ?? "", target: "connection" },
      proxyError(reason),
    );
    socket.destroy();
    return;
  }
  const connection = new HandConnection(socket, token ?? "", peer, deps.live);
  if (sessionId !== undefined && !reason) connection.belongTo(sessionId);
  take(connection);
}

async function judgeToken(
  { access, mac }: EgressDoorDeps,
  token: string | undefined,
  spiffeId: string,
): Promise<{ reason?: Reason | undefined; sessionId?: string }> {
  const tokenHash = hashSessionToken(token);
  const row = tokenHash && (await access.find({ ...NO_LOOKUP, tokenHash }));
  if (!row) return { reason: "TOKEN_INVALID" };
  return { reason: judgeAccess(row, { audience: "hand", spiffeId }, mac), sessionId: row.sessionId };
}

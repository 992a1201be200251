import { connect, type Socket } from "node:net";
import type { Duplex } from "node:stream";
import type { Destination } from "../domain/canonical-url.ts";
import type { ResolvedAddress } from "../domain/destination-policy.ts";
import { TUNNELLED } from "../domain/peer-facts.ts";
import { proxyError, reasonOf } from "../domain/proxy-error.ts";
import { UpstreamFailure } from "../upstream/upstream-failure.ts";
import { readClientHello } from "./client-hello.ts";
import { namesHost } from "./names-host.ts";
import type { Egress } from "./open-egress.ts";

const CONNECT_MS = 5000;
const HELLO_MS = 10_000;
const IDLE_MS = 600_000;
/** Bytes that may come back through one tunnel. */
const MAX_ANSWER_BYTES = 16 * 2 ** 30;
const WATCH_MS = 1000;
/** TLS alert "unrecognized_name", fatal. */
const WRONG_NAME = Buffer.from([21, 3, 3, 0, 2, 2, 112]);

/** A tunnel to be. */
export interface Tunnel {
  socket: Duplex;
  destination: Destination;
  egress: Egress;
  signal: AbortSignal;
  /** Says that the way is open; the client begins to speak after it. */
  accept(): void;
}

/**
 * Copies bytes between a hand and the one address that was checked, without looking into them. The first thing that is
 * said must be a TLS greeting for the very host that was asked for; before that nothing leaves.
 */
export async function openTunnel({ socket, destination, egress, signal, accept }: Tunnel): Promise<void> {
  const address = egress.lookUp.address();
  const upstream = await dial(address, destination.port, signal);
  const onAbort = () => {
    upstream.destroy();
    socket.destroy();
  };
  upstream.on("error", () => {});
  signal.addEventListener("abort", onAbort, { once: true });
  let reason = "cancelled";
  try {
    accept();
    const hello = await readHello(socket, destination.host, signal);
    const requestBytes = hello.length;
    const [passage] = egress.passages;
    await passage?.dispatch({ address, requestBytes });
    signal.throwIfAborted();
    egress.met(TUNNELLED);
    upstream.write(hello);
    // Whoever closes it then: that is how tunnels end.
    reason = "ok";
    reason = await copy(socket, upstream);
  } catch (error) {
    reason = (reasonOf(error) ?? "cancelled").toLowerCase();
    if (reasonOf(error) === "DEST_NOT_ALLOWED" && !socket.destroyed) socket.end(WRONG_NAME);
  } finally {
    signal.removeEventListener("abort", onAbort);
    upstream.destroy();
    if (socket.writableEnded) setTimeout(() => socket.destroy(), WATCH_MS).unref();
    else socket.destroy();
  }
  if (signal.aborted) reason = reasonOf(signal.reason)?.toLowerCase() ?? reason;
  await egress.finish({ reason, responseBytes: upstream.bytesRead });
}

function dial({ address }: ResolvedAddress, port: number, signal: AbortSignal): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host: address, port, allowHalfOpen: true, noDelay: true });
    const fail = () => {
      socket.destroy();
      signal.removeEventListener("abort", fail);
      reject(signal.aborted ? signal.reason : new UpstreamFailure("unreachable"));
    };
    const timer = setTimeout(fail, CONNECT_MS);
    signal.addEventListener("abort", fail, { once: true });
    socket.once("error", fail);
    socket.once("close", () => clearTimeout(timer));
    socket.once("connect", () => {
      clearTimeout(timer);
      socket.off("error", fail);
      signal.removeEventListener("abort", fail);
      resolve(socket);
    });
  });
}

/** The client's first bytes, once they are a whole greeting for that host. */
async function readHello(socket: Duplex, host: string, signal: AbortSignal): Promise<Buffer> {
  let bytes = Buffer.alloc(0);
  const timer = setTimeout(() => socket.destroy(), HELLO_MS);
  try {
    for (;;) {
      const hello = bytes.length === 0 ? ({ kind: "partial" } as const) : readClientHello(bytes);
      if (hello.kind === "invalid") throw proxyError("DEST_NOT_ALLOWED");
      if (hello.kind === "hello") {
        if (!namesHost(hello.serverName, host)) throw proxyError("DEST_NOT_ALLOWED");
        return bytes;
      }
      bytes = Buffer.concat([bytes, await nextChunk(socket, signal)]);
    }
  } finally {
    clearTimeout(timer);
  }
}

function nextChunk(socket: Duplex, signal: AbortSignal): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const stop = () => {
      socket.off("readable", onReadable).off("close", onEnd).off("end", onEnd);
      signal.removeEventListener("abort", onEnd);
    };
    const onEnd = () => {
      stop();
      reject(new UpstreamFailure("cancelled"));
    };
    const onReadable = () => {
      const chunk = socket.read() as Buffer | null;
      if (chunk === null) return;
      stop();
      resolve(chunk);
    };
    socket.on("readable", onReadable).once("close", onEnd).once("end", onEnd);
    signal.addEventListener("abort", onEnd, { once: true });
    onReadable();
  });
}

/** Copies both ways, each at the pace of its reader; either end may finish writing first. Answers how it ended. */
function copy(socket: Duplex, upstream: Socket): Promise<string> {
  return new Promise((resolve) => {
    let reason = "ok";
    const watch = setInterval(() => {
      if (upstream.bytesRead <= MAX_ANSWER_BYTES) return;
      reason = "too_large";
      upstream.destroy();
    }, WATCH_MS);
    upstream.setTimeout(IDLE_MS, () => {
      reason = "timeout";
      upstream.destroy();
    });
    socket.once("close", () => upstream.destroy());
    upstream.once("close", () => {
      clearInterval(watch);
      socket.end();
      resolve(reason);
    });
    socket.pipe(upstream);
    upstream.pipe(socket);
  });
}

import { type ClientHttp2Session, connect } from "node:http2";
import { connect as connectTls } from "node:tls";
import { GanglionError } from "../../common/errors/ganglion-error.ts";
import { expectService } from "../../common/tls/check-server.ts";
import type { TlsBundle } from "../../common/tls/tls-bundle.ts";

const CONNECT_TIMEOUT_MS = 5000;
const PING_MS = 30_000;
const PING_PATIENCE_MS = 10_000;
const STREAM_WINDOW_BYTES = 1 << 20;
const SESSION_WINDOW_BYTES = 16 << 20;

/**
 * UpstreamConnection keeps one HTTP/2 connection to a part of the mesh and makes a new one when it is gone, when the
 * other side says that it will be, and when our certificate was renewed. Calls under way stay where they are.
 */
export class UpstreamConnection {
  readonly service: string;
  readonly #addresses: readonly string[];
  readonly #tls: TlsBundle;
  #current: Promise<ClientHttp2Session> | undefined;
  #next = 0;

  constructor(service: string, addresses: readonly string[], tls: TlsBundle) {
    this.service = service;
    this.#addresses = addresses;
    this.#tls = tls;
    tls.on("change", () => this.#retire());
  }

  /** A connection that takes calls; UNAVAILABLE when no address answers. */
  session(): Promise<ClientHttp2Session> {
    this.#current ??= this.#dialAny();
    return this.#current;
  }

  /** Takes no more calls; those under way go on. */
  close(): void {
    this.#retire();
  }

  #retire(retired = this.#current): void {
    if (!retired) return;
    if (this.#current === retired) this.#current = undefined;
    retired.then(
      (one) => one.close(),
      () => {},
    );
  }

  async #dialAny(): Promise<ClientHttp2Session> {
    let failure: unknown;
    for (let tries = 0; tries < this.#addresses.length; tries += 1) {
      const address = this.#addresses[(this.#next + tries) % this.#addresses.length] as string;
      try {
        const session = await this.#dial(address);
        this.#next += tries;
        return session;
      } catch (error) {
        failure = error;
      }
    }
    this.#current = undefined;
    throw new GanglionError({
      code: "UNAVAILABLE",
      reason: "UNREACHABLE",
      message: `${this.service} cannot be reached`,
      domain: `ganglion.${this.service}`,
      retryAfterMs: 500,
      cause: failure,
    });
  }

  async #dial(address: string): Promise<ClientHttp2Session> {
    const at = address.lastIndexOf(":");
    const socket = connectTls({
      host: address.slice(0, at),
      port: Number(address.slice(at + 1)),
      secureContext: this.#tls.secureContext(),
      checkServerIdentity: expectService(this.service),
      ALPNProtocols: ["h2"],
    });
    const session = connect(`https://${address}`, {
      createConnection: () => socket,
      settings: { initialWindowSize: STREAM_WINDOW_BYTES, enablePush: false },
      maxSessionMemory: 256,
    });
    await new Promise<void>((resolve, reject) => {
      const timer = setTimeout(() => session.destroy(new Error("no connection in time")), CONNECT_TIMEOUT_MS);
      session.once("connect", () => {
        clearTimeout(timer);
        resolve();
      });
      session.once("error", reject);
      session.once("close", () => {
        clearTimeout(timer);
        reject(new Error("closed while connecting"));
      });
    });
    session.setLocalWindowSize(SESSION_WINDOW_BYTES);
    this.#watch(session);
    return session;
  }

  #watch(session: ClientHttp2Session): void {
    const mine = this.#current;
    const drop = () => {
      clearInterval(pings);
      this.#retire(mine);
    };
    const pings = setInterval(() => pingOrDestroy(session), PING_MS);
    pings.unref();
    session.on("error", () => {});
    session.once("goaway", drop);
    session.once("close", drop);
  }
}

/** pingOrDestroy ends a connection whose other end has vanished without a word. [B130] */
export function pingOrDestroy(
  session: Pick<ClientHttp2Session, "ping" | "destroy" | "destroyed" | "closed">,
): void {
  if (session.destroyed || session.closed) return;
  const timer = setTimeout(() => session.destroy(), PING_PATIENCE_MS);
  timer.unref();
  session.ping(() => clearTimeout(timer));
}

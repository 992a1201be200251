import type { EventEmitter } from "node:events";
import type { Duplex } from "node:stream";
import type { SpiffeId } from "../../common/tls/spiffe-id.ts";
import type { LiveSessions } from "../domain/live-sessions.ts";
import { proxyError, type Reason } from "../domain/proxy-error.ts";
import { UpstreamFailure } from "../upstream/upstream-failure.ts";

/** What was cut is given this long to write its outcome and to say why. */
const GRACE_MS = 500;

type Peer = Pick<SpiffeId, "uri" | "certSha256">;

/** One connection of a hand: whose it is, and everything that runs over it. */
export class HandConnection {
  readonly token: string;
  /** SPIFFE id of the sandbox instance that carries it. */
  readonly caller: string;
  /** SHA-256 of that instance's certificate. */
  readonly callerCert: string;
  readonly socket: Duplex;
  /** The hand's session, once that is known. */
  sessionId = "";
  readonly #live: LiveSessions;
  readonly #running = new Set<AbortController>();
  #unregister: (() => void) | undefined;
  #cutBecause: Reason | undefined;

  constructor(socket: Duplex, token: string, peer: Peer, live: LiveSessions) {
    this.socket = socket;
    this.token = token;
    this.caller = peer.uri;
    this.callerCert = peer.certSha256 ?? "";
    this.#live = live;
    socket.once("close", () => this.#unregister?.());
  }

  /** Ends with that session from now on, whether something runs or not. */
  belongTo(sessionId: string): void {
    this.sessionId = sessionId;
    if (this.#unregister || this.socket.destroyed) return;
    const cut = (reason: Reason) => this.cut(reason);
    this.#unregister = this.#live.add({ sessionId, epoch: 0n, endsWith: "session", cut });
  }

  /** Nothing runs over it now. */
  get isIdle(): boolean {
    return this.#running.size === 0;
  }

  /** Begins something that a cut ends, and that is over when `asker` closes; call `end` when it is done. */
  begin(asker: EventEmitter): { signal: AbortSignal; end: () => void } {
    const abort = new AbortController();
    const onClose = () => abort.abort(new UpstreamFailure("cancelled"));
    asker.once("close", onClose);
    this.#running.add(abort);
    if (this.#cutBecause) abort.abort(proxyError(this.#cutBecause));
    const end = () => {
      asker.off("close", onClose);
      this.#running.delete(abort);
    };
    return { signal: abort.signal, end };
  }

  /** Ends what runs, then the connection. */
  cut(reason: Reason): void {
    if (this.#cutBecause) return;
    this.#cutBecause = reason;
    for (const abort of [...this.#running]) abort.abort(proxyError(reason));
    if (this.#running.size === 0) this.socket.destroy();
    else setTimeout(() => this.socket.destroy(), GRACE_MS).unref();
  }
}

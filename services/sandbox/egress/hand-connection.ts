import type { Socket } from "node:net";
import type { TLSSocket } from "node:tls";
import { GanglionError } from "../../common/errors/ganglion-error.ts";
import type { HandToken } from "./hand-token.ts";
import type { ProxyDialer } from "./proxy-dialer.ts";
import { refuse } from "./refuse.ts";

// A program that is done writing waits for an answer, or is gone; the two look the same.
const HALF_CLOSED_MS = 30_000;

/** HandConnection carries one connection of a hand to the proxy's egress door and back. */
export class HandConnection {
  /** Resolves when both ends are closed; never rejects. */
  readonly ended: Promise<void>;
  readonly #client: Socket;
  readonly #token: HandToken;
  readonly #gone = new AbortController();

  constructor(client: Socket, dialer: ProxyDialer, token: HandToken, idleMs: number) {
    this.#client = client;
    this.#token = token;
    client.once("close", () => this.#gone.abort());
    // Whatever passes, passes this end.
    client.setTimeout(idleMs, () => client.destroy());
    client.once("end", () => client.setTimeout(Math.min(idleMs, HALF_CLOSED_MS)));
    const closed = new Promise<void>((resolve) => client.once("close", () => resolve()));
    this.ended = this.#carry(dialer).then(() => closed);
  }

  async #carry(dialer: ProxyDialer): Promise<void> {
    const client = this.#client;
    try {
      const [token, upstream] = await both(this.#token.get(), dialer.dial(this.#gone.signal));
      upstream.on("error", () => client.destroy());
      if (client.destroyed) return void upstream.destroy();
      // The hand's bytes come after this line, whatever they are: it cannot speak for another hand.
      upstream.write(`GANGLION/1 ${token}\r\n`);
      await this.#copy(upstream);
    } catch (error) {
      const isOver = GanglionError.is(error, "SESSION_ENDED");
      refuse(client, isOver ? "the session has ended" : "mcp-proxy cannot be reached");
    }
  }

  /** Copies both ways, each at the pace of its reader; either end may finish writing first. */
  #copy(upstream: TLSSocket): Promise<void> {
    const client = this.#client;
    let wasHeard = false;
    client.pipe(upstream);
    upstream.pipe(client);
    upstream.once("data", () => {
      wasHeard = true;
    });
    // A door that closes without a word did not know the token.
    const onSilence = () => {
      if (!wasHeard) this.#token.refused();
    };
    upstream.once("end", onSilence);
    upstream.once("error", onSilence);
    client.once("close", () => upstream.destroy());
    return new Promise((resolve) => {
      upstream.once("close", (hadError) => {
        if (hadError) client.destroy();
        else client.destroySoon();
        resolve();
      });
    });
  }
}

/** Both, or a failure; a connection that comes after the failure of the other is closed. */
async function both(token: Promise<string>, dialed: Promise<TLSSocket>): Promise<[string, TLSSocket]> {
  try {
    return await Promise.all([token, dialed]);
  } catch (error) {
    dialed.then((socket) => socket.destroy()).catch(() => undefined);
    throw error;
  }
}

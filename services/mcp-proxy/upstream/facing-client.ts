import { createHash } from "node:crypto";
import type { Socket } from "node:net";
import { TLSSocket } from "node:tls";
import { type buildConnector, Client, type Dispatcher } from "undici";
import { type MeetPeer, NO_TLS, type PeerFacts } from "../domain/peer-facts.ts";

/** How a request of ours asks to be told over which connection it goes. */
export interface Met {
  met: MeetPeer;
}

/**
 * One connection of a pool. It tells each request that asks what is at the other end, when the request is about to be written:
 * whether the connection is new or was there before, that is the one which is used.
 */
export class FacingClient extends Client {
  readonly #peer: { facts: PeerFacts | undefined };

  constructor(origin: URL, options: Client.Options & { connect: buildConnector.connector }) {
    const peer: { facts: PeerFacts | undefined } = { facts: undefined };
    const connect: buildConnector.connector = (target, callback) =>
      options.connect(target, (...result) => {
        const [, socket] = result;
        peer.facts = socket ? factsOf(socket) : undefined;
        callback(...result);
      });
    super(origin, { ...options, connect });
    this.#peer = peer;
  }

  override dispatch(
    options: Dispatcher.DispatchOptions & Partial<Met>,
    handler: Dispatcher.DispatchHandler,
  ): boolean {
    const { met } = options;
    return super.dispatch(options, met ? this.#telling(handler, met) : handler);
  }

  #telling(handler: Dispatcher.DispatchHandler, met: MeetPeer): Dispatcher.DispatchHandler {
    return {
      onRequestStart: (...args) => {
        if (this.#peer.facts) met(this.#peer.facts);
        handler.onRequestStart?.(...args);
      },
      onRequestUpgrade: (...args) => handler.onRequestUpgrade?.(...args),
      onResponseStart: (...args) => handler.onResponseStart?.(...args),
      onResponseData: (...args) => handler.onResponseData?.(...args),
      onResponseEnd: (...args) => handler.onResponseEnd?.(...args),
      onResponseError: (...args) => handler.onResponseError?.(...args),
    };
  }
}

function factsOf(socket: Socket | TLSSocket): PeerFacts {
  if (!(socket instanceof TLSSocket)) return NO_TLS;
  const spki = socket.getPeerX509Certificate()?.publicKey.export({ format: "der", type: "spki" });
  return {
    tlsVersion: socket.getProtocol() ?? "",
    spkiSha256: spki ? createHash("sha256").update(spki).digest("hex") : "",
  };
}

import { chmodSync, closeSync, constants, openSync } from "node:fs";
import { createServer, type Server, type Socket } from "node:net";
import type { OpenDoor } from "../domain/way-out.ts";
import { HandConnection } from "./hand-connection.ts";
import type { HandToken } from "./hand-token.ts";
import type { ProxyDialer } from "./proxy-dialer.ts";
import { refuse } from "./refuse.ts";

const SOCKET = "egress.sock";

/** Bounds of the doors of this host. */
export type DoorLimits = {
  /** Connections of one hand at a time. */
  perHand: number;
  /** Connections of all hands at a time: each holds two descriptors of this process. */
  total: number;
  /** A connection over which nothing came for so long is closed. */
  idleMs: number;
};

/** What the doors of a host share. */
export type DoorParts = {
  dialer: ProxyDialer;
  limits: DoorLimits;
  /** Connections that are open now, over all hands. */
  open: { count: number };
};

/**
 * HandDoor is the host's end of one hand's socket. Whoever connects to it is that hand: the socket is in the hand's
 * own folder and nowhere else, so the identity of a hand is the socket it was born with.
 */
export class HandDoor implements OpenDoor {
  readonly #parts: DoorParts;
  readonly #token: HandToken;
  readonly #server: Server;
  readonly #clients = new Set<Socket>();
  #carried = 0;
  #closed: Promise<void> | undefined;

  private constructor(parts: DoorParts, token: HandToken) {
    this.#parts = parts;
    this.#token = token;
    this.#server = createServer({ allowHalfOpen: true }, (client) => this.#accept(client));
    // Those between the limit and this are told why; beyond it nothing is said.
    this.#server.maxConnections = parts.limits.perHand * 2;
  }

  /** open makes the socket in a folder. */
  static async open(folder: string, parts: DoorParts, token: HandToken): Promise<HandDoor> {
    const door = new HandDoor(parts, token);
    // A socket's path may have 107 bytes and no more; by descriptor every folder is near. It stays open as long as
    // the server, which removes its socket by the same path.
    const fd = openSync(folder, constants.O_RDONLY | constants.O_DIRECTORY);
    const path = `/proc/self/fd/${fd}/${SOCKET}`;
    try {
      await listen(door.#server, path);
      // The hand has another user id; who can reach the path is the folder's business.
      chmodSync(path, 0o666);
    } catch (error) {
      closeSync(fd);
      throw error;
    }
    door.#server.once("close", () => closeSync(fd));
    // Accepting fails when this process is out of descriptors; the next one may do.
    door.#server.on("error", () => undefined);
    return door;
  }

  close(): Promise<void> {
    this.#closed ??= new Promise((resolve) => {
      this.#server.close(() => resolve());
      for (const client of this.#clients) client.destroy();
    });
    return this.#closed;
  }

  #accept(client: Socket): void {
    const { limits, open } = this.#parts;
    client.on("error", () => undefined);
    if (this.#closed !== undefined) {
      client.destroy();
      return;
    }
    this.#clients.add(client);
    client.once("close", () => this.#clients.delete(client));
    if (this.#carried >= limits.perHand || open.count >= limits.total) {
      refuse(client, "too many connections are open");
      return;
    }
    const connection = new HandConnection(client, this.#parts.dialer, this.#token, limits.idleMs);
    this.#carried += 1;
    open.count += 1;
    void connection.ended.then(() => {
      this.#carried -= 1;
      open.count -= 1;
    });
  }
}

function listen(server: Server, path: string): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen({ path }, () => {
      server.removeListener("error", reject);
      resolve();
    });
  });
}

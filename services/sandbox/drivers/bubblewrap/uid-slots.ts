import { createServer, type Server } from "node:net";
import type { SubIds } from "./sub-ids.ts";

/** A host identity that exactly one living hand has. */
export type UidSlot = { uid: number; gid: number; release: () => Promise<void> };

/**
 * UidSlots gives each hand a host user id of its own. A slot is held by listening on an abstract socket named after
 * the id, which the kernel frees when this process dies: two meshes that share a range never share an id.
 */
export class UidSlots {
  readonly #ids: SubIds;
  readonly #held = new Set<number>();
  #next = 0;

  constructor(ids: SubIds) {
    this.#ids = ids;
  }

  /** Number of ids there are. */
  get size(): number {
    return Math.min(this.#ids.uids.count, this.#ids.gids.count);
  }

  /** take claims a free id; undefined when all are taken. */
  async take(): Promise<UidSlot | undefined> {
    for (let tried = 0; tried < this.size; tried += 1) {
      const index = this.#next % this.size;
      this.#next += 1;
      if (this.#held.has(index)) continue;
      this.#held.add(index);
      const uid = this.#ids.uids.first + index;
      const server = await listen(`\0ganglion-hand-uid-${uid}`);
      if (!server) {
        this.#held.delete(index);
        continue;
      }
      const release = async () => {
        await new Promise((resolve) => server.close(resolve));
        this.#held.delete(index);
      };
      return { uid, gid: this.#ids.gids.first + index, release };
    }
    return undefined;
  }
}

function listen(name: string): Promise<Server | undefined> {
  return new Promise((resolve) => {
    const server = createServer((socket) => socket.destroy());
    server.once("error", () => resolve(undefined));
    server.listen({ path: name }, () => {
      server.unref();
      resolve(server);
    });
  });
}

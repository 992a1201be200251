import { EventEmitter, once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { setTimeout as pause } from "node:timers/promises";

/** `up` is what the client sends, `down` what it receives. */
export type Direction = "up" | "down";

/** A TCP proxy whose connections can be harmed. */
export interface CutProxy {
  readonly host: string;
  readonly port: number;
  /** Connections that are open now. */
  readonly open: number;
  /** Bytes passed on so far, per direction. */
  readonly bytes: Readonly<Record<Direction, number>>;
  /** Breaks all connections: `rst` (default) resets them, `fin` ends them in good order. */
  cut(how?: "rst" | "fin"): void;
  /** Breaks the next connections by itself once `bytes` bytes went in that direction; each is cut at that very byte. */
  cutAfter(direction: Direction, bytes: number, how?: "rst" | "fin"): void;
  /** Swallows what goes in that direction (both by default) and keeps connections open: a network that drops packets. */
  blackHole(direction?: Direction): void;
  /** Holds each chunk back for that long, in that direction (both by default). */
  delay(ms: number, direction?: Direction): void;
  /** Refuses new connections (they are reset at once); open ones stay. */
  refuse(): void;
  /** Back to passing everything on; what a black hole swallowed stays lost. */
  heal(): void;
  /** Resolves when the next connection arrives. */
  nextConnection(): Promise<void>;
  /** Resolves when the black hole swallows something next: only from then on is it known to have been sent and lost. */
  nextLoss(): Promise<void>;
  close(): Promise<void>;
}

interface Rules {
  blackHole: Set<Direction>;
  delayMs: Record<Direction, number>;
  refuses: boolean;
  limit: { direction: Direction; bytes: number; how: "rst" | "fin" } | undefined;
}

const DIRECTIONS: readonly Direction[] = ["up", "down"];

/** startCutProxy listens on a free loopback port and passes connections on to `target`. */
export async function startCutProxy(target: { host: string; port: number }): Promise<CutProxy> {
  const rules: Rules = {
    blackHole: new Set(),
    delayMs: { up: 0, down: 0 },
    refuses: false,
    limit: undefined,
  };
  const pairs = new Set<readonly [Socket, Socket]>();
  const bytes = { up: 0, down: 0 };
  const losses = new EventEmitter();
  const server = createServer((client) => {
    if (rules.refuses) return void client.resetAndDestroy();
    const upstream = connect(target);
    const pair = [client, upstream] as const;
    pairs.add(pair);
    for (const socket of pair) {
      socket.setNoDelay(true);
      socket.on("error", () => {});
      socket.once("close", () => {
        pairs.delete(pair);
        for (const other of pair) other.destroy();
      });
    }
    void pump(client, upstream, "up", rules, bytes, losses);
    void pump(upstream, client, "down", rules, bytes, losses);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const each = (direction: Direction | undefined) => (direction ? [direction] : DIRECTIONS);
  return {
    host: "127.0.0.1",
    port: (server.address() as AddressInfo).port,
    get open() {
      return pairs.size;
    },
    bytes,
    cut: (how = "rst") => {
      for (const pair of pairs) breakPair(pair, how);
    },
    cutAfter: (direction, limit, how = "rst") => {
      rules.limit = { direction, bytes: limit, how };
    },
    blackHole: (direction) => {
      for (const one of each(direction)) rules.blackHole.add(one);
    },
    delay: (ms, direction) => {
      for (const one of each(direction)) rules.delayMs[one] = ms;
    },
    refuse: () => {
      rules.refuses = true;
    },
    heal: () =>
      Object.assign(rules, {
        blackHole: new Set(),
        delayMs: { up: 0, down: 0 },
        refuses: false,
        limit: undefined,
      }),
    nextConnection: async () => void (await once(server, "connection")),
    nextLoss: async () => void (await once(losses, "loss")),
    close: async () => {
      server.close();
      for (const pair of pairs) breakPair(pair, "rst");
      await once(server, "close");
    },
  };
}

async function pump(
  from: Socket,
  to: Socket,
  direction: Direction,
  rules: Rules,
  bytes: Record<Direction, number>,
  losses: EventEmitter,
) {
  // The limit that holds when the connection opens is its own: a later rule is for later connections.
  const { limit } = rules;
  let left = limit?.direction === direction ? limit.bytes : Number.POSITIVE_INFINITY;
  try {
    for await (const chunk of from as AsyncIterable<Buffer>) {
      if (rules.blackHole.has(direction)) {
        losses.emit("loss");
        continue;
      }
      if (rules.delayMs[direction] > 0) await pause(rules.delayMs[direction]);
      const part = chunk.subarray(0, Math.min(left, chunk.length));
      left -= part.length;
      bytes[direction] += part.length;
      if (part.length > 0 && !to.write(part)) await once(to, "drain");
      if (left > 0) continue;
      await new Promise<void>((resolve) => to.write("", () => resolve()));
      return breakPair([from, to], limit?.how ?? "rst");
    }
    // In a black hole the end of a connection is swallowed like everything else.
    if (!rules.blackHole.has(direction)) to.end();
  } catch {
    // The connection broke, by a rule or by itself: its close handler clears up.
  }
}

function breakPair([client, upstream]: readonly [Socket, Socket], how: "rst" | "fin"): void {
  for (const socket of [client, upstream]) {
    if (how === "rst") socket.resetAndDestroy();
    else socket.end();
  }
}

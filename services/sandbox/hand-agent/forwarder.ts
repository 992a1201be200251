import { connect, createServer, type Socket } from "node:net";
import { EGRESS_PORT, EGRESS_SOCKET } from "./protocol.ts";

/**
 * startForwarder listens on the hand's own loopback and passes each connection on to the hand's socket, so that
 * ordinary programs find the way out through their proxy variables. Resolves when it listens.
 */
export function startForwarder(
  maxConnections: number,
  places = { port: EGRESS_PORT, socket: EGRESS_SOCKET },
): Promise<void> {
  const server = createServer({ allowHalfOpen: true }, (client) => {
    join(client, connect({ path: places.socket, allowHalfOpen: true }));
  });
  // What is over the limit is closed at once.
  server.maxConnections = maxConnections;
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen(places.port, "127.0.0.1", () => {
      // Accepting can fail when the hand is full; that ends a connection and never the agent.
      server.on("error", () => undefined);
      resolve();
    });
  });
}

/** Copies both ways, each at the pace of its reader; either end may finish writing first. */
function join(client: Socket, door: Socket): void {
  client.pipe(door);
  door.pipe(client);
  client.on("error", () => door.destroy());
  door.on("error", () => client.destroy());
  client.on("close", () => door.destroy());
  door.on("close", (hadError) => {
    // Without an error its last bytes are still on their way to the client.
    if (hadError) client.destroy();
  });
}

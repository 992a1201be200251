import { subscribe } from "node:diagnostics_channel";
import { Socket } from "node:net";

const sockets = new Set<Socket>();
let cutUntil = 0;

/** watchSockets makes this process know all its connections. Pipes to children are none. Call it before anything dials. */
export function watchSockets(): void {
  const connect = Socket.prototype.connect;
  Socket.prototype.connect = function (this: Socket, ...args: unknown[]): Socket {
    keep(this);
    return Reflect.apply(connect, this, args) as Socket;
  } as typeof connect;
  subscribe("net.server.socket", (message) => keep((message as { socket: Socket }).socket));
}

/** cutNetwork breaks every connection of this process, without a goodbye, and lets no new one come about for a while. */
export function cutNetwork(forMs: number): void {
  cutUntil = Date.now() + forMs;
  for (const socket of [...sockets]) breakOff(socket);
}

function keep(socket: Socket): void {
  sockets.add(socket);
  socket.once("close", () => sockets.delete(socket));
  // Not before the one who dials has put its listeners on it.
  if (Date.now() < cutUntil) setImmediate(breakOff, socket);
}

function breakOff(socket: Socket): void {
  const error: NodeJS.ErrnoException = new Error("read ECONNRESET");
  error.code = "ECONNRESET";
  // Who listens for errors is told of one, as by a real reset; elsewhere an error would be uncaught.
  if (socket.listenerCount("error") > 0) socket.destroy(error);
  else socket.destroy();
}

import { once } from "node:events";
import type { Server } from "node:http";
import type { AddressInfo } from "node:net";

/** listenOnLoopback listens on `host:port` of GANGLION_LISTEN, which must be loopback, and returns the address in use. */
export async function listenOnLoopback(
  server: Server,
  listen = process.env.GANGLION_LISTEN,
): Promise<string> {
  const [, host, port] = /^(127\.0\.0\.1|localhost):(\d{1,5})$/.exec(listen ?? "") ?? [];
  if (!host) throw new Error("GANGLION_LISTEN must be 127.0.0.1:<port>");
  server.listen(Number(port), "127.0.0.1");
  await once(server, "listening");
  return `127.0.0.1:${(server.address() as AddressInfo).port}`;
}

import type { Socket } from "node:net";

// Whoever is refused may still be sending: closed under its hands, its end fails before it has read why.
const LINGER_MS = 2_000;

/**
 * refuse answers a hand's connection as an HTTP proxy does that cannot serve, and closes it: when the hand has closed its
 * end, and soon in any case.
 */
export function refuse(client: Socket, why: string): void {
  const body = `ganglion: ${why}\n`;
  const head = [
    "HTTP/1.1 503 Service Unavailable",
    "content-type: text/plain",
    `content-length: ${Buffer.byteLength(body)}`,
    "connection: close",
  ];
  // What the hand still sends is read and dropped, so that the answer is not lost to a reset.
  client.resume();
  client.end(`${head.join("\r\n")}\r\n\r\n${body}`);
  const linger = setTimeout(() => client.destroy(), LINGER_MS);
  client.once("close", () => clearTimeout(linger));
}

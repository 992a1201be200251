import type { Socket } from "node:net";

/** refuse answers a hand's connection as an HTTP proxy does that cannot serve, and closes it. */
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
  client.end(`${head.join("\r\n")}\r\n\r\n${body}`, () => client.destroySoon());
}

import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { connect, createServer, type Server, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { refuse } from "../../../services/sandbox/egress/refuse.ts";

describe("a hand's connection that is refused", () => {
  let folder: string;
  let server: Server;
  const path = () => join(folder, "socket");

  before(async () => {
    folder = mkdtempSync(join(tmpdir(), "ganglion-refusal-"));
    server = createServer({ allowHalfOpen: true });
    server.listen(path());
    await once(server, "listening");
  });
  after(() => {
    server.close();
    rmSync(folder, { recursive: true });
  });

  /** A client that has not read, and the server's end, refused, its answer sent. */
  async function refused(): Promise<[Socket, Socket]> {
    const accepted = once(server, "connection");
    const client = connect({ path: path(), allowHalfOpen: true });
    const [served]: Socket[] = await accepted;
    assert.ok(served);
    const sent = once(served, "finish");
    refuse(served, "not now");
    await sent;
    return [client, served];
  }

  it("is told why, though it sends its request after the answer is there", async () => {
    const [client, served] = await refused();
    const closed = once(served, "close");
    // A socket that is closed fails these, and what is unread is lost with it.
    for (let i = 0; i < 4; i += 1) {
      await new Promise<void>((resolve, reject) => {
        client.write(Buffer.alloc(64 * 1024), (error) => (error ? reject(error) : resolve()));
      });
    }
    client.end();
    assert.match(await text(client), /^HTTP\/1\.1 503 [\s\S]*\r\n\r\nganglion: not now\n$/);
    await closed;
  });

  it("is closed soon when it stays open", async () => {
    const [client, served] = await refused();
    await once(served, "close");
    client.destroy();
  });
});

import assert from "node:assert/strict";
import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";
import { type CutProxy, startCutProxy } from "../../fakes/cut-proxy.ts";

describe("cut proxy", () => {
  let echo: Server;
  let proxy: CutProxy;

  beforeEach(async () => {
    echo = createServer({ allowHalfOpen: false }, (socket) => {
      socket.on("error", () => {});
      socket.pipe(socket);
    }).listen(0, "127.0.0.1");
    await once(echo, "listening");
    proxy = await startCutProxy({ host: "127.0.0.1", port: (echo.address() as AddressInfo).port });
  });
  afterEach(async () => {
    await proxy.close();
    echo.close();
  });

  const open = async (): Promise<Socket> => {
    const socket = connect(proxy.port, proxy.host);
    socket.on("error", () => {});
    await once(socket, "connect");
    return socket;
  };
  const roundTrip = async (socket: Socket, text: string) => {
    socket.write(text);
    const [answer] = await once(socket, "data");
    assert.equal(String(answer), text);
  };

  it("passes bytes on and counts them", async () => {
    const socket = await open();
    await roundTrip(socket, "hello");
    assert.deepEqual(proxy.bytes, { up: 5, down: 5 });
    assert.equal(proxy.open, 1);
    socket.end();
    await once(socket, "close");
  });

  it("cuts open connections, by reset or in good order", async () => {
    const reset = await open();
    await roundTrip(reset, "a");
    proxy.cut();
    await assert.rejects(once(reset, "end"), { code: "ECONNRESET" });
    const ended = await open();
    await roundTrip(ended, "b");
    proxy.cut("fin");
    await once(ended, "end");
  });

  it("cuts at a byte", async () => {
    proxy.cutAfter("down", 7, "fin");
    const socket = await open();
    let received = "";
    socket.on("data", (chunk) => {
      received += chunk;
    });
    socket.write("0123456789");
    await once(socket, "close");
    assert.equal(received, "0123456");
  });

  it("swallows one direction and keeps the connection open, until it heals", async () => {
    const socket = await open();
    proxy.blackHole("down");
    const lost = proxy.nextLoss();
    socket.write("lost");
    await lost;
    proxy.heal();
    assert.equal(socket.destroyed, false);
    await roundTrip(socket, "again");
  });

  it("holds bytes back", async () => {
    const socket = await open();
    proxy.delay(150, "up");
    const started = performance.now();
    await roundTrip(socket, "late");
    assert.ok(performance.now() - started >= 145);
  });

  it("refuses new connections and keeps open ones", async () => {
    const socket = await open();
    await roundTrip(socket, "before");
    proxy.refuse();
    const refused = connect(proxy.port, proxy.host);
    const [error] = await once(refused, "error");
    assert.equal((error as NodeJS.ErrnoException).code, "ECONNRESET");
    await roundTrip(socket, "after");
  });
});

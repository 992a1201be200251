import assert from "node:assert/strict";
import { GanglionError } from "../../../services/common/errors/ganglion-error.ts";
import { serverStream, unary } from "../../../services/common/grpc/handlers.ts";
import type { RunningServer } from "../../../services/common/grpc/start-server.ts";
import { Session } from "../../../services/gen/ganglion/session/v1/session_service.ts";
import { Fixture, WATCH, watchMessage } from "./fixture.ts";

const REQUEST = { sessionId: "sesn_1" };

describe("a client with several addresses", () => {
  let fixture: Fixture;
  before(async () => {
    fixture = await Fixture.create();
  });
  after(() => fixture.stop());

  const replica = (name: string, listen = "127.0.0.1:0") =>
    fixture.serve(
      {
        getSession: unary(async () => ({ session: Session.fromPartial({ title: name }) })),
        watchEvents: serverStream(async function* (_request, ctx) {
          yield watchMessage(name === "a" ? 1 : 2);
          await new Promise((resolve) => ctx.signal.addEventListener("abort", resolve));
        }),
      },
      { listen },
    );
  const end = async (server: RunningServer) => {
    server.force();
    await server.drain();
  };
  const portOf = (server: RunningServer) => server.address.split(":")[1];

  for (const [kind, hosts] of [
    ["numbers", ["127.0.0.1", "127.0.0.1"]],
    ["names", ["localhost", "localhost"]],
    ["both", ["localhost", "127.0.0.1"]],
  ] as const) {
    it(`spreads calls over ${kind}, loses none when a replica dies, and finds it again`, async () => {
      const a = await replica("a");
      const b = await replica("b");
      const addresses = [`${hosts[0]}:${portOf(a)}`, `${hosts[1]}:${portOf(b)}`];
      const client = await fixture.client(addresses);
      const ask = async () =>
        (await client.getSession(REQUEST, { waitForReady: true })).session?.title as string;
      const seen = new Set<string>();
      while (seen.size < 2) seen.add(await ask());

      // Under load: calls that were on their way to the dead one are tried again elsewhere.
      let isOver = false;
      const answers: string[] = [];
      const load = Array.from({ length: 8 }, async () => {
        while (!isOver) answers.push(await ask());
      });
      await new Promise((resolve) => setImmediate(resolve));
      await end(a);
      const before = answers.length;
      while (answers.length < before + 200) await new Promise((resolve) => setImmediate(resolve));
      assert.deepEqual([...new Set(answers.slice(before + 100))], ["b"]);

      const back = await replica("a", a.address);
      while (!answers.slice(-50).includes("a")) await new Promise((resolve) => setImmediate(resolve));
      isOver = true;
      await Promise.all(load);
      await Promise.all([end(back), end(b)]);
    });
  }

  it("a watch that lost its replica is answered by another one", async () => {
    const a = await replica("a");
    const b = await replica("b");
    const client = await fixture.client([a.address, b.address]);
    for (;;) {
      const tail = client.watchEvents(WATCH, { waitForReady: true });
      const { value } = await tail.next();
      if (value?.position !== 1n) {
        await tail.return();
        continue;
      }
      const rest = tail.next();
      await end(a);
      await assert.rejects(rest, (error) => error instanceof GanglionError && error.code === "UNAVAILABLE");
      break;
    }
    const again = client.watchEvents(WATCH, { waitForReady: true });
    assert.equal((await again.next()).value?.position, 2n);
    await again.return();
    await end(b);
  });

  it("with all of them gone a call waits for the first that is back, or fails at once", async () => {
    const a = await replica("a");
    const b = await replica("b");
    const client = await fixture.client([a.address, b.address]);
    await client.getSession(REQUEST);
    await Promise.all([end(a), end(b)]);
    await assert.rejects(
      client.getSession(REQUEST),
      (error) => error instanceof GanglionError && error.code === "UNAVAILABLE",
    );
    const waiting = client.getSession(REQUEST, { waitForReady: true });
    const back = await replica("b", b.address);
    assert.equal((await waiting).session?.title, "b");
    await end(back);
  });

  it("accepts the service it expects at each of them, and passes over names that nobody knows", async () => {
    const a = await replica("a");
    const impostor = await fixture.serve({}, { service: "sandbox" });
    const client = await fixture.client([impostor.address, "no-such-host.invalid:1", a.address]);
    for (let n = 0; n < 10; n++)
      assert.equal((await client.getSession(REQUEST, { waitForReady: true })).session?.title, "a");
    const lost = await fixture.client(["no-such-host.invalid:1", "nor-this.invalid:1"]);
    await assert.rejects(
      lost.getSession(REQUEST),
      (error) => error instanceof GanglionError && error.code === "UNAVAILABLE",
    );
    await Promise.all([end(a), end(impostor)]);
  });

  it("there is at least one", async () => {
    await assert.rejects(fixture.client([]), /needs an address/);
  });
});

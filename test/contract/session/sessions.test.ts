import assert from "node:assert/strict";
import { makeFixture, SessionKit, userMessage } from "./session-kit.ts";

describe("session service: sessions", () => {
  let kit: SessionKit;
  before(async function () {
    this.timeout(40_000);
    kit = await SessionKit.start();
  });
  after(() => kit.stop());

  it("makes a session whose log begins with what it was made from", async () => {
    const client = await kit.asClient();
    const { create } = await makeFixture(client);
    const session = await create({
      title: "first",
      metadata: { a: "1" },
      initialEvents: [userMessage("hello")],
    });
    assert.equal(session.headPosition, 3n);
    const { events } = await client.session.getEvents({
      sessionId: session.id,
      afterPosition: 0n,
      beforePosition: 0n,
      limit: 0,
      maxBytes: 0,
      types: [],
      order: 0,
      aroundEventId: "",
      aroundCount: 0,
    });
    assert.deepEqual(
      events.map(({ position, type }) => [position, type]),
      [
        [1n, "ganglion.session_created"],
        [2n, "user.message"],
        [3n, "session.status_running"],
      ],
    );
  });
});

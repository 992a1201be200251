import assert from "node:assert/strict";
import type { Model, OpenedRequest } from "../../../services/harness/ports/model.ts";
import { session, World } from "./fakes/brain.ts";
import { answer, bash } from "./fakes/scripted-parts.ts";

type Opened = OpenedRequest & {
  readonly body: string;
  readonly token: Promise<string>;
  state: "held" | "given up" | "sent";
};

/** A world whose model is brought requests before they are sent. `said` is what happened, in order. */
function opening(world: World) {
  const said: string[] = [];
  const opened: Opened[] = [];
  const open: NonNullable<Model["open"]> = ({ body, token }) => {
    said.push("open");
    const one: Opened = {
      body: body.toString(),
      token,
      state: "held",
      cancel() {
        if (one.state === "held") one.state = "given up";
      },
    };
    opened.push(one);
    return one;
  };
  const ask: Model["ask"] = world.model.ask.bind(world.model);
  Object.assign(world.model, {
    open,
    ask: (request: Parameters<Model["ask"]>[0]) => {
      said.push(`ask after ${world.log.types().at(-1)}`);
      const given = request.opened as Opened | undefined;
      if (given) {
        assert.equal(given.state, "held");
        assert.equal(given.body, request.body.toString());
        given.state = "sent";
      }
      return ask(request);
    },
  });
  const before = world.log.beforeAppend;
  world.log.beforeAppend = (events) => {
    const isSpan = events.some(({ body }) => body.$case === "spanModelRequestStart");
    if (isSpan) said.push("append");
    before?.(events);
  };
  return { said, opened };
}

describe("a request and its span", () => {
  it("are brought to the door and to the log at once, and sent when the log has the span", async () => {
    const world = new World(session(), answer("tool_use", bash("a", "true")), answer("end_turn", "Done."));
    const { said, opened } = opening(world);
    await world.drive();
    const one = ["open", "append", "ask after spanModelRequestStart"];
    assert.deepEqual(said, [...one, ...one]);
    assert.deepEqual(
      opened.map(({ state }) => state),
      ["sent", "sent"],
    );
  });

  it("are given up together when the log has more than the request knows", async () => {
    const world = new World(session(), answer("tool_use", bash("a", "true")), answer("end_turn", "Done."));
    let isSaid = false;
    world.log.beforeAppend = (events) => {
      if (isSaid || !events.some(({ body }) => body.$case === "agentToolResult")) return;
      isSaid = true;
      world.log.client("user.message", { content: [{ type: "text", text: "And one more." }] });
    };
    const { opened } = opening(world);
    await world.drive();
    assert.deepEqual(
      opened.map(({ state }) => state),
      ["sent", "given up", "sent"],
    );
    assert.equal(world.model.requests.length, 2);
    assert.match(JSON.stringify(world.model.requests.at(-1)), /And one more\./);
  });

  for (const [when, index] of [
    ["that begins a turn", 0],
    ["that follows a call", 1],
  ] as const) {
    it(`are given up together when another brain has the session: one ${when} [L3]`, async () => {
      const world = new World(session(), answer("tool_use", bash("a", "true")));
      let spans = 0;
      world.log.beforeAppend = (events) => {
        const isSpan = events.some(({ body }) => body.$case === "spanModelRequestStart");
        if (isSpan && spans++ === index) world.log.epoch += 1n;
      };
      const { opened } = opening(world);
      assert.equal((await world.drive()).reason, "lost");
      assert.equal(opened.length, index + 1);
      assert.equal(opened.at(-1)?.state, "given up");
      assert.equal(world.model.requests.length, index);
    });
  }

  it("do not wait for the token, without which nothing comes to the door", async () => {
    const world = new World(session(), answer("end_turn", "Done."));
    const issued = Promise.withResolvers<string>();
    world.tokens = { issue: () => issued.promise };
    const { said, opened } = opening(world);
    const ended = world.drive();
    await world.log.until(() => world.log.types().includes("spanModelRequestStart"));
    issued.resolve("late");
    await ended;
    assert.deepEqual(said, ["open", "append", "ask after spanModelRequestStart"]);
    assert.equal(await opened[0]?.token, "late");
  });
});

import assert from "node:assert/strict";
import type { Event } from "../../services/gen/ganglion/types/v1/event.ts";
import { answerOf, bodiesOf, checkLog, textOf } from "../kit/check-log.ts";
import { COUNTED_COMMAND, HandFiles } from "../kit/hand-files.ts";
import { sharedStage } from "../kit/shared-stage.ts";
import { type Stage, script } from "../kit/stage.ts";

const COMPLETED = 1;
const UNKNOWN = 3;
const MCP_TOOL = "mcp__everything__trigger-long-running-operation";
const ENDED = "The script has ended.";

describe("the leading harness dies, and another one goes on", function () {
  this.timeout(120_000);
  let stage: Stage;

  before(async function () {
    this.timeout(240_000);
    stage = await sharedStage();
  });
  beforeEach(() => stage.whole());
  after(() => stage?.whole());

  /** Calls of the MCP server's long tool, by what the server itself counted. */
  const mcpCalls = async () =>
    (await stage.mcp.journal.entries()).filter(
      ({ kind, tool }) => kind === "call" && MCP_TOOL.endsWith(String(tool)),
    ).length;

  /** The whole log is in order, and another process went on once. */
  const checkTakeover = async (sessionId: string): Promise<Event[]> => {
    const events = await stage.log(sessionId);
    checkLog(events);
    assert.deepEqual(
      bodiesOf(events, "ganglionLeaseAcquired").map(({ epoch }) => epoch),
      [1n, 2n],
    );
    assert.equal(events.at(-1)?.type, "session.status_idle");
    assert.equal(bodiesOf(events, "sessionStatusIdle").at(-1)?.stopReason?.type, 1);
    return events;
  };

  /** It was the other harness, by taking over what nobody had released. */
  const checkOther = (events: Event[], killed: string): void => {
    const [first, second] = bodiesOf(events, "ganglionLeaseAcquired");
    assert.ok(first?.owner.endsWith(`/${killed}`));
    assert.ok(second && !second.owner.endsWith(`/${killed}`), "another one");
    assert.equal(second.isTakeover, true);
  };

  /** Kills the brain of a session for good: nobody starts it again before `thaw`. */
  const killForGood = async (sessionId: string): Promise<string> => {
    const brain = await stage.brainOf(sessionId);
    frozen.push(stage.mesh.supervisorPid());
    process.kill(stage.mesh.supervisorPid(), "SIGSTOP");
    stage.mesh.kill(brain);
    return brain;
  };
  const frozen: number[] = [];
  const thaw = () => {
    for (const pid of frozen.splice(0)) process.kill(pid, "SIGCONT");
  };
  afterEach(thaw);

  it("in the middle of an answer: the answer is made once more, whole [B016]", async () => {
    const sessionId = await stage.newSession();
    let killed = "";
    await stage.turn(sessionId, "scenario: slow ms=5000", async ({ message }) => {
      const isText = message?.$case === "preview" && message.value.message?.$case === "text";
      if (!isText || killed !== "") return;
      killed = await stage.brainOf(sessionId);
      stage.mesh.kill(killed);
    });
    const events = await checkTakeover(sessionId);
    const spans = bodiesOf(events, "spanModelRequestEnd");
    assert.deepEqual(
      spans.map(({ isError }) => isError),
      [true, false],
    );
    const [answer, ...more] = bodiesOf(events, "agentMessage").filter(
      ({ modelRequestStartId }) => modelRequestStartId === spans[1]?.modelRequestStartId,
    );
    assert.equal(more.length, 0);
    assert.ok(answer?.block && textOf([answer.block]).length > 100, "the whole answer");
  });

  it("in the middle of a command: the hand runs it once, and its result is found [B001, B152]", async () => {
    const sessionId = await stage.newSession();
    const call = { name: "bash", input: { command: COUNTED_COMMAND } };
    let killed = "";
    let files: HandFiles | undefined;
    const see = async (event: Event) => {
      if (event.body?.$case === "ganglionHandProvisioned") {
        files = new HandFiles(stage.mesh, event.body.value.handId);
        await files.appears("begun");
        killed = await killForGood(sessionId);
      }
      // It ends under the new brain only.
      if (event.body?.$case === "ganglionLeaseAcquired" && event.body.value.isTakeover) files?.put("go");
    };
    const text = script([{ text: "I will count.", calls: [call] }]);
    await stage.turn(sessionId, text, ({ message }) => message?.$case === "event" && see(message.value));
    const events = await checkTakeover(sessionId);
    checkOther(events, killed);
    assert.deepEqual(files?.lines("counter"), ["ran"], "the command took effect once");
    const [result, ...more] = bodiesOf(events, "agentToolResult");
    assert.equal(more.length, 0);
    assert.equal(result?.outcome, COMPLETED);
    assert.equal(result?.isError, false);
    assert.match(textOf(result?.content ?? []), /ran 1 times/);
    assert.equal(answerOf(events), ENDED);
    assert.equal(bodiesOf(events, "ganglionHandProvisioned").length, 1, "the hand outlives the brain");
  });

  it("in the middle of an MCP call: the server is called once, and its result is found [B152]", async () => {
    const sessionId = await stage.newSession();
    const before = await mcpCalls();
    const calls = [{ name: MCP_TOOL, input: { duration: 4, steps: 4 } }];
    let killed = "";
    const killLater = (async () => {
      const isCall = ({ kind, tool }: { kind: string; tool?: unknown }) =>
        kind === "call" && MCP_TOOL.endsWith(String(tool));
      await stage.mcp.journal.waitFor(isCall, 60_000);
      killed = await killForGood(sessionId);
    })();
    await stage.turn(sessionId, script([{ text: "This takes a while.", calls }]));
    await killLater;
    const events = await checkTakeover(sessionId);
    checkOther(events, killed);
    assert.equal((await mcpCalls()) - before, 1, "the server saw one call");
    const [result, ...more] = bodiesOf(events, "agentMcpToolResult");
    assert.equal(more.length, 0);
    assert.equal(result?.outcome, COMPLETED, textOf(result?.content ?? []));
    assert.match(textOf(result?.content ?? []), /completed/i);
    assert.equal(answerOf(events), ENDED);
  });

  it("between two turns: the next turn knows the first one", async () => {
    const sessionId = await stage.newSession();
    await stage.turn(sessionId, "scenario: plain words=4");
    const [lease] = bodiesOf(await stage.log(sessionId), "ganglionLeaseAcquired");
    stage.mesh.kill(lease?.owner.split("/").at(-1) as string);
    const seen = await stage.turn(sessionId, "scenario: default\nHello again.");
    assert.match(answerOf(seen), /Hello again/);
    const events = await stage.log(sessionId);
    checkLog(events);
    assert.equal(bodiesOf(events, "sessionStatusIdle").length, 2);
    const requests = (await stage.model.journal.entries()).filter(({ kind }) => kind === "request");
    const body = JSON.stringify(requests.at(-1)?.body);
    assert.match(body, /scenario: plain words=4/, "the first turn was sent along");
  });

  it("frozen and thawed: the brain that was replaced appends nothing and runs nothing [B150]", async () => {
    const sessionId = await stage.newSession();
    let sleeper = "";
    let pid = 0;
    let files: HandFiles | undefined;
    const see = async (event: Event) => {
      if (event.body?.$case === "ganglionHandProvisioned") {
        files = new HandFiles(stage.mesh, event.body.value.handId);
        await files.appears("begun");
        sleeper = await stage.brainOf(sessionId);
        pid = stage.mesh.kill(sleeper, "SIGSTOP");
        frozen.push(pid);
      }
      if (event.body?.$case !== "ganglionLeaseAcquired" || !event.body.value.isTakeover) return;
      // It wakes while the other one waits for the same result, and has it in its own hands at the same time.
      thaw();
      files?.put("go");
    };
    const call = { name: "bash", input: { command: COUNTED_COMMAND } };
    const text = script([{ text: "I will count.", calls: [call] }]);
    await stage.turn(sessionId, text, ({ message }) => message?.$case === "event" && see(message.value));
    checkOther(await checkTakeover(sessionId), sleeper);
    assert.deepEqual(files?.lines("counter"), ["ran"]);
    await stage.turn(sessionId, "Hello once more.");
    checkLog(await stage.log(sessionId));
    assert.equal(stage.mesh.pids()[sleeper], pid, "it lives, and knows its place");
  });

  describe("the proxy dies in the middle of an MCP call", () => {
    /** Plays a turn with one call and kills the proxy as soon as the server was asked; returns what the server saw. */
    const playAndKill = async (sessionId: string, tool: string, input: object): Promise<number> => {
      const asked = async () =>
        (await stage.mcp.journal.entries()).filter((entry) => entry.kind === "call" && entry.tool === tool);
      const last = (await asked()).at(-1)?.n ?? 0;
      const before = (await asked()).length;
      const calls = [{ name: `mcp__everything__${tool}`, input }];
      const killLater = stage.mcp.journal
        .waitFor((entry) => entry.n > last && entry.kind === "call" && entry.tool === tool, 60_000)
        .then(() => stage.mesh.kill("mcp-proxy-1"));
      await Promise.all([stage.turn(sessionId, script([{ calls }], `id=${tool}`)), killLater.then(thaw)]);
      return (await asked()).length - before;
    };
    const onlyResult = async (sessionId: string) => {
      const events = await stage.log(sessionId);
      checkLog(events);
      assert.equal(answerOf(events), ENDED);
      return bodiesOf(events, "agentMcpToolResult").at(-1);
    };

    it("of a tool that may not be repeated: nobody knows, so the result says so, and it is not called again", async () => {
      const sessionId = await stage.newSession();
      await stage.turn(
        sessionId,
        script([{ calls: [{ name: "mcp__everything__echo", input: { message: "a" } }] }]),
      );
      // The server takes the call and answers only when the proxy is gone.
      const server = stage.mcp.listening.server_pid as number;
      frozen.push(server);
      process.kill(server, "SIGSTOP");
      assert.equal(await playAndKill(sessionId, "toggle-simulated-logging", {}), 1);
      const result = await onlyResult(sessionId);
      assert.equal(result?.outcome, UNKNOWN, textOf(result?.content ?? []));
      assert.equal(result?.isError, true);
    });

    it("of a tool that says that it may be repeated: it is, and answers", async () => {
      const sessionId = await stage.newSession();
      const input = { duration: 3, steps: 3 };
      assert.equal(await playAndKill(sessionId, "trigger-long-running-operation", input), 2);
      const result = await onlyResult(sessionId);
      assert.equal(result?.outcome, COMPLETED, textOf(result?.content ?? []));
    });
  });
});

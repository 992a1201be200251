import assert from "node:assert/strict";
import type { Event } from "../../services/gen/ganglion/types/v1/event.ts";
import { answerOf, bodiesOf, checkLog, textOf } from "../kit/check-log.ts";
import { PARTS, Stage, script } from "../kit/stage.ts";

const MCP_TOOL = "mcp__everything__echo";

describe("any single process dies", function () {
  this.timeout(120_000);
  let stage: Stage;
  let word = 0;

  before(async function () {
    this.timeout(240_000);
    stage = await Stage.start({ ownModel: true });
  });
  after(async function () {
    this.timeout(90_000);
    await stage?.stop();
  });

  /** One whole session: a command in a hand, an MCP call with a credential, an answer. */
  const passesSession = async (): Promise<void> => {
    const said = `word-${++word}`;
    const sessionId = await stage.newSession();
    await stage.turn(
      sessionId,
      script([
        {
          text: "First the hand.",
          calls: [{ name: "bash", input: { command: `echo ${said} | tr a-z A-Z` } }],
        },
        { text: "Then the server.", calls: [{ name: MCP_TOOL, input: { message: said } }] },
        { text: `Both have said ${said}.` },
      ]),
    );
    const events = await stage.log(sessionId);
    checkLog(events);
    const [hand] = bodiesOf(events, "agentToolResult");
    assert.equal(textOf(hand?.content ?? []).trim(), said.toUpperCase());
    const [server] = bodiesOf(events, "agentMcpToolResult");
    assert.match(textOf(server?.content ?? []), new RegExp(`Echo: ${said}`), describeErrors(events));
    assert.equal(server?.isError, false);
    assert.equal(answerOf(events), `Both have said ${said}.`);
    assert.equal(bodiesOf(events, "sessionStatusIdle").at(-1)?.stopReason?.type, 1);
  };

  it("nothing has died yet, and a session works", passesSession);

  for (const part of [...PARTS, "scripted-model"]) {
    it(`${part} is killed, comes back, and a session works as before`, async () => {
      await stage.mesh.killAndWait(part);
      await stage.whole();
      await passesSession();
    });
  }

  it("and all that was said before is still there", async () => {
    const { sessions } = await stage.sessions.listSessions({
      pageSize: 100,
      pageToken: "",
      agentId: stage.agentId,
      agentVersion: 0,
      statuses: [],
      includeArchived: false,
      order: 0,
      createdAtOrAfter: undefined,
      createdBefore: undefined,
      workspaceId: "",
    });
    assert.equal(sessions.length, word);
    for (const { id } of sessions) checkLog(await stage.log(id));
  });
});

/** What a log says went wrong. */
function describeErrors(events: readonly Event[]): string {
  const errors = bodiesOf(events, "sessionError").map(({ reason, message }) => `${reason}: ${message}`);
  return [...events.map(({ type }) => type), ...errors].join(", ");
}

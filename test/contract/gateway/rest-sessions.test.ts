import assert from "node:assert/strict";
import { GanglionError } from "../../../services/common/errors/ganglion-error.ts";
import { unary } from "../../../services/common/grpc/handlers.ts";
import {
  type CreateSessionRequest,
  Session,
  SessionServiceService,
  type UpdateSessionRequest,
} from "../../../services/gen/ganglion/session/v1/session_service.ts";
import { Event } from "../../../services/gen/ganglion/types/v1/event.ts";
import { type GatewayUnderTest, implementSome, playApiKeys, startGateway } from "./gateway-kit.ts";

const KEY = "gk-rest-0123456789";
const AT = { seconds: 1_700_000_000n, nanos: 0 };
const LIMIT = { type: "limit", max_list_cost: { amount: "2500", currency: "USD" } };

describe("sessions over the REST API", () => {
  let mesh: GatewayUnderTest;
  const created: CreateSessionRequest[] = [];
  const updated: UpdateSessionRequest[] = [];
  let session: Session;
  let log: Event[] = [];
  let refusal: { code: "FAILED_PRECONDITION"; reason: string } | undefined;

  before(async () => {
    const refuse = () => {
      if (refusal) throw new GanglionError({ ...refusal, message: "no" });
    };
    const sessions = implementSome(SessionServiceService, {
      createSession: unary(async (request: CreateSessionRequest) => {
        refuse();
        created.push(request);
        return { session };
      }),
      updateSession: unary(async (request: UpdateSessionRequest) => {
        refuse();
        updated.push(request);
        return { session };
      }),
      getSession: unary(async () => ({ session })),
      archiveSession: unary(async () => {
        refuse();
        return { session };
      }),
      deleteSession: unary(async () => {
        refuse();
        return {};
      }),
      emitEvents: unary(async () => {
        refuse();
        return { stored: [], headPosition: 0n };
      }),
      getEvents: unary(async () => ({ events: log, headPosition: BigInt(log.length), hasMore: false })),
    });
    mesh = await startGateway([sessions, playApiKeys(KEY)]);
  });
  after(() => mesh?.stop());
  beforeEach(() => {
    session = Session.fromPartial({ id: "sesn_1", agentJson: Buffer.from("{}"), createTime: AT });
    refusal = undefined;
    log = [];
    created.length = 0;
    updated.length = 0;
  });

  const call = (path: string, method = "GET", body?: unknown) =>
    fetch(`${mesh.rest}/v1/sessions${path}`, {
      method,
      headers: { authorization: `Bearer ${KEY}` },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
  const create = (more: object) => call("", "POST", { agent: "agent_1", environment_id: "env_1", ...more });
  const update = (body: object) => call("/sesn_1", "POST", body);
  const shown = async () => (await (await call("/sesn_1")).json()) as Record<string, unknown>;
  const events = async () =>
    ((await (await call("/sesn_1/events")).json()) as { data: Record<string, unknown>[] }).data;
  const stored = (type: string, body: Event["body"]) => {
    const position = BigInt(log.length + 1);
    log.push(Event.fromPartial({ id: `sevt_${position}`, position, type, createTime: AT, body } as never));
  };

  it("makes a session with a budget, and shows it with what was spent in whole cents", async () => {
    assert.equal((await create({ budget: LIMIT })).status, 200);
    assert.equal(created[0]?.budget?.maxListCostCents, 2500n);
    assert.equal((await create({ budget: null })).status, 200);
    assert.equal(created[1]?.budget, undefined);
    session = { ...session, budget: { maxListCostCents: 2500n }, listCostMicrocents: 1_999_999_999n };
    const { budget, usage } = await shown();
    assert.deepEqual(budget, LIMIT);
    assert.deepEqual((usage as { list_cost: unknown }).list_cost, { amount: "1999", currency: "USD" });
  });

  it("shows neither budget nor cost where there is none", async () => {
    const { budget, usage } = await shown();
    assert.deepEqual([budget, (usage as { list_cost: unknown }).list_cost], [null, null]);
  });

  it("refuses budgets that are none, and passes nothing on", async () => {
    for (const budget of [
      { type: "limit" },
      { ...LIMIT, type: "soft" },
      { ...LIMIT, more: 1 },
      { type: "limit", max_list_cost: { amount: 2500, currency: "USD" } },
      { type: "limit", max_list_cost: { amount: "-1", currency: "USD" } },
      { type: "limit", max_list_cost: { amount: "0", currency: "USD" } },
      { type: "limit", max_list_cost: { amount: "1e3", currency: "USD" } },
      { type: "limit", max_list_cost: { amount: "1000000000001", currency: "USD" } },
      { type: "limit", max_list_cost: { amount: "1", currency: "EUR" } },
    ]) {
      assert.equal((await create({ budget })).status, 400, JSON.stringify(budget));
      assert.equal((await update({ budget })).status, 400, JSON.stringify(budget));
    }
    assert.deepEqual([created, updated], [[], []]);
  });

  it("raises and removes a budget, and leaves it alone", async () => {
    for (const body of [{ budget: LIMIT }, { budget: null }, { title: "x" }]) await update(body);
    assert.deepEqual(
      updated.map(({ budget, removeBudget }) => [budget?.maxListCostCents, removeBudget]),
      [
        [2500n, false],
        [undefined, true],
        [undefined, false],
      ],
    );
  });

  it("replaces tools and servers of the session alone, each as a whole", async () => {
    const tools = [{ type: "agent_toolset_20260401" }];
    await update({ agent: { tools } });
    await update({ agent: { tools: null, mcp_servers: [] } });
    await update({ agent: {} });
    const text = (bytes: Uint8Array | undefined) => bytes && Buffer.from(bytes).toString();
    assert.deepEqual(
      updated.map((one) => [text(one.agentToolsJson), text(one.agentMcpServersJson)]),
      [
        [JSON.stringify(tools), undefined],
        ["[]", "[]"],
        [undefined, undefined],
      ],
    );
    for (const agent of [{ model: "other" }, { tools: {} }, { mcp_servers: "x" }, null, []]) {
      assert.equal((await update({ agent })).status, 400, JSON.stringify(agent));
    }
    assert.equal((await update({ vault_ids: [] })).status, 400);
    assert.equal(updated.length, 3);
  });

  it("says why a change, input or end is refused", async () => {
    const message = { events: [{ type: "user.message", content: "x" }] };
    for (const [reason, path, method, body] of [
      ["BUDGET_CREATE_ONLY", "/sesn_1", "POST", { budget: LIMIT }],
      ["BUDGET_NOT_RAISED", "/sesn_1", "POST", { budget: LIMIT }],
      ["SESSION_RUNNING", "/sesn_1", "POST", { agent: { tools: [] } }],
      ["MODEL_NOT_BUDGETABLE", "", "POST", { agent: "agent_1", environment_id: "env_1", budget: LIMIT }],
      ["BUDGET_REACHED", "/sesn_1/events", "POST", message],
      ["SESSION_RUNNING", "/sesn_1/archive", "POST", undefined],
      ["SESSION_RUNNING", "/sesn_1", "DELETE", undefined],
    ] as const) {
      refusal = { code: "FAILED_PRECONDITION", reason };
      const answer = await call(path, method, body);
      const { error } = (await answer.json()) as { error: { type: string; details: { error_code: string } } };
      assert.deepEqual(
        [answer.status, error.type, error.details.error_code],
        [400, "invalid_request_error", reason.toLowerCase()],
      );
    }
  });

  it("shows of a change only what changed", async () => {
    const nothing = { metadata: undefined, agentJson: Buffer.alloc(0), isBudgetRemoved: false };
    const say = (value: object) =>
      stored("session.updated", { $case: "sessionUpdated", value: { ...nothing, ...value } } as never);
    say({ title: "new" });
    say({ metadata: { entries: { a: "1" } } });
    say({ metadata: { entries: {} } });
    say({ agentJson: Buffer.from('{"id":"agent_1","tools":[]}') });
    say({ budget: { maxListCostCents: 2500n } });
    say({ isBudgetRemoved: true });
    const own = (await events()).map(({ id, type, processed_at, ...rest }) => rest);
    assert.deepEqual(own, [
      { title: "new" },
      { metadata: { a: "1" } },
      {},
      { agent: { id: "agent_1", tools: [] } },
      { budget: LIMIT },
      { budget: null },
    ]);
  });

  it("tells what was spent before the idle that says that the budget is reached", async () => {
    const usage = { usage: undefined, activeMs: 1500n, listCostMicrocents: 2_500_000_000n };
    stored("session.usage", { $case: "sessionUsage", value: usage });
    const value = { stopReason: { type: 4 as const, eventIds: [] }, stopDetails: undefined };
    stored("session.status_idle", { $case: "sessionStatusIdle", value });
    const [spent, idle] = await events();
    const { list_cost: cost, active_seconds: seconds } = (spent?.usage ?? {}) as Record<string, unknown>;
    assert.deepEqual([cost, seconds], [{ amount: "2500", currency: "USD" }, 1.5]);
    assert.deepEqual(idle?.stop_reason, { type: "budget_reached" });
  });
});

import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  ForkSessionRequest,
  GetEventsRequest,
  type Session,
  UpdateSessionRequest,
} from "../../../../services/gen/ganglion/session/v1/session_service.ts";
import type { Event } from "../../../../services/gen/ganglion/types/v1/event.ts";
import type { RunningService } from "../../../kit/start-service.ts";
import {
  type Caller,
  emit,
  event,
  json,
  makeFixture,
  refused,
  refusedField,
  type SessionKit,
  same,
  userMessage,
} from "../session-kit.ts";

const PRICE = {
  input_microcents: 300,
  output_microcents: 1500,
  cache_read_microcents: 30,
  cache_write_5m_microcents: 375,
  cache_write_1h_microcents: 600,
};

/** What a session may cost. The service that knows prices is a replica beside the one of the kit, which knows none. */
export function budgetsSuite(kit: () => SessionKit): void {
  describe("budgets", () => {
    let folder: string;
    let priced: RunningService;
    let client: Caller;
    let harness: Caller;
    let fixture: Awaited<ReturnType<typeof makeFixture>>;
    const bootId = "boot-for-budgets-001";
    before(async function () {
      this.timeout(60_000);
      folder = mkdtempSync(join(tmpdir(), "ganglion-prices-"));
      const file = join(folder, "prices.json");
      writeFileSync(file, JSON.stringify({ models: { "claude-*": PRICE } }));
      priced = await kit().startReplica({ GANGLION_MODEL_PRICES_FILE: file });
      const { addr } = priced.listening;
      client = await kit().asClient("wrkspc_default", addr);
      harness = await kit().as("harness", "harness-budgets", addr);
      fixture = await makeFixture(client);
    });
    after(async () => {
      await priced?.stop();
      rmSync(folder, { recursive: true, force: true });
    });

    const budget = (cents: bigint) => ({ maxListCostCents: cents });
    const get = async (sessionId: string): Promise<Session> => {
      const { session } = await client.session.getSession({ sessionId });
      assert.ok(session);
      return session;
    };
    const update = async (sessionId: string, more: Partial<UpdateSessionRequest>) =>
      (await client.session.updateSession(UpdateSessionRequest.fromPartial({ sessionId, ...more }))).session;
    const updatesOf = async (sessionId: string) =>
      (
        await client.session.getEvents(
          GetEventsRequest.fromPartial({ sessionId, types: ["session.updated"] }),
        )
      ).events.map(({ body }) => (body?.$case === "sessionUpdated" ? body.value : undefined));
    const isRunnable = async (sessionId: string) =>
      (
        await kit().sql("ganglion_owner", "SELECT runnable FROM session.sessions WHERE session_id = $1", [
          sessionId,
        ])
      )[0].runnable as boolean;
    /** A session of 1 cent whose harness has said that 2 cents are spent and that it waits. */
    const paused = async () => {
      const { id } = await fixture.create({ budget: budget(1n), initialEvents: [userMessage("go")] });
      await harness.session.harnessHeartbeat({ bootId, activeSessions: 0, isDraining: false });
      const { lease } = await harness.session.acquireLease({ sessionId: id, bootId });
      const usage = event({
        $case: "sessionUsage",
        value: { usage: ZERO, activeMs: 1n, listCostMicrocents: 2_000_000n },
      });
      const idle = event({
        $case: "sessionStatusIdle",
        value: { stopReason: { type: 4, eventIds: [] }, stopDetails: undefined },
      });
      const epoch = lease?.epoch ?? 0n;
      await emit(harness, id, [usage, idle], { epoch, expectedPosition: lease?.headPosition });
      return { id, epoch };
    };
    const confirmation = () =>
      event({
        $case: "userToolConfirmation",
        value: { toolUseId: "sevt_x", result: 1, denyMessage: undefined },
      });
    const answer = () =>
      event({
        $case: "userCustomToolResult",
        value: { customToolUseId: "sevt_x", content: [], isError: undefined },
      });
    const interrupt = () => event({ $case: "userInterrupt", value: { sessionThreadId: "" } });

    it("is in the record and in the first event, with the model's price", async () => {
      const session = await fixture.create({ budget: budget(2500n) });
      same(session.budget, budget(2500n));
      const { events } = await client.session.getEvents(
        GetEventsRequest.fromPartial({ sessionId: session.id }),
      );
      const body = events[0]?.body;
      assert.ok(body?.$case === "ganglionSessionCreated");
      same(body.value.budget, budget(2500n));
      same(body.value.price, {
        ...{ inputMicrocents: 300n, outputMicrocents: 1500n, cacheReadMicrocents: 30n },
        ...{ cacheWrite5mMicrocents: 375n, cacheWrite1hMicrocents: 600n },
      });
      const without = await fixture.create();
      same([without.budget, without.listCostMicrocents], [undefined, undefined]);
    });

    it("needs a price, and a sensible amount", async () => {
      const { agent } = await client.agents.createAgent({
        ...{ requestId: "", workspaceId: "", definitionJson: json({ name: "x", model: "other-model" }) },
      });
      await assert.rejects(
        fixture.create({ agentId: agent?.id ?? "", budget: budget(1n) }),
        refused("FAILED_PRECONDITION", "MODEL_NOT_BUDGETABLE"),
      );
      const unpriced = await kit().asClient();
      const { create } = await makeFixture(unpriced);
      await assert.rejects(
        create({ budget: budget(1n) }),
        refused("FAILED_PRECONDITION", "MODEL_NOT_BUDGETABLE"),
      );
      for (const cents of [0n, -1n, 1_000_000_000_001n]) {
        await assert.rejects(
          fixture.create({ budget: budget(cents) }),
          refusedField("budget.max_list_cost_cents"),
        );
      }
    });

    it("can be changed and removed, never added, and never to what is used up", async () => {
      const { id } = await paused();
      await assert.rejects(
        update(id, { budget: budget(2n) }),
        refused("FAILED_PRECONDITION", "BUDGET_NOT_RAISED"),
      );
      same((await update(id, { budget: budget(1n) }))?.budget, budget(1n));
      same(await updatesOf(id), []);
      same((await update(id, { budget: budget(3n) }))?.budget, budget(3n));
      same((await update(id, { removeBudget: true }))?.budget, undefined);
      same((await update(id, { removeBudget: true }))?.budget, undefined);
      await assert.rejects(
        update(id, { budget: budget(9n) }),
        refused("FAILED_PRECONDITION", "BUDGET_CREATE_ONLY"),
      );
      await assert.rejects(
        update(id, { budget: budget(9n), removeBudget: true }),
        refusedField("remove_budget"),
      );
      same(
        (await updatesOf(id)).map((value) => [value?.budget, value?.isBudgetRemoved, value?.title]),
        [
          [budget(3n), false, undefined],
          [undefined, true, undefined],
        ],
      );
    });

    it("a session paused at its budget takes answers and interrupts only, until it is raised or removed", async () => {
      for (const change of [{ budget: budget(3n) }, { removeBudget: true }]) {
        const { id } = await paused();
        const session = await get(id);
        same([session.stopReason?.type, session.listCostMicrocents], [4, 2_000_000n]);
        assert.equal(await isRunnable(id), false);
        const reached = refused("FAILED_PRECONDITION", "BUDGET_REACHED");
        await assert.rejects(emit(client, id, [userMessage("more")]), reached);
        await assert.rejects(emit(client, id, [interrupt(), userMessage("more")]), reached);
        await assert.rejects(
          emit(client, id, [userMessage("more")], { expectedPosition: session.headPosition }),
          reached,
        );
        await emit(client, id, [confirmation()]);
        await emit(client, id, [answer()]);
        await emit(client, id, [interrupt()]);
        await kit().sql(
          "ganglion_owner",
          "UPDATE session.sessions SET runnable = false WHERE session_id = $1",
          [id],
        );
        await update(id, change);
        assert.equal(await isRunnable(id), true);
        await emit(client, id, [userMessage("more")]);
      }
    });

    it("a message that is in the log already is answered although the session is paused since", async () => {
      const message = userMessage("go", "sevt_budget_repeat");
      const { id } = await fixture.create({ budget: budget(1n) });
      await emit(client, id, [message]);
      await harness.session.harnessHeartbeat({ bootId, activeSessions: 0, isDraining: false });
      const { lease } = await harness.session.acquireLease({ sessionId: id, bootId });
      const idle = event({
        $case: "sessionStatusIdle",
        value: { stopReason: { type: 4, eventIds: [] }, stopDetails: undefined },
      });
      await emit(harness, id, [idle], { epoch: lease?.epoch, expectedPosition: lease?.headPosition });
      const { stored } = await emit(client, id, [message]);
      same([stored[0]?.position, stored[0]?.isDuplicate], [2n, true]);
      await assert.rejects(
        emit(client, id, [message, userMessage("new")]),
        refused("FAILED_PRECONDITION", "BUDGET_REACHED"),
      );
    });

    it("no message slips in behind the pause, however many race it", async () => {
      for (let round = 0; round < 5; round++) {
        const { id } = await fixture.create({ budget: budget(1n), initialEvents: [userMessage("go")] });
        await harness.session.harnessHeartbeat({ bootId, activeSessions: 0, isDraining: false });
        const { lease } = await harness.session.acquireLease({ sessionId: id, bootId });
        const idle = event({
          $case: "sessionStatusIdle",
          value: { stopReason: { type: 4, eventIds: [] }, stopDetails: undefined },
        });
        const racing = Array.from({ length: 30 }, (_, n) =>
          emit(client, id, [userMessage(`${n}`)]).then(
            () => "taken",
            () => "refused",
          ),
        );
        const pause = async () => {
          for (;;) {
            const { headPosition } = await get(id);
            const done = await emit(harness, id, [idle], {
              ...{ epoch: lease?.epoch, expectedPosition: headPosition },
            }).catch((error: { reason?: string }) => {
              if (error.reason !== "POSITION_CONFLICT") throw error;
            });
            if (done) return;
          }
        };
        await Promise.all([...racing, pause()]);
        const { events } = await client.session.getEvents(
          GetEventsRequest.fromPartial({ sessionId: id, limit: 1000 }),
        );
        assert.equal(events.at(-1)?.type, "session.status_idle");
      }
    });

    it("a fork has the budget that the log gave it by then, and counts what was spent", async () => {
      const { id } = await paused();
      const { headPosition } = await get(id);
      await update(id, { budget: budget(5n) });
      const fork = async (position: bigint) =>
        (await client.session.forkSession(ForkSessionRequest.fromPartial({ sessionId: id, position })))
          .session;
      const before = await fork(headPosition);
      same([before?.budget, before?.listCostMicrocents], [budget(1n), 2_000_000n]);
      await assert.rejects(
        emit(client, before?.id ?? "", [userMessage("x")]),
        refused("FAILED_PRECONDITION", "BUDGET_REACHED"),
      );
      const after = await fork(0n);
      same(after?.budget, budget(5n));
      assert.equal(await isRunnable(after?.id ?? ""), true);
      await emit(client, after?.id ?? "", [userMessage("x")]);
    });

    it("a list that is no list ends the service with 78", async () => {
      const file = join(folder, "bad.json");
      writeFileSync(file, JSON.stringify({ models: { "claude-*": { ...PRICE, input_microcents: -1 } } }));
      await assert.rejects(kit().startReplica({ GANGLION_MODEL_PRICES_FILE: file }), /78/);
    });
  });
}

const ZERO: NonNullable<Extract<NonNullable<Event["body"]>, { $case: "sessionUsage" }>["value"]["usage"]> = {
  inputTokens: 0n,
  outputTokens: 0n,
  cacheCreationInputTokens: 0n,
  cacheReadInputTokens: 0n,
  cacheCreation5mInputTokens: 0n,
  cacheCreation1hInputTokens: 0n,
  speed: "",
};

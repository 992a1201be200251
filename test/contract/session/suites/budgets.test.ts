import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ForkSessionRequest } from "../../../../services/gen/ganglion/session/v1/session_service.ts";
import type { RunningService } from "../../../kit/start-service.ts";
import {
  emit,
  event,
  idle,
  json,
  makeFixture,
  refused,
  refusedField,
  type SessionKit,
  same,
  usage,
  userMessage,
} from "../session-kit.ts";
import { Suite } from "../suite.ts";

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
    before(async function () {
      this.timeout(60_000);
      folder = mkdtempSync(join(tmpdir(), "ganglion-prices-"));
      const file = join(folder, "prices.json");
      writeFileSync(file, JSON.stringify({ models: { "claude-*": PRICE } }));
      priced = await kit().startReplica({ GANGLION_MODEL_PRICES_FILE: file });
    });
    after(async () => {
      await priced?.stop();
      rmSync(folder, { recursive: true, force: true });
    });

    const suite = new Suite(kit, "budgets", () => priced.listening.addr);

    const budget = (cents: bigint) => ({ maxListCostCents: cents });
    const updatesOf = async (sessionId: string) =>
      (await suite.eventsOf(sessionId, { types: ["session.updated"] })).map(({ body }) =>
        body?.$case === "sessionUpdated" ? body.value : undefined,
      );
    const isRunnable = async (sessionId: string) =>
      (
        await kit().sql("ganglion_owner", "SELECT runnable FROM session.sessions WHERE session_id = $1", [
          sessionId,
        ])
      )[0].runnable as boolean;
    /** A session of 1 cent whose suite.harness has said that 2 cents are spent and that it waits. */
    const paused = async () => {
      const { id } = await suite.create({ budget: budget(1n), initialEvents: [userMessage("go")] });
      const { epoch, headPosition: expectedPosition } = await suite.acquire(id);
      await emit(suite.harness, id, [usage({}, 1n, 2_000_000n), idle(4)], { epoch, expectedPosition });
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
      const session = await suite.create({ budget: budget(2500n) });
      same(session.budget, budget(2500n));
      const events = await suite.eventsOf(session.id);
      const body = events[0]?.body;
      assert.ok(body?.$case === "ganglionSessionCreated");
      same(body.value.budget, budget(2500n));
      same(body.value.price, {
        ...{ inputMicrocents: 300n, outputMicrocents: 1500n, cacheReadMicrocents: 30n },
        ...{ cacheWrite5mMicrocents: 375n, cacheWrite1hMicrocents: 600n },
      });
      const without = await suite.create();
      same([without.budget, without.listCostMicrocents], [undefined, undefined]);
    });

    it("needs a price, and a sensible amount", async () => {
      const { agent } = await suite.client.agents.createAgent({
        ...{ requestId: "", workspaceId: "", definitionJson: json({ name: "x", model: "other-model" }) },
      });
      await assert.rejects(
        suite.create({ agentId: agent?.id ?? "", budget: budget(1n) }),
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
          suite.create({ budget: budget(cents) }),
          refusedField("budget.max_list_cost_cents"),
        );
      }
    });

    it("can be changed and removed, never added, and never to what is used up", async () => {
      const { id } = await paused();
      await assert.rejects(
        suite.update(id, { budget: budget(2n) }),
        refused("FAILED_PRECONDITION", "BUDGET_NOT_RAISED"),
      );
      same((await suite.update(id, { budget: budget(1n) })).budget, budget(1n));
      same(await updatesOf(id), []);
      same((await suite.update(id, { budget: budget(3n) })).budget, budget(3n));
      same((await suite.update(id, { removeBudget: true })).budget, undefined);
      same((await suite.update(id, { removeBudget: true })).budget, undefined);
      await assert.rejects(
        suite.update(id, { budget: budget(9n) }),
        refused("FAILED_PRECONDITION", "BUDGET_CREATE_ONLY"),
      );
      await assert.rejects(
        suite.update(id, { budget: budget(9n), removeBudget: true }),
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
        const session = await suite.get(id);
        same([session.stopReason?.type, session.listCostMicrocents], [4, 2_000_000n]);
        assert.equal(await isRunnable(id), false);
        const reached = refused("FAILED_PRECONDITION", "BUDGET_REACHED");
        await assert.rejects(emit(suite.client, id, [userMessage("more")]), reached);
        await assert.rejects(emit(suite.client, id, [interrupt(), userMessage("more")]), reached);
        await assert.rejects(
          emit(suite.client, id, [userMessage("more")], { expectedPosition: session.headPosition }),
          reached,
        );
        await emit(suite.client, id, [confirmation()]);
        await emit(suite.client, id, [answer()]);
        await emit(suite.client, id, [interrupt()]);
        await kit().sql(
          "ganglion_owner",
          "UPDATE session.sessions SET runnable = false WHERE session_id = $1",
          [id],
        );
        await suite.update(id, change);
        assert.equal(await isRunnable(id), true);
        await emit(suite.client, id, [userMessage("more")]);
      }
    });

    it("a message that is in the log already is answered although the session is paused since", async () => {
      const message = userMessage("go", "sevt_budget_repeat");
      const { id } = await suite.create({ budget: budget(1n) });
      await emit(suite.client, id, [message]);
      const { epoch, headPosition: expectedPosition } = await suite.acquire(id);
      await emit(suite.harness, id, [idle(4)], { epoch, expectedPosition });
      const { stored } = await emit(suite.client, id, [message]);
      same([stored[0]?.position, stored[0]?.isDuplicate], [2n, true]);
      await assert.rejects(
        emit(suite.client, id, [message, userMessage("new")]),
        refused("FAILED_PRECONDITION", "BUDGET_REACHED"),
      );
    });

    it("no message slips in behind the pause, however many race it", async () => {
      for (let round = 0; round < 5; round++) {
        const { id } = await suite.create({ budget: budget(1n), initialEvents: [userMessage("go")] });
        const { epoch } = await suite.acquire(id);
        const racing = Array.from({ length: 30 }, (_, n) =>
          emit(suite.client, id, [userMessage(`${n}`)]).then(
            () => "taken",
            () => "refused",
          ),
        );
        const pause = async () => {
          for (;;) {
            const { headPosition } = await suite.get(id);
            const done = await emit(suite.harness, id, [idle(4)], {
              epoch,
              expectedPosition: headPosition,
            }).catch((error: { reason?: string }) => {
              if (error.reason !== "POSITION_CONFLICT") throw error;
            });
            if (done) return;
          }
        };
        await Promise.all([...racing, pause()]);
        const events = await suite.eventsOf(id);
        assert.equal(events.at(-1)?.type, "session.status_idle");
      }
    });

    it("a fork has the budget that the log gave it by then, and counts what was spent", async () => {
      const { id } = await paused();
      const { headPosition } = await suite.get(id);
      await suite.update(id, { budget: budget(5n) });
      const fork = async (position: bigint) =>
        (await suite.client.session.forkSession(ForkSessionRequest.fromPartial({ sessionId: id, position })))
          .session;
      const before = await fork(headPosition);
      same([before?.budget, before?.listCostMicrocents], [budget(1n), 2_000_000n]);
      await assert.rejects(
        emit(suite.client, before?.id ?? "", [userMessage("x")]),
        refused("FAILED_PRECONDITION", "BUDGET_REACHED"),
      );
      const after = await fork(0n);
      same(after?.budget, budget(5n));
      assert.equal(await isRunnable(after?.id ?? ""), true);
      await emit(suite.client, after?.id ?? "", [userMessage("x")]);
    });

    it("a list that is no list ends the service with 78", async () => {
      const file = join(folder, "bad.json");
      writeFileSync(file, JSON.stringify({ models: { "claude-*": { ...PRICE, input_microcents: -1 } } }));
      await assert.rejects(kit().startReplica({ GANGLION_MODEL_PRICES_FILE: file }), /78/);
    });
  });
}

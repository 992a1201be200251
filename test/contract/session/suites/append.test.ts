import assert from "node:assert/strict";
import type { GanglionError } from "../../../../services/common/errors/ganglion-error.ts";
import { readLog } from "../../../kit/read-log.ts";
import {
  type Caller,
  emit,
  event,
  idle,
  json,
  refused,
  refusedField,
  running,
  type SessionKit,
  same,
  userMessage,
} from "../session-kit.ts";
import { Suite } from "../suite.ts";

/** Appends: dense, atomic, idempotent, fenced. */
export function appendSuite(kit: () => SessionKit): void {
  describe("append", () => {
    const suite = new Suite(kit, "append");

    const read = (sessionId: string) =>
      readLog(sessionId, (request) => suite.client.session.getEvents(request));

    it("answers positions, times and minted ids in the order of the request", async () => {
      const { id } = await suite.create();
      const answer = await emit(suite.client, id, [userMessage("a", "sevt_mine"), userMessage("b")]);
      same(
        answer.stored.map(({ position, isDuplicate }) => [position, isDuplicate]),
        [
          [2n, false],
          [3n, false],
        ],
      );
      assert.equal(answer.headPosition, 3n);
      assert.equal(answer.stored[0]?.eventId, "sevt_mine");
      assert.match(answer.stored[1]?.eventId ?? "", /^sevt_/);
      const stored = (await read(id))[1];
      same(
        [stored?.id, stored?.type, stored?.epoch, stored?.actor],
        ["sevt_mine", "user.message", 0n, { role: 7, subject: "apikey_test" }],
      );
      same(stored?.createTime, answer.stored[0]?.createTime);
    });

    it("32 appenders on one session leave dense positions and no duplicate [B038, B039, M28, M29]", async () => {
      const { id } = await suite.create();
      const callers = await Promise.all(Array.from({ length: 4 }, () => kit().asClient()));
      const sent = await Promise.all(
        Array.from({ length: 32 }, async (_, writer) => {
          const ids: string[] = [];
          for (let n = 0; n < 5; n++) {
            const events = [
              userMessage(`${writer}.${n}`, `sevt_${writer}_${n}`),
              userMessage("+", `sevt_${writer}_${n}b`),
            ];
            await emit(callers[writer % 4] as Caller, id, events);
            ids.push(...events.map((one) => one.id));
          }
          return ids;
        }),
      );
      const events = await read(id);
      same(
        events.map(({ position }) => position),
        events.map((_, index) => BigInt(index + 1)),
      );
      same(
        events
          .slice(1)
          .map((one) => one.id)
          .sort(),
        sent.flat().sort(),
      );
      // Both events of a call are neighbours: an append is one piece.
      for (const one of events.slice(1)) {
        if (one.id.endsWith("b")) continue;
        assert.equal(events[Number(one.position)]?.id, `${one.id}b`);
      }
      const times = events.map(
        ({ createTime }) => (createTime?.seconds ?? 0n) * 1_000_000_000n + BigInt(createTime?.nanos ?? 0),
      );
      same(
        times,
        [...times].sort((a, b) => (a < b ? -1 : a > b ? 1 : 0)),
      );
    });

    it("many sessions share statements and each keeps its own answer", async () => {
      const sessions = await Promise.all(Array.from({ length: 12 }, () => suite.create()));
      const answers = await Promise.all(
        Array.from({ length: 120 }, (_, n) => {
          const session = sessions[n % 12];
          return emit(suite.client, session?.id ?? "", [userMessage(String(n), `sevt_s${n}`)]).then(
            (answer) => ({
              n,
              answer,
            }),
          );
        }),
      );
      for (const session of sessions) {
        const events = await read(session.id);
        assert.equal(events.length, 11);
        for (const { n, answer } of answers) {
          if (sessions[n % 12]?.id !== session.id) continue;
          assert.equal(events[Number(answer.stored[0]?.position) - 1]?.id, `sevt_s${n}`);
        }
      }
    });

    it("answers a repeated event with its first position, alone or among new ones", async () => {
      const { id } = await suite.create();
      const first = await emit(suite.client, id, [userMessage("a", "sevt_a")]);
      const again = await emit(suite.client, id, [userMessage("a", "sevt_a")]);
      same(again.stored, [{ ...first.stored[0], isDuplicate: true }]);
      const mixed = await emit(suite.client, id, [
        userMessage("b", "sevt_b"),
        userMessage("a", "sevt_a"),
        userMessage("c", "sevt_c"),
      ]);
      same(
        mixed.stored.map(({ eventId, position, isDuplicate }) => [eventId, position, isDuplicate]),
        [
          ["sevt_b", 3n, false],
          ["sevt_a", 2n, true],
          ["sevt_c", 4n, false],
        ],
      );
      assert.equal(mixed.headPosition, 4n);
    });

    it("refuses an id with another body and stores none of the call", async () => {
      const { id } = await suite.create();
      await emit(suite.client, id, [userMessage("a", "sevt_a")]);
      await assert.rejects(
        emit(suite.client, id, [userMessage("new", "sevt_new"), userMessage("other", "sevt_a")]),
        (error: GanglionError) => {
          assert.equal(error.metadata.id, "sevt_a");
          return refused("ALREADY_EXISTS", "ID_REUSED")(error);
        },
      );
      assert.equal((await read(id)).length, 2);
    });

    it("ids that mean something elsewhere are ids, alone and among others", async () => {
      const sessions = await Promise.all(Array.from({ length: 8 }, () => suite.create()));
      const ids = ["NULL", "null", "true", "-1", "__"];
      await Promise.all(
        sessions.map(({ id }) =>
          emit(
            suite.client,
            id,
            ids.map((name) => userMessage(name, name)),
          ),
        ),
      );
      for (const { id } of sessions)
        same(
          (await read(id)).slice(1).map((one) => one.id),
          ids,
        );
    });

    it("one caller's duplicate does not fail those who share its statement [A136]", async () => {
      const { id } = await suite.create();
      const others = await Promise.all(Array.from({ length: 6 }, () => suite.create()));
      await emit(suite.client, id, [userMessage("a", "sevt_a")]);
      const calls = [
        emit(suite.client, id, [userMessage("other", "sevt_a")]).catch((error) => error),
        ...others.map((other) => emit(suite.client, other.id, [userMessage("x")])),
        emit(suite.client, id, [userMessage("a", "sevt_a")]),
      ];
      const [clash, ...rest] = await Promise.all(calls);
      refused("ALREADY_EXISTS", "ID_REUSED")(clash);
      same(
        rest.map((answer) => answer.headPosition),
        [2n, 2n, 2n, 2n, 2n, 2n, 2n],
      );
    });

    it("the same call twice at once is stored once", async () => {
      const { id } = await suite.create();
      const answers = await Promise.all(
        Array.from({ length: 8 }, () =>
          emit(suite.client, id, [userMessage("a", "sevt_a"), userMessage("b", "sevt_b")]),
        ),
      );
      for (const answer of answers)
        same(
          answer.stored.map(({ position }) => position),
          [2n, 3n],
        );
      assert.equal((await read(id)).length, 3);
    });

    it("of two appends that expect the same head one wins, the other hears the head [B041]", async () => {
      const { id } = await suite.create();
      const results = await Promise.allSettled(
        ["sevt_a", "sevt_b"].map((name) =>
          emit(suite.client, id, [userMessage(name, name)], { expectedPosition: 1n }),
        ),
      );
      const lost = results.filter((result) => result.status === "rejected");
      assert.equal(lost.length, 1);
      assert.equal(lost[0]?.reason.metadata.head_position, "2");
      refused("ABORTED", "POSITION_CONFLICT")(lost[0]?.reason);
      assert.equal((await read(id)).length, 2);
    });

    it("a retry of an append that was stored is answered although its expected head is past", async () => {
      const { id } = await suite.create();
      const first = await emit(suite.client, id, [userMessage("a", "sevt_a")], { expectedPosition: 1n });
      await emit(suite.client, id, [userMessage("b")]);
      const again = await emit(suite.client, id, [userMessage("a", "sevt_a")], { expectedPosition: 1n });
      same(again.stored, [{ ...first.stored[0], isDuplicate: true }]);
      await assert.rejects(
        emit(suite.client, id, [userMessage("a", "sevt_a"), userMessage("c", "sevt_c")], {
          expectedPosition: 1n,
        }),
        refused("ABORTED", "POSITION_CONFLICT"),
      );
    });

    it("a harness appends under the epoch of its lease and no other", async () => {
      const { id } = await suite.create();
      const { epoch } = await suite.acquire(id);
      await emit(suite.harness, id, [running()], { epoch });
      const stale = refused("FAILED_PRECONDITION", "STALE_EPOCH");
      await assert.rejects(emit(suite.harness, id, [running()], { epoch: epoch + 1n }), stale);
      await assert.rejects(emit(suite.harness, id, [running()], { epoch: 0n }), stale);
      await assert.rejects(emit(suite.harness, id, [running()]), stale);
      const other = await kit().as("harness", "harness-thief");
      await assert.rejects(emit(other, id, [running()], { epoch }), stale);
      await suite.harness.session.releaseLease({ sessionId: id, epoch, settledPosition: undefined });
      await assert.rejects(emit(suite.harness, id, [running()], { epoch }), stale);
      const events = await read(id);
      same(events.map((one) => [one.type, one.epoch]).slice(-1), [["session.status_running", epoch]]);
    });

    it("a stale brain is told so also for what it had stored before", async () => {
      const { id } = await suite.create();
      const first = await suite.acquire(id);
      const begun = running("sevt_running");
      await emit(suite.harness, id, [begun], { epoch: first.epoch });
      await suite.acquire(id);
      await assert.rejects(
        emit(suite.harness, id, [begun], { epoch: first.epoch }),
        refused("FAILED_PRECONDITION", "STALE_EPOCH"),
      );
    });

    it("goes idle only where the harness said that it stands", async () => {
      const { id } = await suite.create();
      const { epoch, headPosition } = await suite.acquire(id);
      await assert.rejects(emit(suite.harness, id, [idle()], { epoch }), refusedField("expected_position"));
      await emit(suite.client, id, [userMessage("meanwhile")]);
      await assert.rejects(
        emit(suite.harness, id, [idle()], { epoch, expectedPosition: headPosition }),
        refused("ABORTED", "POSITION_CONFLICT"),
      );
      await emit(suite.harness, id, [idle()], { epoch, expectedPosition: headPosition + 1n });
    });

    it("the end of a session by its brain revokes its tokens in the same transaction", async () => {
      const { id } = await suite.create();
      const { epoch } = await suite.acquire(id);
      const end = event({ $case: "sessionStatusTerminated", value: { reason: "no_progress" } }, "sevt_end");
      const answer = await emit(suite.harness, id, [end], { epoch });
      assert.equal((await kit().fenceOf(id))?.ended, true);
      const again = await emit(suite.harness, id, [end], { epoch });
      same(again.stored, [{ ...answer.stored[0], isDuplicate: true }]);
      await assert.rejects(
        emit(suite.client, id, [userMessage("late")]),
        refused("FAILED_PRECONDITION", "SESSION_ENDED"),
      );
    });

    it("refuses an event above 1 MiB and a batch above 3 MiB, naming the limit, and stores nothing [B128, A136]", async () => {
      const { id } = await suite.create();
      const big = (kib: number) => userMessage("x".repeat(kib * 1024));
      await assert.rejects(emit(suite.client, id, [big(1025)]), (error: GanglionError) => {
        assert.equal(error.metadata.limit_bytes, "1048576");
        return refused("RESOURCE_EXHAUSTED", "TOO_LARGE")(error);
      });
      await assert.rejects(
        emit(suite.client, id, [big(1000), big(1000), big(1000), big(100)]),
        (error: GanglionError) => {
          assert.equal(error.metadata.limit_bytes, "3145728");
          return refused("RESOURCE_EXHAUSTED", "TOO_LARGE")(error);
        },
      );
      const answer = await emit(suite.client, id, [big(1000), big(1000), big(1000)]);
      assert.equal(answer.headPosition, 4n);
    });

    it("an open event keeps its type, its bytes and whether it may be ignored", async () => {
      const { id } = await suite.create();
      const { epoch } = await suite.acquire(id);
      const open = event({
        $case: "open",
        value: { type: "acme.note", data: json({ b: 1, a: [null] }), contentType: "" },
      });
      open.mayIgnore = true;
      open.traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
      await emit(suite.harness, id, [open], { epoch });
      const stored = (await read(id)).at(-1);
      same([stored?.type, stored?.mayIgnore, stored?.traceparent], ["acme.note", true, open.traceparent]);
      same(stored?.body, open.body);
    });
  });
}

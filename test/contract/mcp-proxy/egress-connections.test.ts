import assert from "node:assert/strict";
import { once } from "node:events";
import { connect } from "node:net";
import {
  BindingServiceService,
  type IssueTokenRequest,
} from "../../../services/gen/ganglion/mcpproxy/v1/binding_service.ts";
import { until } from "../../kit/until.ts";
import { EgressStage } from "./egress-stage.ts";
import { ANYWHERE, askFrom, type HandKit, only, rawFrom } from "./hand-kit.ts";
import { failureOf, type ProxyKit } from "./proxy-kit.ts";
import type { Recorder } from "./recorder.ts";

describe("a connection at the egress door", () => {
  let stage: EgressStage;
  let kit: ProxyKit;
  let hands: HandKit;
  let plain: Recorder;
  let api: Recorder;

  before(async function () {
    this.timeout(90_000);
    stage = await EgressStage.start();
    ({ kit, hands, plain, api } = stage);
  });
  after(() => stage?.stop());
  beforeEach(() => stage.reset());

  it("closes a connection without a valid first line, and writes it down [A011] [A127]", async () => {
    const bound = await kit.bound();
    for (const preamble of [
      "GET http://localhost/ HTTP/1.1\r\nhost: localhost\r\n\r\n",
      "GANGLION/1 fake\r\n",
      `GANGLION/1 gst_${"a".repeat(43)}\r\n`,
      `GANGLION/2 ${bound.token}\r\n`,
      // A brain's token opens other doors [A129].
      `GANGLION/1 ${bound.token}\r\n`,
    ]) {
      const before = await countDenied();
      const port = await hands.forward("", preamble);
      assert.equal(await rawFrom({ port }, `GET ${stage.http()} HTTP/1.1\r\n\r\n`), "");
      assert.equal(await countDenied(), before + 1, preamble);
    }
    assert.equal(stage.forwarded, 0);
  });

  const countDenied = async () => {
    const text =
      "SELECT count(*)::int AS n FROM proxy.audit_records WHERE operation = 'egress' AND effect = 'deny'";
    return ((await kit.sql("ganglion_owner", text))[0] as { n: number }).n;
  };

  it("serves sandbox instances only, and each its own hands only", async () => {
    const hand = await hands.hand({ networking: ANYWHERE });
    for (const [service, instance] of [
      ["harness", "harness-1"],
      ["sandbox", "sandbox-2"],
    ] as const) {
      const socket = await hands.dial(service, instance);
      socket.write(
        `GANGLION/1 ${hand.token}\r\nGET ${stage.http()} HTTP/1.1\r\nhost: localhost:${plain.port}\r\n\r\n`,
      );
      await once(socket.resume(), "end");
      socket.destroy();
    }
    assert.equal(stage.forwarded, 0);
    assert.deepEqual(await stage.rows(hand), ["decision deny CALLER_MISMATCH"]);
  });

  it("refuses each request once the session has ended, and Vault is not asked [A131] [L7]", async () => {
    const hand = await hands.hand({ networking: ANYWHERE });
    assert.equal((await askFrom(hand, stage.http())).status, 200);
    await kit.raiseFence(hand.sessionId, 1n, true);
    for (const answer of [await askFrom(hand, stage.http()), await askFrom(hand, stage.http())]) {
      assert.deepEqual([answer.status, answer.reason], [403, "SESSION_ENDED"]);
    }
    assert.deepEqual((await stage.rows(hand)).slice(3), Array(2).fill("decision deny SESSION_ENDED"));
  });

  it("refuses a token whose row somebody changed in the database", async () => {
    const hand = await hands.hand({ networking: only("example.test") });
    await kit.sql(
      "ganglion_owner",
      `UPDATE proxy.bindings SET networking = '{"type":"unrestricted"}' WHERE session_id = $1`,
      [hand.sessionId],
    );
    assert.equal(
      await rawFrom(hand, `GET ${stage.http()} HTTP/1.1\r\nhost: localhost:${plain.port}\r\n\r\n`),
      "",
    );
    assert.equal(stage.forwarded, 0);
    assert.deepEqual(await stage.rows(hand), ["decision deny ROW_TAMPERED"]);
  });

  it("cuts streams, tunnels and idle connections within 5 s of the session's end [L7]", async function () {
    this.timeout(20_000);
    const hand = await hands.hand({ networking: ANYWHERE });
    plain.listener = (_request, response) => void response.writeHead(200).write("begin");
    api.listener = (_request, response) => void response.writeHead(200).write("begin");
    const idle = (async () => {
      const socket = connect(hand.port, "127.0.0.1");
      socket.on("error", () => {});
      await once(socket, "connect");
      return socket.resume();
    })();
    const stream = askFrom(hand, stage.http());
    const tunnel = askFrom(hand, stage.https());
    await until(
      async () => (await stage.rows(hand)).filter((row) => row === "dispatch").length === 2,
      "two dispatches",
    );
    const socket = await idle;
    const closed = once(socket, "close");
    const endedAt = performance.now();
    await kit.raiseFence(hand.sessionId, 1n, true);
    await Promise.all([assert.rejects(stream), assert.rejects(tunnel), closed]);
    assert.ok(performance.now() - endedAt < 5000);
    await until(async () => (await stage.rows(hand)).length === 6, "six records");
    assert.deepEqual((await stage.rows(hand)).slice(4), Array(2).fill("outcome session_ended"));
  });

  it("closes what an upstream still sends when the hand goes away [A106]", async () => {
    const hand = await hands.hand({ networking: ANYWHERE });
    const gone = new Promise<void>((resolve) => {
      plain.listener = (_request, response) => {
        response.once("close", resolve);
        response.writeHead(200).write("begin");
      };
    });
    const socket = connect(hand.port, "127.0.0.1");
    socket.write(`GET ${stage.http()} HTTP/1.1\r\nhost: localhost:${plain.port}\r\n\r\n`);
    await once(socket, "data");
    socket.destroy();
    await gone;
    await until(async () => (await stage.rows(hand)).length === 3, "three records");
    assert.equal((await stage.rows(hand)).at(-1), "outcome cancelled");
  });

  it("issues tokens of hands to sandbox instances, and of brains to harnesses, only", async () => {
    const hand = await hands.hand({ networking: ANYWHERE });
    const { sessionId, handId } = hand;
    const asHarness = await kit.client(BindingServiceService, "harness");
    const asSandbox = await kit.client(BindingServiceService, "sandbox");
    const forHand: IssueTokenRequest = { sessionId, handId, epoch: 0n, audience: 2 };
    const forBrain: IssueTokenRequest = { sessionId, handId: "", epoch: 1n, audience: 1 };
    assert.equal((await failureOf(asHarness.issueToken(forHand))).reason, "ROLE_NOT_ALLOWED");
    assert.equal((await failureOf(asSandbox.issueToken(forBrain))).reason, "ROLE_NOT_ALLOWED");
    assert.equal((await failureOf(asHarness.getHandSetup({ sessionId, handId }))).reason, "ROLE_NOT_ALLOWED");
    const wrongs: Partial<IssueTokenRequest>[] = [
      { handId: "" },
      { handId: "x" },
      { epoch: 1n },
      { audience: 0 },
    ];
    for (const wrong of wrongs) {
      const failure = await failureOf(asSandbox.issueToken({ ...forHand, ...wrong }));
      assert.equal(failure.reason, "INVALID_FIELD", Object.keys(wrong).join());
    }
    kit.leases.delete(sessionId);
    assert.equal((await failureOf(asSandbox.issueToken(forHand))).reason, "LEASE_NOT_CONFIRMED");
    await kit.raiseFence(sessionId, 1n, true);
    assert.equal((await failureOf(asSandbox.issueToken(forHand))).reason, "SESSION_ENDED");
    assert.equal((await failureOf(asSandbox.getHandSetup({ sessionId, handId }))).reason, "SESSION_ENDED");
  });
});

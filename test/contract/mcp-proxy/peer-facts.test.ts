import assert from "node:assert/strict";
import {
  type Record as AuditRecord,
  RecordKind,
} from "../../../services/gen/ganglion/audit/v1/audit_service.ts";
import { TestCa } from "../../kit/ca.ts";
import { askFrom, HandKit, only } from "./hand-kit.ts";
import { HELLO, MODEL, PLAIN } from "./model-stage.ts";
import { failureOf, type ProxyKit } from "./proxy-kit.ts";
import { startRecorded } from "./recorded-upstreams.ts";
import { Recorder } from "./recorder.ts";

const SECRET = `sk-${crypto.randomUUID()}`;

describe("the connection in a record", function () {
  this.timeout(60_000);
  let ca: TestCa;
  let kit: ProxyKit;
  let hands: HandKit;
  let api: Recorder;
  let plain: Recorder;
  let foreign: Recorder;
  let foreignCa: TestCa;

  before(async function () {
    this.timeout(90_000);
    ca = await TestCa.create();
    foreignCa = await TestCa.create();
    [api, plain, foreign] = await Promise.all([
      Recorder.start(ca),
      Recorder.start(),
      Recorder.start(foreignCa),
    ]);
    kit = await startRecorded(ca, [api, plain, foreign], SECRET);
    hands = new HandKit(kit);
  });
  after(async () => {
    hands?.stop();
    await kit?.stop();
    for (const recorder of [api, plain, foreign]) recorder?.stop();
    for (const authority of [ca, foreignCa]) authority?.remove();
  });
  beforeEach(() => {
    for (const recorder of [api, plain, foreign]) {
      recorder.connections = 0;
      recorder.listener = (_request, response) => void response.end("hello");
    }
  });

  const https = ({ port }: Recorder) => `https://localhost:${port}/x`;
  const facts = ({ tlsVersion, peerSpkiSha256 }: AuditRecord) => [tlsVersion, peerSpkiSha256];
  /** Of the outcomes whose request was dispatched, in their order; that nothing else has any is asserted. */
  const seen = async (sessionId: string, count: number): Promise<string[][]> => {
    const sent = (records: AuditRecord[]) => {
      const kindIs = (wanted: RecordKind) => records.filter(({ kind }) => kind === wanted);
      const ids = new Set(kindIs(RecordKind.RECORD_KIND_DISPATCH).map(({ requestId }) => requestId));
      return kindIs(RecordKind.RECORD_KIND_OUTCOME).filter(({ requestId }) => ids.has(requestId));
    };
    const records = await kit.recordsWhen(sessionId, (all) => sent(all).length >= count);
    const outcomes = sent(records);
    for (const record of records) {
      if (!outcomes.includes(record)) assert.deepEqual(facts(record), ["", ""]);
      assert.equal(record.formatVersion, 3);
    }
    return outcomes.map(facts);
  };
  const withKey = () =>
    hands.hand({
      networking: only("localhost"),
      variables: [{ name: "API_KEY", secret: SECRET, hosts: ["localhost"] }],
    });

  it("is told of the one that was used: new, used again, and after the server has another key", async () => {
    const hand = await withKey();
    const headers = { "x-api-key": hand.placeholder("API_KEY") };
    await askFrom(hand, https(api), { headers });
    await askFrom(hand, https(api), { headers });
    assert.equal(api.connections, 1, "the second one went over the same connection");
    const first = api.spki;
    await api.renew(ca);
    await askFrom(hand, https(api), { headers });
    assert.equal(api.connections, 2);
    assert.notEqual(api.spki, first);
    assert.deepEqual(await seen(hand.sessionId, 3), [
      ["TLSv1.3", first],
      ["TLSv1.3", first],
      ["TLSv1.3", api.spki],
    ]);
  });

  it("says that there is no TLS over plain HTTP, and that a tunnel's is the hand's own", async () => {
    const hand = await hands.hand({ networking: only("localhost") });
    await askFrom(hand, `http://localhost:${plain.port}/x`);
    assert.deepEqual(await seen(hand.sessionId, 1), [["none", ""]]);
    const other = await hands.hand({ networking: only("localhost") });
    await askFrom(other, https(api));
    assert.deepEqual(await seen(other.sessionId, 1), [["tunnel", ""]]);
  });

  it("says nothing of a server whose certificate was not accepted, though the request was dispatched", async () => {
    const hand = await withKey();
    const answer = await askFrom(hand, https(foreign), {
      headers: { "x-api-key": hand.placeholder("API_KEY") },
    });
    assert.equal(answer.status, 502);
    assert.deepEqual(await seen(hand.sessionId, 1), [["", ""]]);
  });

  it("is the model's, and that of an MCP server, also where its answer was of no use", async () => {
    const url = https(api);
    const session = await kit.bound({ models: [MODEL], servers: [{ name: "demo", url, secret: SECRET }] });
    api.listener = (_request, response) =>
      void response.writeHead(200, { "content-type": "application/json" }).end("{}");
    const { fetch } = await kit.door();
    const answer = await fetch(`https://${kit.doorAddress()}/v1/messages`, {
      method: "POST",
      headers: { ...PLAIN, authorization: `Bearer ${session.token}` },
      body: JSON.stringify(HELLO),
    });
    assert.equal(answer.status, 200);
    await answer.text();
    assert.deepEqual(await seen(session.sessionId, 1), [["TLSv1.3", api.spki]]);
    const metadata = { "ganglion-session-token": session.token };
    const listing = (await kit.mcp()).listTools({ mcpServerName: "demo" }, { metadata });
    assert.equal((await failureOf(listing)).reason, "UPSTREAM_MALFORMED");
    assert.deepEqual(await seen(session.sessionId, 2), [
      ["TLSv1.3", api.spki],
      ["TLSv1.3", api.spki],
    ]);
  });
});

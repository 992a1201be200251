import assert from "node:assert/strict";
import { createHash, createHmac, X509Certificate } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { connect as tlsConnect } from "node:tls";
import { newId } from "../../../services/common/ids/new-id.ts";
import { VERSION } from "../../../services/common/version.ts";
import {
  type Record as AuditRecord,
  RecordKind,
} from "../../../services/gen/ganglion/audit/v1/audit_service.ts";
import { TestCa } from "../../kit/ca.ts";
import { askFrom, connectFrom, HandKit, only } from "./hand-kit.ts";
import { HELLO, MODEL, PLAIN } from "./model-stage.ts";
import { failureOf, type ProxyKit } from "./proxy-kit.ts";
import { startRecorded } from "./recorded-upstreams.ts";
import { Recorder } from "./recorder.ts";

const SECRET = `sk-${crypto.randomUUID()}`;
const { RECORD_KIND_DISPATCH: DISPATCH, RECORD_KIND_OUTCOME: OUTCOME } = RecordKind;

describe("a record", function () {
  this.timeout(60_000);
  let ca: TestCa;
  let kit: ProxyKit;
  let hands: HandKit;
  let api: Recorder;
  let plain: Recorder;
  /** Nobody listens there any more. */
  let gone: Recorder;
  let key: Buffer;

  before(async function () {
    this.timeout(90_000);
    ca = await TestCa.create();
    [api, plain, gone] = await Promise.all([Recorder.start(ca), Recorder.start(), Recorder.start()]);
    gone.stop();
    kit = await startRecorded(ca, [api, plain, gone], SECRET);
    hands = new HandKit(kit);
    const path = "ganglion/data/proxy/audit-hmac-key-1";
    const { body } = await kit.vault.http.call("GET", path, { token: kit.rootToken });
    key = Buffer.from((body.data as { data: { key: string } }).data.key, "base64");
  });
  after(async () => {
    hands?.stop();
    await kit?.stop();
    for (const recorder of [api, plain]) recorder?.stop();
    ca?.remove();
  });
  beforeEach(() => {
    for (const recorder of [api, plain]) {
      recorder.seen.length = 0;
      recorder.listener = (_request, response) => void response.end("hello");
    }
  });

  // As docs/AUDIT_FORMAT.md has it.
  const hmac = (mine: Buffer, text: string | Buffer) => createHmac("sha256", mine).update(text).digest();
  const ofBody = (body: string | Buffer) => hmac(hmac(key, "ganglion audit body v1"), body).toString("hex");
  const keyId = () =>
    createHash("sha256").update("ganglion audit hmac key v1\0").update(key).digest("hex").slice(0, 8);
  /** Digests of all certificates that were issued to a service. */
  const certificatesOf = (service: string) =>
    readdirSync(kit.ca.root)
      .filter((name) => name.startsWith(`${service}.`) && name.includes(".files."))
      .map((name) => new X509Certificate(readFileSync(join(kit.ca.root, name, "cert.pem"))))
      .map(({ raw }) => createHash("sha256").update(raw).digest("hex"));
  const kindIs = (records: readonly AuditRecord[], wanted: RecordKind) =>
    records.filter(({ kind }) => kind === wanted);
  /** The session's records, once there are so many outcomes; what all of them have in common is asserted. */
  const recordsOf = async (sessionId: string, outcomes: number, service: string) => {
    const records = await kit.recordsWhen(sessionId, (all) => kindIs(all, OUTCOME).length >= outcomes);
    const audience = service === "sandbox" ? "hand" : "harness";
    for (const record of records.filter(({ kind }) => kind <= OUTCOME)) {
      assert.equal(record.formatVersion, 3);
      assert.equal(record.tokenAudience, audience);
      assert.ok(certificatesOf(service).includes(record.callerCertSha256), "another's certificate, or none");
      assert.deepEqual([record.build, record.hmacKeyId], [`ganglion ${VERSION}`, keyId()]);
      if (record.kind === OUTCOME) continue;
      const { requestBodyHmac, responseBodyHmac, responseWithheld, upstreamEffect } = record;
      assert.deepEqual(
        [requestBodyHmac, responseBodyHmac, responseWithheld, upstreamEffect],
        ["", "", false, ""],
      );
    }
    return records;
  };
  const ending = ({ requestBodyHmac, responseBodyHmac, responseWithheld, upstreamEffect }: AuditRecord) => ({
    ...{ sent: requestBodyHmac, back: responseBodyHmac },
    ...{ isWithheld: responseWithheld, effect: upstreamEffect },
  });
  const RELEASED = { isWithheld: false, effect: "complete" };

  it("of a model request names certificate, audience, Vault token and both bodies", async () => {
    const answer = JSON.stringify({ id: "msg_1", content: [] });
    api.listener = (_request, response) =>
      void response.writeHead(200, { "content-type": "application/json" }).end(answer);
    const { fetch } = await kit.door();
    const session = await kit.bound({ models: [MODEL] });
    const ask = () =>
      fetch(`https://${kit.doorAddress()}/v1/messages`, {
        method: "POST",
        headers: { ...PLAIN, authorization: `Bearer ${session.token}` },
        body: JSON.stringify(HELLO),
      });
    assert.equal(await (await ask()).text(), answer);
    const records = await recordsOf(session.sessionId, 1, "harness");
    const [seen] = api.seen;
    assert.ok(seen);
    const whole = { sent: ofBody(seen.body), back: ofBody(answer), ...RELEASED };
    assert.deepEqual(kindIs(records, OUTCOME).map(ending), [whole]);
    const [decision, dispatch, outcome] = records;
    assert.equal(decision?.vaultTokenAccessorHmac, "");
    assert.match(dispatch?.vaultTokenAccessorHmac ?? "", /^[0-9a-f]{64}$/);
    assert.equal(outcome?.vaultTokenAccessorHmac, dispatch?.vaultTokenAccessorHmac);
    const [row] = await kit.sql(
      "ganglion_owner",
      "SELECT accessor FROM proxy.vault_tokens WHERE session_id = $1",
      [session.sessionId],
    );
    const accessorKey = hmac(key, "ganglion audit vault token accessor v1");
    assert.equal(dispatch?.vaultTokenAccessorHmac, hmac(accessorKey, row.accessor).toString("hex"));

    // An error's text stays inside, and one that quotes the credential has no HMAC.
    for (const text of ["no", `no ${SECRET}`]) {
      api.listener = (_request, response) => void response.writeHead(400).end(text);
      assert.equal((await ask()).status, 400);
    }
    api.listener = (_request, response) => void response.writeHead(302, { location: "/" }).end("go");
    assert.equal((await ask()).status, 503);
    const sent = ofBody(seen.body);
    assert.deepEqual(
      kindIs(await recordsOf(session.sessionId, 4, "harness"), OUTCOME)
        .slice(1)
        .map(ending),
      [
        { sent, back: ofBody("no"), isWithheld: true, effect: "complete" },
        { sent, back: "", isWithheld: true, effect: "complete" },
        { sent, back: "", isWithheld: true, effect: "sent" },
      ],
    );
  });

  it("of an answer that is cut has what was read of it, and says that it was not all", async () => {
    let cut = () => {};
    api.listener = (_request, response) => {
      cut = () => response.destroy();
      response.writeHead(200, { "content-type": "text/event-stream" }).write("event: ping\n\n");
    };
    const { fetch } = await kit.door();
    const session = await kit.bound({ models: [MODEL] });
    const headers = { ...PLAIN, authorization: `Bearer ${session.token}` };
    const url = `https://${kit.doorAddress()}/v1/messages`;
    const answer = await fetch(url, { method: "POST", headers, body: JSON.stringify(HELLO) });
    const reader = answer.body?.getReader();
    assert.ok(reader);
    // What has come to here has come to mcp-proxy.
    let came = "";
    while (!came.includes("ping")) came += Buffer.from((await reader.read()).value ?? []).toString();
    cut();
    await assert.rejects(async () => {
      while (!(await reader.read()).done);
    });
    const [outcome] = kindIs(await recordsOf(session.sessionId, 1, "harness"), OUTCOME);
    assert.ok(outcome);
    assert.deepEqual(ending(outcome), {
      sent: ofBody(api.seen[0]?.body ?? ""),
      back: ofBody("event: ping\n\n"),
      ...{ isWithheld: true, effect: "sent" },
    });
    assert.equal(outcome.responseBytes, 13n);
  });

  it("of a request that was dispatched and never left says so", async () => {
    const url = `http://localhost:${gone.port}/mcp`;
    const session = await kit.bound({ servers: [{ name: "gone", url, secret: SECRET }] });
    const metadata = { "ganglion-session-token": session.token };
    const listing = (await kit.mcp()).listTools({ mcpServerName: "gone" }, { metadata });
    assert.equal((await failureOf(listing)).reason, "UPSTREAM_UNREACHABLE");
    const records = await recordsOf(session.sessionId, 1, "harness");
    assert.equal(kindIs(records, DISPATCH).length, 1);
    const nothing = { sent: "", back: "", isWithheld: false, effect: "none" };
    assert.deepEqual(kindIs(records, OUTCOME).map(ending), [nothing]);
  });

  it("of an operation on an MCP server has all of its messages, and of all that came of their answers", async () => {
    const came: string[] = [];
    api.listener = (_request, response) => {
      const rpc = JSON.parse(String(api.seen.at(-1)?.body)) as { id?: number; method: string };
      const results: Record<string, object> = {
        initialize: {
          protocolVersion: "2025-06-18",
          capabilities: { tools: {} },
          serverInfo: { name: "demo", version: "1" },
        },
        "tools/list": { tools: [{ name: "one", inputSchema: { type: "object" } }] },
        "tools/call": { content: [{ type: "text", text: "done" }] },
      };
      if (rpc.id === undefined) return void response.writeHead(202).end();
      const text = JSON.stringify({ jsonrpc: "2.0", id: rpc.id, result: results[rpc.method] ?? {} });
      came.push(text);
      response.writeHead(200, { "content-type": "application/json" }).end(text);
    };
    const url = `https://localhost:${api.port}/mcp`;
    const session = await kit.bound({ servers: [{ name: "demo", url, secret: SECRET }] });
    const metadata = { "ganglion-session-token": session.token };
    const mcp = await kit.mcp();
    await mcp.listTools({ mcpServerName: "demo" }, { metadata });
    const listing = { seen: api.seen.splice(0).map(({ body }) => body), came: came.splice(0) };
    const call = { mcpServerName: "demo", name: "one", inputJson: Buffer.from("{}"), key: newId("sevt") };
    await mcp.callTool({ ...call, timeout: undefined, acknowledgedKeys: [] }, { metadata });
    assert.ok(listing.seen.length >= 3 && api.seen.length === 1);
    const [listed, called] = kindIs(await recordsOf(session.sessionId, 2, "harness"), OUTCOME);
    assert.ok(listed && called);
    assert.deepEqual(ending(listed), {
      sent: ofBody(Buffer.concat(listing.seen)),
      back: ofBody(listing.came.join("")),
      ...RELEASED,
    });
    const [message] = api.seen;
    assert.deepEqual(ending(called), {
      sent: ofBody(message?.body ?? ""),
      back: ofBody(came.join("")),
      ...RELEASED,
    });
  });

  it("of a hand's request has the body as it went, unless a credential stood in it", async () => {
    const hand = await hands.hand({
      networking: only("localhost"),
      variables: [{ name: "API_KEY", secret: SECRET, hosts: ["localhost"] }],
    });
    const placeholder = hand.placeholder("API_KEY");
    const url = `https://localhost:${api.port}/x`;
    const post = (body: string | string[], headers: Record<string, string> = {}) =>
      askFrom(hand, url, { method: "POST", headers: { "content-type": "text/plain", ...headers }, body });
    await post("with a key beside it", { "x-api-key": placeholder });
    await post(["in ", "pieces"]);
    await post(`with ${placeholder} inside`);
    await askFrom(hand, url);
    api.listener = (_request, response) => void response.end(`you said ${SECRET}`);
    await post("echo");
    const records = await recordsOf(hand.sessionId, 10, "sandbox");
    const sent = new Set(kindIs(records, DISPATCH).map(({ requestId }) => requestId));
    const outcomes = kindIs(records, OUTCOME).filter(({ requestId }) => sent.has(requestId));
    const back = ofBody("hello");
    assert.deepEqual(outcomes.map(ending), [
      { sent: ofBody("with a key beside it"), back, ...RELEASED },
      { sent: ofBody("in pieces"), back, ...RELEASED },
      { sent: "", back, ...RELEASED },
      { sent: "", back, ...RELEASED },
      { sent: ofBody("echo"), back: "", ...RELEASED },
    ]);
    assert.equal(String(api.seen[2]?.body), `with ${SECRET} inside`);
    const ways = kindIs(records, OUTCOME).filter(({ requestId }) => !sent.has(requestId));
    assert.deepEqual(
      ways.map(({ reason, upstreamEffect }) => [reason, upstreamEffect]),
      ways.map(() => ["intercepted", "none"]),
    );
  });

  it("of a plain request has both bodies, and of a tunnel nothing but that it was used", async () => {
    const hand = await hands.hand({ networking: only("localhost") });
    await askFrom(hand, `http://localhost:${plain.port}/x`, { method: "PUT", body: "plainly" });
    const [outcome] = kindIs(await recordsOf(hand.sessionId, 1, "sandbox"), OUTCOME);
    assert.deepEqual(outcome && ending(outcome), {
      sent: ofBody("plainly"),
      back: ofBody("hello"),
      ...RELEASED,
    });
    const other = await hands.hand({ networking: only("localhost") });
    const way = await connectFrom(other, `localhost:${api.port}`);
    assert.ok("socket" in way);
    const tls = tlsConnect({ socket: way.socket, servername: "localhost", ca: ca.authority.certPem });
    tls.on("error", () => {});
    tls.end("GET /x HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n").resume();
    const [tunnel] = kindIs(await recordsOf(other.sessionId, 1, "sandbox"), OUTCOME);
    assert.deepEqual(tunnel && ending(tunnel), { sent: "", back: "", isWithheld: false, effect: "sent" });
    assert.ok(tunnel && tunnel.responseBytes > 0n);
  });

  it("of a change names the certificate that was shown, and how far it came", async () => {
    const vaultId = await kit.makeVault();
    const audit = await kit.sql(
      "ganglion_owner",
      "SELECT kind, caller_cert_sha256 AS cert, upstream_effect AS reached, build FROM proxy.audit_records WHERE target = $1 ORDER BY sequence",
      [vaultId],
    );
    const [decision, outcome] = audit as { kind: string; cert: string; reached: string; build: string }[];
    assert.deepEqual([decision?.kind, decision?.reached], ["decision", ""]);
    assert.deepEqual([outcome?.kind, outcome?.reached], ["outcome", "complete"]);
    for (const row of [decision, outcome]) {
      assert.ok(certificatesOf("operator").includes(row?.cert ?? ""));
      assert.equal(row?.build, `ganglion ${VERSION}`);
    }
  });

  it("that a process left open says whether it may have left", async () => {
    const held: { open?: () => void } = {};
    const arrived = new Promise<void>((resolve) => {
      held.open = resolve;
    });
    api.listener = () => held.open?.();
    const { fetch } = await kit.door();
    const session = await kit.bound({ models: [MODEL] });
    const headers = { ...PLAIN, authorization: `Bearer ${session.token}` };
    const url = `https://${kit.doorAddress()}/v1/messages`;
    const asked = fetch(url, { method: "POST", headers, body: JSON.stringify(HELLO) });
    asked.catch(() => {});
    await arrived;
    kit.service.process.kill("SIGKILL");
    await assert.rejects(asked);
    await kit.restartProxy();
    const wanted = RecordKind.RECORD_KIND_RECOVERY;
    const records = await kit.recordsWhen(session.sessionId, (all) => kindIs(all, wanted).length > 0);
    const [recovery] = kindIs(records, wanted);
    assert.ok(recovery);
    const { reason, upstreamEffect, tokenAudience, callerCertSha256, build } = recovery;
    assert.deepEqual([reason, upstreamEffect, tokenAudience], ["unknown", "unknown", "harness"]);
    assert.deepEqual([callerCertSha256, build], [records[0]?.callerCertSha256, `ganglion ${VERSION}`]);
  });
});

import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { brotliCompressSync } from "node:zlib";
import type { Record as AuditRecord } from "../../../services/gen/ganglion/audit/v1/audit_service.ts";
import { AuditServiceService, RecordKind } from "../../../services/gen/ganglion/audit/v1/audit_service.ts";
import { NeedleIndex } from "../../kit/secret-scan/needles.ts";
import { scanFiles } from "../../kit/secret-scan/scan-files.ts";
import { EgressStage } from "./egress-stage.ts";
import { askFrom, type HandAnswer, type HandAsk, HandKit, only, type TestHand } from "./hand-kit.ts";
import type { ProxyKit } from "./proxy-kit.ts";
import type { Recorder } from "./recorder.ts";

const EGRESS = "version: 1\ndefault:\n  egress: [{ to: listed_inside_hosts }, { to: any_public_host }]\n";
const POLICY = `${EGRESS}  mint:
    - { to: listed_inside_hosts, paths: [oauth/token], fields: [access_token, refresh_token] }
    - { to: listed_inside_hosts, methods: [POST, PUT], paths: ["api/tokens/*"], fields: [token] }
`;
const SEALED = /^ganglion_sealed_[A-Za-z0-9_-]{60,}$/;
const secretOf = () => `sk-${randomBytes(18).toString("base64url")}`;
const canaryOf = () => `cnry_${randomBytes(30).toString("hex")}`;

describe("the egress door, towards a route that makes new credentials", function () {
  this.timeout(60_000);
  let stage: EgressStage;
  let kit: ProxyKit;
  let hands: HandKit;
  let api: Recorder;
  let hand: TestHand;
  let canary: string;
  const canaries: string[] = [];
  /** All that hands were told. */
  const told: string[] = [];

  before(async function () {
    this.timeout(90_000);
    stage = await EgressStage.start(POLICY);
    ({ kit, hands, api } = stage);
  });
  after(() => stage?.stop());
  beforeEach(async () => {
    stage.reset();
    canary = canaryOf();
    canaries.push(canary);
    hand = await newHand();
  });

  const newHand = (more: { header?: boolean; body?: boolean } = {}) =>
    hands.hand({
      networking: only("localhost", "127.0.0.1"),
      variables: [{ name: "API_KEY", secret: secretOf(), hosts: ["localhost", "127.0.0.1"], ...more }],
    });
  const ask = async (from: TestHand, url: string, more: HandAsk = {}): Promise<HandAnswer> => {
    const answer = await askFrom(from, url, more);
    told.push(JSON.stringify(answer.headers), answer.body.toString("latin1"));
    return answer;
  };
  /** Has the upstream answer with that, as JSON unless it is a text. */
  const answering = (body: unknown, headers: Record<string, string> = {}) => {
    api.listener = (_request, response) => {
      const json = typeof body === "string" || Buffer.isBuffer(body) ? body : JSON.stringify(body);
      response.writeHead(200, { "content-type": "application/json", ...headers }).end(json);
    };
  };
  const mint = async (from = hand, body: object = { access_token: canary, token_type: "bearer" }) => {
    answering(body);
    const { body: got } = await ask(from, stage.https("/oauth/token?x=1"), { body: "grant_type=x" });
    stage.reset();
    const sealed = String(JSON.parse(got.toString()).access_token);
    assert.match(sealed, SEALED);
    return sealed;
  };
  const bearer = (sealed: string) => ({ headers: { authorization: `Bearer ${sealed}` } });
  const kinds = ["", "decision", "dispatch", "outcome"];
  const details = (records: AuditRecord[]) =>
    records.filter(({ detail }) => detail !== "").map(({ kind, detail }) => `${kinds[kind]} ${detail}`);
  const refused = async (from: TestHand, url: string, more: HandAsk) => {
    const { reason } = await ask(from, url, more);
    assert.equal(reason, "SEAL_INVALID");
    assert.equal(api.seen.length, 0, "it was passed on");
    assert.equal(stage.plain.seen.length, 0, "it was passed on");
    return (await stage.rows(from)).at(-1);
  };

  it("gives the hand a sealed token in its place, and the upstream the token wherever it is sent [A066]", async () => {
    answering(
      `{"access_token":"${canary}","refresh_token":"r-${canary}","note":"keep ${canary} safe","id":9007199254740993}`,
      { "x-note": canary, "x-subject-token": `o-${canary}`, "set-cookie": `s=${canaryOf()}` },
    );
    const answer = await ask(hand, stage.https("/oauth/token"), { body: "grant_type=x" });
    assert.equal(answer.status, 200);
    const got = JSON.parse(answer.body.toString()) as Record<string, string>;
    assert.match(got.access_token ?? "", SEALED);
    assert.match(got.refresh_token ?? "", SEALED);
    assert.match(got.note ?? "", /^keep \[REDACTED:mint_[0-9a-f]{16}\] safe$/);
    assert.ok(answer.body.includes('"id":9007199254740993'));
    assert.match(String(answer.headers["x-note"]), /^\[REDACTED:mint_[0-9a-f]{16}\]$/);
    // What is new in a header cannot be sealed.
    assert.equal(answer.headers["x-subject-token"], undefined);
    assert.equal(answer.headers["set-cookie"], undefined);
    stage.reset();

    const sealed = got.access_token ?? "";
    const refresh = got.refresh_token ?? "";
    const basic = (pair: string) => `Basic ${Buffer.from(pair).toString("base64")}`;
    api.listener = (request, response) => {
      response.setHeader("x-echo", String(request.headers.authorization));
      response.end(`you said ${request.headers.authorization} ${canary}`);
    };
    const used = await ask(hand, stage.https("/v1/me"), {
      headers: { authorization: `Bearer ${sealed}`, "content-type": "application/json" },
      body: JSON.stringify({ refresh, key: hand.placeholder("API_KEY") }),
    });
    assert.match(used.body.toString(), /^you said Bearer \[REDACTED:mint_\w+\] \[REDACTED:mint_\w+\]$/);
    await ask(hand, stage.https("/v1/me"), {
      headers: { authorization: basic(`x:${sealed}`), "content-type": "application/x-www-form-urlencoded" },
      body: ["a=1&refresh_token=", refresh.slice(0, 30), `${refresh.slice(30)}&b=`, sealed],
    });
    const [first, second] = api.seen;
    assert.equal(first?.headers.authorization, `Bearer ${canary}`);
    assert.equal(JSON.parse(first?.body.toString() ?? "").refresh, `r-${canary}`);
    assert.match(JSON.parse(first?.body.toString() ?? "").key, /^sk-/);
    assert.equal(first?.headers["content-length"], String(first?.body.length));
    assert.equal(second?.headers.authorization, basic(`x:${canary}`));
    assert.equal(second?.body.toString(), `a=1&refresh_token=r-${canary}&b=${canary}`);
  });

  it("says in the log which were made and used, by the names of what the hand carries [A066]", async () => {
    const sealed = await mint();
    await ask(hand, stage.https("/v1/me"), bearer(sealed));
    assert.equal(api.seen[0]?.headers.authorization, `Bearer ${canary}`);
    const records = await kit.records(hand.sessionId);
    const said = details(records);
    const name = /mint_[0-9a-f]{16}/.exec(said[0] ?? "")?.[0];
    assert.deepEqual(said, [
      `outcome by default.mint[0] sealed ${name}`,
      `decision used ${name}`,
      `dispatch used ${name}`,
      `outcome used ${name}`,
    ]);
    const text = JSON.stringify(records, (_, value) => String(value));
    assert.ok(!text.includes(sealed) && !text.includes(canary));
  });

  it("opens it at every replica, and after a restart [A066]", async function () {
    this.timeout(120_000);
    const sealed = await mint();
    const replica = await kit.startProxy({ GANGLION_INSTANCE: "mcp-proxy-2" });
    const there = new HandKit(kit, replica);
    try {
      const port = await there.forward(hand.token);
      await ask({ ...hand, port }, stage.https("/v1/me"), bearer(sealed));
      assert.equal(api.seen[0]?.headers.authorization, `Bearer ${canary}`);
    } finally {
      there.stop();
      await replica.stop();
    }
    api.seen.length = 0;
    await kit.restartProxy();
    await ask(hand, stage.https("/v1/me"), bearer(sealed));
    assert.equal(api.seen[0]?.headers.authorization, `Bearer ${canary}`);
  });

  it("refuses one at another host, over plain http, in another session, in a body as in a header [A066]", async () => {
    const sealed = await mint();
    const inBody = {
      body: `token=${sealed}`,
      headers: { "content-type": "application/x-www-form-urlencoded" },
    };
    const elsewhere = `https://127.0.0.1:${api.port}/v1/me`;
    assert.equal(await refused(hand, elsewhere, bearer(sealed)), "decision deny SEAL_INVALID");
    assert.equal(await refused(hand, elsewhere, inBody), "outcome seal_invalid");
    assert.equal(await refused(hand, stage.http(), bearer(sealed)), "decision deny SEAL_INVALID");
    const other = await newHand();
    const url = stage.https("/v1/me");
    // With the very same credential.
    const sibling = await hands.hand({ networking: only("localhost"), vaultId: hand.vaultId });
    assert.equal(await refused(sibling, url, bearer(sealed)), "decision deny SEAL_INVALID");
    assert.equal(await refused(other, url, bearer(sealed)), "decision deny SEAL_INVALID");
    assert.equal(
      await refused(other, url, { headers: { "x-any": `a ${sealed}` } }),
      "decision deny SEAL_INVALID",
    );
    assert.equal(await refused(other, url, inBody), "outcome seal_invalid");
    // Over plain http nothing is read before it is sent: what had gone out is cut off before the token.
    const cut = await ask(hand, stage.http(), { body: ["x=1&token=", sealed] });
    assert.equal(cut.reason, "SEAL_INVALID");
    assert.ok(!JSON.stringify(stage.plain.seen.map(({ body }) => body.toString())).includes(sealed));
    assert.equal((await stage.rows(hand)).at(-1), "outcome seal_invalid");
  });

  it("refuses one that was altered or made up [A066]", async () => {
    const sealed = await mint();
    const at = (i: number) => sealed.slice(0, i) + (sealed[i] === "A" ? "B" : "A") + sealed.slice(i + 1);
    const last = sealed.length - 1;
    for (const bad of [at(20), at(60), at(last), `${sealed}A`, `${sealed}_`, sealed.slice(0, -1)]) {
      await refused(hand, stage.https("/v1/me"), bearer(bad));
    }
    await refused(
      hand,
      stage.https("/v1/me"),
      bearer(`ganglion_sealed_${randomBytes(120).toString("base64url")}`),
    );
    // A word that only begins like one is a word.
    await ask(hand, stage.https("/v1/me"), { headers: { "x-any": "ganglion_sealed_tokens" } });
    assert.equal(api.seen[0]?.headers["x-any"], "ganglion_sealed_tokens");
  });

  it("opens it only in the places of the credential with which it was made [A066]", async () => {
    const headers = await newHand({ body: false });
    const sealed = await mint(headers);
    await ask(headers, stage.https("/v1/me"), bearer(sealed));
    assert.equal(api.seen[0]?.headers.authorization, `Bearer ${canary}`);
    api.seen.length = 0;
    await ask(headers, stage.https("/v1/me"), { body: `token=${sealed}` });
    assert.ok(api.seen.every(({ body }) => !body.includes(sealed) && !body.includes(canary)));
    assert.equal((await stage.rows(headers)).at(-1), "outcome seal_invalid");
  });

  it("refuses it once the credential with which it was made is archived [A066]", async () => {
    const sealed = await mint();
    await hands.addVariable(hand.vaultId, { name: "OTHER", secret: secretOf(), hosts: ["localhost"] });
    await ask(hand, stage.https("/v1/me"), bearer(sealed));
    assert.equal(api.seen[0]?.headers.authorization, `Bearer ${canary}`);
    api.seen.length = 0;
    const vaults = await kit.vaults();
    const page = { vaultId: hand.vaultId, pageSize: 0, pageToken: "", includeArchived: false };
    const { credentials } = await vaults.listCredentials(page);
    const made = credentials.find(({ auth }) => JSON.stringify(auth).includes("API_KEY"));
    await vaults.archiveCredential({ vaultId: hand.vaultId, credentialId: made?.id ?? "" });
    assert.equal(await refused(hand, stage.https("/v1/me"), bearer(sealed)), "decision deny SEAL_INVALID");
  });

  it("refuses it once the policy lets its route make none, and after the session's end [A066]", async () => {
    const sealed = await mint();
    await change(EGRESS);
    assert.equal(await refused(hand, stage.https("/v1/me"), bearer(sealed)), "decision deny SEAL_INVALID");
    answering({ access_token: canary });
    const withheld = await ask(hand, stage.https("/oauth/token"), { body: "x" });
    assert.equal(withheld.reason, "RESPONSE_WITHHELD");
    stage.reset();
    await change(POLICY);
    await ask(hand, stage.https("/v1/me"), bearer(sealed));
    assert.equal(api.seen[0]?.headers.authorization, `Bearer ${canary}`);
    await kit.raiseFence(hand.sessionId, 99n, true);
    api.seen.length = 0;
    const { reason } = await ask(hand, stage.https("/v1/me"), bearer(sealed));
    assert.equal(reason, "SESSION_ENDED");
    assert.equal(api.seen.length, 0);
  });

  it("withholds what it cannot seal, and every other new credential [A066]", async () => {
    const at = async (path: string, more: HandAsk = { body: "x" }) => {
      const answer = await ask(hand, stage.https(path), more);
      return answer.reason ?? answer.body.toString();
    };
    const long = "x".repeat(70_000);
    for (const [what, body, headers] of [
      ["no JSON", `access_token=${canary}&scope=`, { "content-type": "application/x-www-form-urlencoded" }],
      ["half of it", `{"access_token":"${canary}"`],
      ["nothing", ""],
      ["a text alone", JSON.stringify(canary)],
      ["no UTF-8", Buffer.from(`{"access_token":"${canary}\xff"}`, "latin1")],
      ["too large", { access_token: canary, long }],
      ["a field that is no text", { access_token: { value: canary } }],
      ["a field that is null", { access_token: null, note: canary }],
      ["a field that no header could carry", { access_token: `${canary}\n` }],
      ["a token that no header could carry back", { access_token: canary + "x".repeat(20_000) }],
      ["the same field twice", `{"access_token":"${canary}","access_token":"other-than-that"}`],
      ["another new credential beside it", { access_token: "of-no-worth", id_token: canary }],
      ["what is sealed at another route", { access_token: "of-no-worth", more: [{ token: canary }] }],
      ["an encoding that is not read", { access_token: canary }, { "content-encoding": "rot13" }],
    ] as [string, unknown, Record<string, string>?][]) {
      answering(body, headers);
      assert.equal(await at("/oauth/token"), "RESPONSE_WITHHELD", what);
      assert.equal((await stage.rows(hand)).at(-1), "outcome response_withheld");
    }
    answering({ error: "invalid_grant", error_description: "no" });
    assert.equal(await at("/oauth/token"), '{"error":"invalid_grant","error_description":"no"}');
    answering(brotliCompressSync(JSON.stringify({ access_token: canary })), { "content-encoding": "br" });
    assert.match(await at("/oauth/token"), /^\{"access_token":"ganglion_sealed_[\w-]+"\}$/);
    answering([{ data: { token: canary } }]);
    assert.match(
      await at("/api/tokens/1", { method: "PUT", body: "x" }),
      /^\[\{"data":\{"token":"ganglion_sealed_/,
    );
    // The same answer by another way to write the route, or another method, is of no route that is granted.
    for (const path of [
      "/api//tokens/1",
      "/api/tokens/1/",
      "/api/tokens/..%2f1",
      "/api/%74okens/1",
      "/v2/api/tokens/1",
    ]) {
      assert.equal(await at(path), "RESPONSE_WITHHELD", path);
    }
    assert.equal(await at("/api/tokens/1", {}), "RESPONSE_WITHHELD");
    answering({ access_token: canary });
    assert.equal(await at("/api/tokens/1"), "RESPONSE_WITHHELD");
  });

  it("leaves the token in no hand, log, audit record or row [A066]", async () => {
    assert.ok(canaries.length > 8 && told.length > 40);
    const index = new NeedleIndex(
      canaries.map((secret, i) => ({ name: String(i), secret: secret.slice(5) })),
    );
    assert.equal(index.find(Buffer.from(`x ${canaries[0]}`)).length, 1, "the control");
    assert.deepEqual(index.find(Buffer.from(told.join("\n"))), []);
    assert.deepEqual(index.find(Buffer.from(kit.service.output())), []);
    const { findings, files } = scanFiles(stage.auditFolder, index);
    assert.deepEqual(findings, []);
    assert.ok(files > 0);
    const tables = await kit.sql(
      "ganglion_owner",
      "SELECT table_name FROM information_schema.tables WHERE table_schema = 'proxy' AND table_type = 'BASE TABLE'",
    );
    assert.ok(tables.length > 10);
    for (const { table_name: table } of tables as { table_name: string }[]) {
      const rows = await kit.sql("ganglion_owner", `SELECT t::text AS row FROM proxy."${table}" t`);
      assert.deepEqual(index.find(Buffer.from(JSON.stringify(rows))), [], table);
    }
  });

  /** Puts a policy in place, and resolves when it is in force. */
  const change = async (policy: string): Promise<void> => {
    const audit = await kit.client(AuditServiceService, "operator");
    const all = { limit: 1000, sessionId: "", requestId: "", withLines: false };
    let head = 0n;
    for (;;) {
      const { records } = await audit.listRecords({ ...all, afterSequence: head });
      if (records.length === 0) break;
      head = records.at(-1)?.sequence ?? head;
    }
    stage.putPolicy(policy);
    const request = { afterSequence: head, sessionId: "", withLines: false };
    for await (const { records } of audit.watchRecords(request, { signal: AbortSignal.timeout(30_000) })) {
      if (records.some(({ kind }) => kind === RecordKind.RECORD_KIND_POLICY_CHANGE)) return;
    }
    assert.fail("the watch ended");
  };
});

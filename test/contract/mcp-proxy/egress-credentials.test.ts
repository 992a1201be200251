import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { connect as tlsConnect } from "node:tls";
import { brotliCompressSync, gzipSync } from "node:zlib";
import { TestCa } from "../../kit/ca.ts";
import { EgressStage } from "./egress-stage.ts";
import {
  ANYWHERE,
  askFrom,
  connectFrom,
  type HandAsk,
  type HandKit,
  only,
  type TestHand,
} from "./hand-kit.ts";
import { briefly, type ProxyKit } from "./proxy-kit.ts";
import { Recorder } from "./recorder.ts";

const secretOf = () => `sk-${randomBytes(18).toString("base64url")}`;

describe("the egress door, towards a host with a credential", () => {
  let stage: EgressStage;
  let kit: ProxyKit;
  let hands: HandKit;
  let api: Recorder;

  before(async function () {
    this.timeout(90_000);
    stage = await EgressStage.start();
    ({ kit, hands, api } = stage);
  });
  after(() => stage?.stop());
  let secret: string;
  let hand: TestHand;

  beforeEach(async () => {
    stage.reset();
    secret = secretOf();
    hand = await hands.hand({
      networking: only("localhost", "127.0.0.1"),
      variables: [{ name: "API_KEY", secret, hosts: ["localhost"] }],
    });
  });

  const ask = (path: string, more: HandAsk = {}) => askFrom(hand, stage.https(path), more);
  const hide = (text: string) => text.replaceAll("$", hand.placeholder("API_KEY"));

  it("gives the hand a placeholder, and the upstream the secret in its place, in headers and body", async () => {
    const placeholder = hand.placeholder("API_KEY");
    assert.match(placeholder, /^ganglion_placeholder_[a-z2-7]{26}$/);
    const basic = (pair: string) => `Basic ${Buffer.from(pair).toString("base64")}`;
    const answer = await ask("/v1?k=v", {
      headers: {
        authorization: basic(hide("user:$")),
        "x-api-key": placeholder,
        "x-two": hide("$/$"),
        "content-type": "application/json",
        "accept-encoding": "gzip",
      },
      body: hide('{"key":"$","also":"$"}'),
    });
    assert.equal(answer.status, 200);
    const [seen] = api.seen;
    assert.equal(seen?.headers.authorization, basic(`user:${secret}`));
    assert.equal(seen?.headers["x-api-key"], secret);
    assert.equal(seen?.headers["x-two"], `${secret}/${secret}`);
    assert.equal(seen?.body.toString(), `{"key":"${secret}","also":"${secret}"}`);
    assert.equal(seen?.headers["content-length"], String(seen?.body.length));
    assert.equal(seen?.headers["accept-encoding"], "identity");
    const records = await kit.records(hand.sessionId);
    assert.deepEqual(briefly(records), [
      "decision allow",
      "outcome intercepted",
      "decision allow",
      "dispatch",
      "outcome ok",
    ]);
    const [, , decision, dispatch, outcome] = records;
    assert.match(decision?.credentialId ?? "", /^vcrd_/);
    assert.equal(decision?.target, `POST https://localhost:${api.port}/v1`);
    assert.ok(dispatch?.vaultRequestId);
    assert.equal(dispatch?.credentialVersion, 1n);
    assert.equal(outcome?.status, 200);
    assert.ok(!JSON.stringify(records, (_key, value) => String(value)).includes(secret));
  });

  it("replaces across the borders of chunks, in bodies of any length", async () => {
    const text = hide(`${"x".repeat(700_000)}$${"y".repeat(700_000)}`);
    const parts: string[] = [];
    for (let at = 0; at < text.length; ) {
      const size = at > 699_950 && at < 700_060 ? 7 : 65_536;
      parts.push(text.slice(at, at + size));
      at += size;
    }
    await ask("/chunked", { body: parts });
    await ask("/long", { body: text });
    const wanted = `${"x".repeat(700_000)}${secret}${"y".repeat(700_000)}`;
    for (const { body } of api.seen) assert.ok(body.toString() === wanted);
    assert.equal(api.seen.length, 2);
  });

  it("writes a secret so that it stays one value of its body", async () => {
    const odd = `a"b&c=${randomBytes(9).toString("base64url")}`;
    const other = await hands.hand({
      networking: only("localhost"),
      variables: [{ name: "K", secret: odd }],
    });
    const placeholder = other.placeholder("K");
    const send = (type: string, body: string) =>
      askFrom(other, stage.https(), { headers: { "content-type": type }, body });
    await send("application/json; charset=utf-8", `{"a":"${placeholder}"}`);
    await send("application/x-www-form-urlencoded", `a=${placeholder}&b=1`);
    await send("text/plain", placeholder);
    assert.deepEqual(JSON.parse(api.seen[0]?.body.toString() ?? ""), { a: odd });
    assert.equal(new URLSearchParams(api.seen[1]?.body.toString()).get("a"), odd);
    assert.equal(api.seen[2]?.body.toString(), odd);
  });

  it("leaves a placeholder alone where it has no place: path, query, other hosts, places that are off [A054]", async () => {
    const partly = await hands.hand({
      networking: ANYWHERE,
      variables: [
        { name: "HEADERS", secret: secretOf(), hosts: ["localhost"], body: false },
        { name: "BODIES", secret: secretOf(), hosts: ["localhost"], header: false },
      ],
    });
    const [h, b] = [partly.placeholder("HEADERS"), partly.placeholder("BODIES")];
    await askFrom(partly, stage.https(`/${h}?q=${b}`), {
      headers: { "x-h": h, "x-b": b },
      body: `${h} ${b}`,
    });
    await askFrom(partly, `https://127.0.0.1:${api.port}/`, { headers: { "x-h": h }, body: b });
    const [inside, outside] = api.seen;
    assert.equal(inside?.url, `/${h}?q=${b}`);
    assert.notEqual(inside?.headers["x-h"], h);
    assert.equal(inside?.headers["x-b"], b);
    assert.ok(inside?.body.toString().startsWith(`${h} sk-`));
    assert.equal(outside?.headers["x-h"], h);
    assert.equal(outside?.body.toString(), b);
    // Another session's placeholder is a word like any other.
    await ask("/", { headers: { "x-h": h } });
    assert.equal(api.seen[2]?.headers["x-h"], h);
    // Two credentials for one host: two requests to Vault, each with its own records.
    const records = await kit.records(partly.sessionId);
    const used = records.filter(({ kind, credentialId }) => kind === 2 && credentialId !== "");
    assert.equal(new Set(used.map(({ credentialId }) => credentialId)).size, 2);
    assert.equal(new Set(used.map(({ requestId }) => requestId)).size, 2);
  });

  it("refuses a credential of the caller's own [A025]", async () => {
    const own: Record<string, string>[] = [
      { authorization: "Bearer attacker" },
      { cookie: "session=1" },
      { "x-api-key": "mine" },
      { "x-goog-api-key": "mine" },
    ];
    for (const headers of own) {
      assert.equal((await ask("/", { headers })).reason, "HEADER_FORBIDDEN");
    }
    assert.equal(api.seen.length, 0);
    const denied = (await stage.rows(hand)).filter((row) => row.includes("deny"));
    assert.deepEqual(denied, Array(4).fill("decision deny HEADER_FORBIDDEN"));
  });

  it("refuses another Host and absolute targets inside the connection [A001] [A007]", async () => {
    assert.equal((await ask("/", { host: "evil.test" })).reason, "HEADER_FORBIDDEN");
    const way = await connectFrom(hand, `localhost:${api.port}`);
    assert.ok("socket" in way);
    const socket = tlsConnect({ socket: way.socket, ca: hand.setup.egressCaPem, servername: "localhost" });
    socket.write(
      `GET https://evil.test/ HTTP/1.1\r\nHost: localhost:${api.port}\r\nconnection: close\r\n\r\n`,
    );
    const [answer] = await once(socket, "data");
    assert.match(String(answer), /URL_NOT_CANONICAL/);
    assert.equal(api.seen.length, 0);
  });

  it("is not intercepted under another name than the one that was asked for [A001]", async () => {
    await assert.rejects(ask("/", { servername: "evil.test" }));
    assert.equal(api.seen.length, 0);
  });

  it("speaks only HTTP/1.1 with the hand, and only for itself", async () => {
    const way = await connectFrom(hand, `localhost:${api.port}`);
    assert.ok("socket" in way);
    const options = { socket: way.socket, servername: "localhost", ca: hand.setup.egressCaPem };
    const socket = tlsConnect({ ...options, ALPNProtocols: ["h2", "http/1.1"] });
    await once(socket, "secureConnect");
    assert.equal(socket.alpnProtocol, "http/1.1");
    assert.match(socket.getPeerCertificate().subjectaltname ?? "", /^DNS:localhost$/);
    socket.destroy();
    // Another session's hands do not trust it, though they trust those whom the operator named.
    const other = await hands.hand({ networking: ANYWHERE });
    assert.notEqual(other.setup.egressCaPem, hand.setup.egressCaPem);
    await assert.rejects(askFrom({ ...hand, setup: other.setup }, stage.https()));
  });

  it("verifies the upstream: another authority is refused, nothing is sent", async () => {
    const stranger = await TestCa.create();
    const wrong = await Recorder.start(stranger);
    try {
      const somewhere = await hands.hand({
        networking: ANYWHERE,
        variables: [{ name: "K", secret: secretOf() }],
      });
      const answer = await askFrom(somewhere, `https://localhost:${wrong.port}/`);
      assert.equal(answer.reason, "DEST_NOT_ALLOWED");
      assert.equal(wrong.seen.length, 0);
    } finally {
      wrong.stop();
      stranger.remove();
    }
  });

  it("removes the secret from answers in all its forms, in headers and body [A058]", async () => {
    const raw = Buffer.from(secret);
    const forms = [secret, raw.toString("hex"), raw.toString("base64"), raw.toString("base64url")];
    const pair = Buffer.from(`user:${secret}`).toString("base64");
    api.listener = (request, response) => {
      response.setHeader("x-echo", String(request.headers["x-api-key"]));
      response.setHeader("set-cookie", [`a=${secret}`, "b=1"]);
      response.setHeader("location", `https://evil.test/?k=${encodeURIComponent(secret)}`);
      response.writeHead(302).end(`${forms.join(" ")} ${pair} ${encodeURIComponent(secret)}`);
    };
    const answer = await ask("/", { headers: { "x-api-key": hide("$") } });
    assert.equal(answer.status, 302);
    const all = JSON.stringify(answer.headers) + answer.body.toString();
    for (const form of forms) assert.ok(!all.includes(form), form);
    assert.match(String(answer.headers["x-echo"]), /^\[REDACTED:vcrd_/);
    assert.match(String(answer.headers.location), /^https:\/\/evil\.test\/\?k=\[REDACTED:vcrd_/);
    assert.equal((answer.headers["set-cookie"] as string[])[1], "b=1");
    const outcome = (await kit.records(hand.sessionId)).at(-1);
    assert.equal(outcome?.reason, "ok");
    assert.ok((outcome?.redactions ?? 0n) >= 8n);
  });

  it("removes it wherever the chunks of the answer end [A060]", async () => {
    for (let cut = 0; cut <= secret.length; cut += 3) {
      api.listener = (_request, response) => {
        response.write(`before ${secret.slice(0, cut)}`);
        setImmediate(() => response.end(`${secret.slice(cut)} after`));
      };
      const { body } = await ask("/");
      assert.match(body.toString(), /^before \[REDACTED:vcrd_\w+\] after$/);
    }
  });

  it("takes the longer of two secrets of which one begins like the other [A064]", async () => {
    const short = secretOf();
    const long = `${short}-12345`;
    const both = await hands.hand({
      networking: ANYWHERE,
      variables: [
        { name: "SHORT", secret: short },
        { name: "LONG", secret: long },
      ],
    });
    api.listener = (_request, response) => void response.end(`${long}|${short}|`);
    const { body } = await askFrom(both, stage.https());
    assert.match(body.toString(), /^\[REDACTED:vcrd_\w+\]\|\[REDACTED:vcrd_\w+\]\|$/);
  });

  it("decodes an answer that comes encoded, and withholds what it cannot read [A062]", async () => {
    for (const [coding, bytes] of [
      ["gzip", gzipSync(`a ${secret} b`)],
      ["br", brotliCompressSync(`a ${secret} b`)],
    ] as const) {
      api.listener = (_request, response) => {
        response.writeHead(200, { "content-encoding": coding }).end(bytes);
      };
      const answer = await ask("/");
      assert.match(answer.body.toString(), /^a \[REDACTED:vcrd_\w+\] b$/);
      assert.equal(answer.headers["content-encoding"], undefined);
    }
    for (const coding of ["rot13", "gzip, gzip"]) {
      api.listener = (_request, response) => {
        response.writeHead(200, { "content-encoding": coding }).end(secret);
      };
      const answer = await ask("/");
      assert.equal(answer.reason, "RESPONSE_WITHHELD");
      assert.ok(!answer.body.includes(secret));
    }
    assert.equal((await stage.rows(hand)).at(-1), "outcome response_withheld");
  });

  it("cuts a bomb before it is large, and answers what is no HTTP in fixed words [A030]", async function () {
    this.timeout(60_000);
    const bomb = gzipSync(Buffer.alloc(80 << 20));
    api.listener = (_request, response) => {
      response.writeHead(200, { "content-encoding": "gzip" }).end(bomb);
    };
    await assert.rejects(ask("/"));
    assert.equal((await stage.rows(hand)).at(-1), "outcome too_large");
    api.listener = (_request, response) => {
      response.socket?.end(`HTTP/1.1 200 OK\r\nx: ${"a".repeat(100_000)}\r\n\r\n`);
    };
    const answer = await ask("/");
    assert.deepEqual([answer.status, answer.reason], [502, "UPSTREAM_MALFORMED"]);
    api.listener = (_request, response) => {
      response.socket?.end("HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nab");
    };
    assert.equal((await ask("/")).reason, "UPSTREAM_MALFORMED");
  });

  it("withholds an answer that is a new credential [A066]", async () => {
    for (const minted of [
      { access_token: "at-123456", token_type: "bearer" },
      { token: "ghs_123456", expires_at: "2030-01-01T00:00:00Z" },
    ]) {
      api.listener = (_request, response) => {
        response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(minted));
      };
      const answer = await ask("/token", { body: "grant_type=client_credentials" });
      assert.equal(answer.reason, "RESPONSE_WITHHELD");
      assert.ok(!/at-123456|ghs_123456/.test(answer.body.toString()));
      assert.equal((await stage.rows(hand)).at(-1), "outcome response_withheld");
    }
    api.listener = (_request, response) => {
      response.writeHead(200, { "content-type": "application/json" }).end('{"tokens":3}');
    };
    assert.equal((await ask("/usage")).body.toString(), '{"tokens":3}');
  });

  it("asks Vault with the session's own token, and nobody when the credential is gone", async () => {
    const vaults = await kit.vaults();
    const { credentials } = await vaults.listCredentials({
      vaultId: hand.vaultId,
      pageSize: 0,
      pageToken: "",
      includeArchived: false,
    });
    await ask("/", { headers: { "x-api-key": hide("$") } });
    assert.equal(api.seen[0]?.headers["x-api-key"], secret);
    await vaults.archiveCredential({ vaultId: hand.vaultId, credentialId: credentials[0]?.id ?? "" });
    await ask("/", { headers: { "x-api-key": hide("$") } });
    assert.equal(api.seen[1]?.headers["x-api-key"], hide("$"));
  });

  it("goes on under another brain, and after a restart of the proxy with the same authority", async function () {
    this.timeout(120_000);
    await kit.raiseFence(hand.sessionId, 5n, false);
    await ask("/", { headers: { "x-api-key": hide("$") } });
    assert.equal(api.seen[0]?.headers["x-api-key"], secret);
    await kit.restartProxy();
    await ask("/", { headers: { "x-api-key": hide("$") } });
    assert.equal(api.seen[1]?.headers["x-api-key"], secret);
  });
});

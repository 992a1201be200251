import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { connect as tlsConnect } from "node:tls";
import { brotliCompressSync, gzipSync } from "node:zlib";
import {
  BindingServiceService,
  type IssueTokenRequest,
} from "../../../services/gen/ganglion/mcpproxy/v1/binding_service.ts";
import { TestCa } from "../../kit/ca.ts";
import {
  ANYWHERE,
  askFrom,
  connectFrom,
  type HandAsk,
  HandKit,
  only,
  Recorder,
  rawFrom,
  type TestHand,
  trusted,
} from "./hand-kit.ts";
import { briefly, failureOf, ProxyKit } from "./proxy-kit.ts";

const secretOf = () => `sk-${randomBytes(18).toString("base64url")}`;

describe("the egress door", () => {
  let kit: ProxyKit;
  let hands: HandKit;
  let upstreamCa: TestCa;
  /** http on a listed host. */
  let plain: Recorder;
  /** https on a listed host. */
  let api: Recorder;
  /** https on a host that is not listed. */
  let unlisted: Recorder;

  before(async function () {
    this.timeout(90_000);
    upstreamCa = await TestCa.create();
    [plain, api, unlisted] = await Promise.all([
      Recorder.start(),
      Recorder.start(upstreamCa),
      Recorder.start(upstreamCa),
    ]);
    const caFile = join(upstreamCa.root, "upstream.pem");
    writeFileSync(caFile, upstreamCa.authority.certPem);
    trusted.push(upstreamCa.authority.certPem);
    const listed = [plain.port, api.port].flatMap((port) => [`localhost:${port}`, `127.0.0.1:${port}`]);
    kit = await ProxyKit.start({
      GANGLION_PROXY_ALLOW_HTTP_HOSTS: listed.join(","),
      GANGLION_UPSTREAM_CA_FILE: caFile,
    });
    hands = new HandKit(kit);
  });

  after(async () => {
    hands?.stop();
    await kit?.stop();
    for (const recorder of [plain, api, unlisted]) recorder?.stop();
    upstreamCa?.remove();
  });

  beforeEach(() => {
    for (const recorder of [plain, api, unlisted]) {
      recorder.seen.length = 0;
      recorder.connections = 0;
      recorder.listener = (_request, response) => void response.end("hello");
    }
  });

  const http = (path = "/x") => `http://localhost:${plain.port}${path}`;
  const https = (path = "/x") => `https://localhost:${api.port}${path}`;
  const rows = async (hand: TestHand) =>
    briefly(await kit.records(hand.sessionId)).filter((row) => /^(decision|dispatch|outcome)/.test(row));
  const forwarded = () => plain.connections + api.connections + unlisted.connections;
  const refusals = async (
    hand: TestHand,
    reason: string,
    work: () => Promise<{ reason: string | undefined }>,
  ) => {
    const before = forwarded();
    const { reason: told } = await work();
    assert.equal(told, reason);
    assert.equal(forwarded(), before, "something was forwarded");
    assert.deepEqual(await rows(hand), [`decision deny ${reason}`]);
  };

  describe("plain http", () => {
    it("passes a request to an allowed host and writes one record of each kind", async () => {
      const hand = await hands.hand({ networking: only("localhost") });
      plain.listener = (_request, response) => void response.writeHead(201, { "x-own": "1" }).end("made");
      const answer = await askFrom(hand, http("/a?b=c"), {
        body: "hello",
        headers: {
          "x-mine": "y",
          connection: "keep-alive, x-drop",
          "x-drop": "z",
          "content-type": "text/plain",
        },
      });
      assert.equal(answer.status, 201);
      assert.equal(answer.headers["x-own"], "1");
      assert.equal(answer.body.toString(), "made");
      const [seen] = plain.seen;
      assert.deepEqual([seen?.method, seen?.url, seen?.body.toString()], ["POST", "/a?b=c", "hello"]);
      assert.equal(seen?.headers["x-mine"], "y");
      assert.equal(seen?.headers["x-drop"], undefined);
      assert.equal(seen?.headers.host, `localhost:${plain.port}`);
      const records = await kit.records(hand.sessionId);
      assert.deepEqual(briefly(records), ["decision allow", "dispatch", "outcome ok"]);
      assert.equal(records[0]?.operation, "egress");
      assert.equal(records[0]?.target, `POST http://localhost:${plain.port}/a`);
      assert.equal(records[0]?.caller, "spiffe://ganglion.local/sandbox/sandbox-1");
      assert.equal(records[1]?.peerAddress, "127.0.0.1");
      assert.equal(records[2]?.status, 201);
      assert.equal(records[2]?.responseBytes, 4n);
      // The session's token is nowhere in it [A046].
      assert.ok(!JSON.stringify(plain.seen).includes(hand.token));
    });

    it("refuses what the environment does not allow, and everything when it says nothing [A005] [A013]", async () => {
      for (const networking of [
        only("example.test", "localhost.evil.test", "evil-localhost", "*.localhost"),
        only(),
        { ...ANYWHERE, type: 0 as const },
        undefined,
      ]) {
        const hand = await hands.hand({ networking });
        await refusals(hand, "DEST_NOT_ALLOWED", () => askFrom(hand, http()));
      }
    });

    it("refuses plain http to a host that the operator does not list, whatever the environment allows [A003]", async () => {
      const hand = await hands.hand({ networking: ANYWHERE });
      await refusals(hand, "SCHEME_NOT_ALLOWED", () => askFrom(hand, `http://localhost:${unlisted.port}/`));
    });

    it("refuses a Host header that is not the dialled host [A001]", async () => {
      for (const host of ["evil.test", `127.0.0.1:${plain.port}`, "localhost", `u@localhost:${plain.port}`]) {
        const hand = await hands.hand({ networking: ANYWHERE });
        await refusals(hand, "HEADER_FORBIDDEN", () => askFrom(hand, http(), { host }));
      }
    });

    it("refuses two Host headers and none [A001]", async () => {
      const line = `GET ${http()} HTTP/1.1\r\n`;
      for (const head of [`Host: localhost:${plain.port}\r\nHost: localhost:${plain.port}\r\n`, ""]) {
        const hand = await hands.hand({ networking: ANYWHERE });
        const text = await rawFrom(hand, `${line}${head}connection: close\r\n\r\n`);
        assert.match(text, /^HTTP\/1\.1 400 [\s\S]*ganglion-reason: HEADER_FORBIDDEN/i);
        assert.deepEqual(await rows(hand), ["decision deny HEADER_FORBIDDEN"]);
      }
      assert.equal(forwarded(), 0);
    });

    it("refuses addresses of the inside in odd spellings [A031]", async () => {
      for (const host of [
        "0x7f.1",
        "2130706433",
        "017700000001",
        "127.1",
        "[::ffff:127.0.0.1]",
        "169.254.169.254",
      ]) {
        const hand = await hands.hand({ networking: ANYWHERE });
        const { status, reason } = await askFrom(hand, `http://example.test/`, {}).then(() =>
          raw(hand, `http://${host}:${unlisted.port}/`, host === "127.1" ? "127.0.0.1" : host),
        );
        assert.equal(status, 403, host);
        assert.ok(reason === "SCHEME_NOT_ALLOWED" || reason === "DEST_NOT_ALLOWED", host);
      }
      assert.equal(forwarded(), 0);
    });

    const raw = async (hand: TestHand, url: string, host: string) => {
      const port = new URL(url).port;
      const text = await rawFrom(
        hand,
        `GET ${url} HTTP/1.1\r\nHost: ${host}:${port}\r\nconnection: close\r\n\r\n`,
      );
      return {
        status: Number(text.slice(9, 12)),
        reason: /ganglion-reason: (\w+)/i.exec(text)?.[1],
      };
    };

    it("refuses URLs that are read in two ways [A007]", async () => {
      for (const url of [
        `http://user@localhost:${plain.port}/`,
        `http://localhost:${plain.port}\\@evil.test/`,
        `ftp://localhost:${plain.port}/`,
        `https://localhost:${api.port}/`,
        "/not/for/a/proxy",
        "*",
      ]) {
        const hand = await hands.hand({ networking: ANYWHERE });
        const text = await rawFrom(
          hand,
          `GET ${url} HTTP/1.1\r\nHost: localhost:${plain.port}\r\nconnection: close\r\n\r\n`,
        );
        assert.match(text, /^HTTP\/1\.1 400 [\s\S]*ganglion-reason: URL_NOT_CANONICAL/i, url);
        assert.deepEqual(await rows(hand), ["decision deny URL_NOT_CANONICAL"]);
      }
      assert.equal(forwarded(), 0);
    });

    it("refuses what is no plain HTTP: CR and NUL in headers, two lengths, a head without end [A023] [A030]", async () => {
      const line = `POST ${http()} HTTP/1.1\r\nHost: localhost:${plain.port}\r\n`;
      for (const [head, reason] of [
        ["X-A: a\rX-Evil: 1\r\n\r\n", "HEADER_FORBIDDEN"],
        ["X-A: a\u0000b\r\n\r\n", "HEADER_FORBIDDEN"],
        ["Content-Length: 1\r\nContent-Length: 2\r\n\r\nab", "HEADER_FORBIDDEN"],
        ["Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "HEADER_FORBIDDEN"],
        [`X-A: ${"a".repeat(40_000)}\r\n\r\n`, "MESSAGE_TOO_LARGE"],
      ]) {
        const hand = await hands.hand({ networking: ANYWHERE });
        const text = await rawFrom(hand, line + head);
        assert.match(text, new RegExp(`ganglion-reason: ${reason}`, "i"), JSON.stringify(head?.slice(0, 30)));
        assert.deepEqual(await rows(hand), [`decision deny ${reason}`]);
      }
      assert.equal(forwarded(), 0);
    });

    it("does not wait for ever for a head that comes a byte at a time [A030]", async function () {
      this.timeout(40_000);
      const hand = await hands.hand({ networking: ANYWHERE });
      const socket = connect(hand.port, "127.0.0.1");
      socket.on("error", () => {});
      socket.write("GET http://localhost/ HTTP/1.1\r\n");
      const drip = setInterval(() => socket.write("x"), 500);
      await once(socket.resume(), "close");
      clearInterval(drip);
      assert.equal(forwarded(), 0);
    });

    it("passes redirects back and follows none [A017] [A019]", async () => {
      const hand = await hands.hand({ networking: only("localhost") });
      const location = "http://169.254.169.254/latest/";
      plain.listener = (_request, response) => void response.writeHead(302, { location }).end();
      const answer = await askFrom(hand, http());
      assert.equal(answer.status, 302);
      assert.equal(answer.headers.location, location);
      assert.equal(plain.connections, 1);
      // Whoever follows it is judged anew.
      assert.equal((await askFrom(hand, location)).reason, "DEST_NOT_ALLOWED");
    });

    it("never puts a credential on plain http: the placeholder travels as it is [A003] [A054]", async () => {
      const secret = secretOf();
      const hand = await hands.hand({ networking: ANYWHERE, variables: [{ name: "KEY", secret }] });
      const placeholder = hand.placeholder("KEY");
      await askFrom(hand, http(), { headers: { authorization: `Bearer ${placeholder}` }, body: placeholder });
      assert.equal(plain.seen[0]?.headers.authorization, `Bearer ${placeholder}`);
      assert.equal(plain.seen[0]?.body.toString(), placeholder);
      const [decision] = await kit.records(hand.sessionId);
      assert.equal(decision?.credentialId, "");
    });

    it("says when a name has no address, and when nobody answers there", async () => {
      const hand = await hands.hand({ networking: ANYWHERE });
      const way = await connectFrom(hand, "no-such-name.invalid:443");
      assert.ok("refused" in way);
      assert.equal(way.refused.status, 502);
      assert.equal(way.refused.reason, "UPSTREAM_UNREACHABLE");
      assert.deepEqual(await rows(hand), ["decision allow", "outcome upstream_unreachable"]);
    });
  });

  describe("CONNECT without a credential", () => {
    it("is a blind tunnel to the one address that was checked, end to end in TLS [A033]", async () => {
      const hand = await hands.hand({ networking: only("localhost") });
      const big = randomBytes(3 << 20);
      api.listener = (_request, response) => void response.end(big);
      const answer = await askFrom(hand, https(), { headers: { authorization: "Bearer of-its-own" } });
      assert.ok(answer.body.equals(big));
      // What is inside is nobody's business here: an own key in it is a matter of which hosts are allowed [A057].
      assert.equal(api.seen[0]?.headers.authorization, "Bearer of-its-own");
      await until(async () => (await rows(hand)).length === 3);
      const records = await kit.records(hand.sessionId);
      assert.deepEqual(briefly(records), ["decision allow", "dispatch", "outcome ok"]);
      assert.equal(records[0]?.target, `CONNECT localhost:${api.port}`);
      assert.equal(records[1]?.peerAddress, "127.0.0.1");
      assert.ok((records[2]?.responseBytes ?? 0n) > BigInt(big.length));
    });

    it("refuses hosts, the mesh's own ports and unlisted inside addresses [A005] [A031] [A037]", async () => {
      const mesh = [kit.service.listening.addr, hands.address, kit.sessionAddress, kit.doorAddress()];
      for (const authority of [
        `127.0.0.1:${unlisted.port}`,
        `localhost:${unlisted.port}`,
        `0x7f.1:${unlisted.port}`,
        "169.254.169.254:443",
        "[fd00:ec2::254]:443",
        ...mesh,
        ...mesh.map((address) => address.replace("127.0.0.1", "localhost")),
      ]) {
        const hand = await hands.hand({ networking: ANYWHERE });
        const way = await connectFrom(hand, authority);
        assert.ok("refused" in way, authority);
        assert.deepEqual([way.refused.status, way.refused.reason], [403, "DEST_NOT_ALLOWED"], authority);
        assert.deepEqual(await rows(hand), ["decision deny DEST_NOT_ALLOWED"], authority);
      }
      assert.equal(forwarded(), 0);
    });

    it("refuses an authority that is none, and a Host that names another [A001] [A007]", async () => {
      const hand = await hands.hand({ networking: ANYWHERE });
      for (const authority of ["localhost", "localhost:0", "localhost:99999", "u@localhost:443", "a/b:443"]) {
        const way = await connectFrom(hand, authority, { host: "localhost" });
        assert.ok("refused" in way);
        assert.equal(way.refused.reason, "URL_NOT_CANONICAL", authority);
      }
      const way = await connectFrom(hand, `localhost:${api.port}`, { host: "evil.test" });
      assert.ok("refused" in way);
      assert.equal(way.refused.reason, "HEADER_FORBIDDEN");
      assert.equal(forwarded(), 0);
    });

    it("sends nothing before it was greeted in TLS for the very host that was asked for [A001]", async () => {
      const hand = await hands.hand({ networking: only("localhost") });
      const before = api.seen.length;
      await assert.rejects(askFrom(hand, https(), { servername: "evil.test" }));
      await assert.rejects(askFrom(hand, https(), { servername: "" }));
      const way = await connectFrom(hand, `localhost:${api.port}`);
      assert.ok("socket" in way);
      way.socket.write("SSH-2.0-nothing\r\n");
      await once(way.socket.resume(), "close");
      assert.equal(api.seen.length, before);
      const records = await rows(hand);
      assert.deepEqual([...new Set(records)].sort(), ["decision allow", "outcome dest_not_allowed"]);
    });
  });

  describe("a host with a credential", () => {
    let secret: string;
    let hand: TestHand;

    beforeEach(async () => {
      secret = secretOf();
      hand = await hands.hand({
        networking: only("localhost", "127.0.0.1"),
        variables: [{ name: "API_KEY", secret, hosts: ["localhost"] }],
      });
    });

    const ask = (path: string, more: HandAsk = {}) => askFrom(hand, https(path), more);
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
        askFrom(other, https(), { headers: { "content-type": type }, body });
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
      await askFrom(partly, https(`/${h}?q=${b}`), { headers: { "x-h": h, "x-b": b }, body: `${h} ${b}` });
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
      const denied = (await rows(hand)).filter((row) => row.includes("deny"));
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
      // Another session's hands do not trust it.
      const other = await hands.hand({ networking: ANYWHERE });
      assert.notEqual(other.setup.egressCaPem, hand.setup.egressCaPem);
      await assert.rejects(askFrom({ ...hand, setup: other.setup }, https()));
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
      const { body } = await askFrom(both, https());
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
      assert.equal((await rows(hand)).at(-1), "outcome response_withheld");
    });

    it("cuts a bomb before it is large, and answers what is no HTTP in fixed words [A030]", async function () {
      this.timeout(60_000);
      const bomb = gzipSync(Buffer.alloc(80 << 20));
      api.listener = (_request, response) => {
        response.writeHead(200, { "content-encoding": "gzip" }).end(bomb);
      };
      await assert.rejects(ask("/"));
      assert.equal((await rows(hand)).at(-1), "outcome too_large");
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
        assert.equal((await rows(hand)).at(-1), "outcome response_withheld");
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

  describe("whose connection it is", () => {
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
        assert.equal(await rawFrom({ port }, `GET ${http()} HTTP/1.1\r\n\r\n`), "");
        assert.equal(await countDenied(), before + 1, preamble);
      }
      assert.equal(forwarded(), 0);
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
          `GANGLION/1 ${hand.token}\r\nGET ${http()} HTTP/1.1\r\nhost: localhost:${plain.port}\r\n\r\n`,
        );
        await once(socket.resume(), "end");
        socket.destroy();
      }
      assert.equal(forwarded(), 0);
      assert.deepEqual(await rows(hand), ["decision deny CALLER_MISMATCH"]);
    });

    it("refuses each request once the session has ended, and Vault is not asked [A131] [L7]", async () => {
      const hand = await hands.hand({ networking: ANYWHERE });
      assert.equal((await askFrom(hand, http())).status, 200);
      await kit.raiseFence(hand.sessionId, 1n, true);
      for (const answer of [await askFrom(hand, http()), await askFrom(hand, http())]) {
        assert.deepEqual([answer.status, answer.reason], [403, "SESSION_ENDED"]);
      }
      assert.deepEqual((await rows(hand)).slice(3), Array(2).fill("decision deny SESSION_ENDED"));
    });

    it("refuses a token whose row somebody changed in the database", async () => {
      const hand = await hands.hand({ networking: only("example.test") });
      await kit.sql(
        "ganglion_owner",
        `UPDATE proxy.bindings SET networking = '{"type":"unrestricted"}' WHERE session_id = $1`,
        [hand.sessionId],
      );
      assert.equal(
        await rawFrom(hand, `GET ${http()} HTTP/1.1\r\nhost: localhost:${plain.port}\r\n\r\n`),
        "",
      );
      assert.equal(forwarded(), 0);
      assert.deepEqual(await rows(hand), ["decision deny ROW_TAMPERED"]);
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
      const stream = askFrom(hand, http());
      const tunnel = askFrom(hand, https());
      await until(async () => (await rows(hand)).filter((row) => row === "dispatch").length === 2);
      const socket = await idle;
      const closed = once(socket, "close");
      const endedAt = performance.now();
      await kit.raiseFence(hand.sessionId, 1n, true);
      await Promise.all([assert.rejects(stream), assert.rejects(tunnel), closed]);
      assert.ok(performance.now() - endedAt < 5000);
      await until(async () => (await rows(hand)).length === 6);
      assert.deepEqual((await rows(hand)).slice(4), Array(2).fill("outcome session_ended"));
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
      socket.write(`GET ${http()} HTTP/1.1\r\nhost: localhost:${plain.port}\r\n\r\n`);
      await once(socket, "data");
      socket.destroy();
      await gone;
      await until(async () => (await rows(hand)).length === 3);
      assert.equal((await rows(hand)).at(-1), "outcome cancelled");
    });
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

async function until(holds: () => Promise<boolean>): Promise<void> {
  while (!(await holds())) await new Promise((resolve) => setImmediate(resolve));
}

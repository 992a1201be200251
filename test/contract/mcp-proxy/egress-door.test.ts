import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import type { ServerResponse } from "node:http";
import { connect } from "node:net";
import { until } from "../../kit/until.ts";
import { EgressStage } from "./egress-stage.ts";
import { ANYWHERE, askFrom, connectFrom, type HandKit, only, rawFrom, type TestHand } from "./hand-kit.ts";
import { briefly, type ProxyKit } from "./proxy-kit.ts";
import type { Recorder } from "./recorder.ts";

const secretOf = () => `sk-${randomBytes(18).toString("base64url")}`;

describe("the egress door", () => {
  let stage: EgressStage;
  let kit: ProxyKit;
  let hands: HandKit;
  let plain: Recorder;
  let api: Recorder;
  let unlisted: Recorder;

  before(async function () {
    this.timeout(90_000);
    stage = await EgressStage.start();
    ({ kit, hands, plain, api, unlisted } = stage);
  });
  after(() => stage?.stop());
  beforeEach(() => stage.reset());

  describe("plain http", () => {
    it("passes a request to an allowed host and writes one record of each kind", async () => {
      const hand = await hands.hand({ networking: only("localhost") });
      plain.listener = (_request, response) => void response.writeHead(201, { "x-own": "1" }).end("made");
      const answer = await askFrom(hand, stage.http("/a?b=c"), {
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
        await stage.assertRefused(hand, "DEST_NOT_ALLOWED", () => askFrom(hand, stage.http()));
      }
    });

    it("refuses plain http to a host that the operator does not list, whatever the environment allows [A003]", async () => {
      const hand = await hands.hand({ networking: ANYWHERE });
      await stage.assertRefused(hand, "SCHEME_NOT_ALLOWED", () =>
        askFrom(hand, `http://localhost:${unlisted.port}/`),
      );
    });

    it("refuses a Host header that is not the dialled host [A001]", async () => {
      for (const host of ["evil.test", `127.0.0.1:${plain.port}`, "localhost", `u@localhost:${plain.port}`]) {
        const hand = await hands.hand({ networking: ANYWHERE });
        await stage.assertRefused(hand, "HEADER_FORBIDDEN", () => askFrom(hand, stage.http(), { host }));
      }
    });

    it("refuses two Host headers and none [A001]", async () => {
      const line = `GET ${stage.http()} HTTP/1.1\r\n`;
      for (const head of [`Host: localhost:${plain.port}\r\nHost: localhost:${plain.port}\r\n`, ""]) {
        const hand = await hands.hand({ networking: ANYWHERE });
        const text = await rawFrom(hand, `${line}${head}connection: close\r\n\r\n`);
        assert.match(text, /^HTTP\/1\.1 400 [\s\S]*ganglion-reason: HEADER_FORBIDDEN/i);
        assert.deepEqual(await stage.rows(hand), ["decision deny HEADER_FORBIDDEN"]);
      }
      assert.equal(stage.forwarded, 0);
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
      assert.equal(stage.forwarded, 0);
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
        assert.deepEqual(await stage.rows(hand), ["decision deny URL_NOT_CANONICAL"]);
      }
      assert.equal(stage.forwarded, 0);
    });

    it("refuses what is no plain HTTP: CR and NUL in headers, two lengths, a head without end [A023] [A030]", async () => {
      const line = `POST ${stage.http()} HTTP/1.1\r\nHost: localhost:${plain.port}\r\n`;
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
        assert.deepEqual(await stage.rows(hand), [`decision deny ${reason}`]);
      }
      assert.equal(stage.forwarded, 0);
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
      assert.equal(stage.forwarded, 0);
    });

    it("passes redirects back and follows none [A017] [A019]", async () => {
      const hand = await hands.hand({ networking: only("localhost") });
      const location = "http://169.254.169.254/latest/";
      plain.listener = (_request, response) => void response.writeHead(302, { location }).end();
      const answer = await askFrom(hand, stage.http());
      assert.equal(answer.status, 302);
      assert.equal(answer.headers.location, location);
      assert.equal(plain.connections, 1);
      // Whoever follows it is judged anew.
      assert.equal((await askFrom(hand, location)).reason, "DEST_NOT_ALLOWED");
    });

    it("passes an answer on as it comes, however long its end takes", async () => {
      const hand = await hands.hand({ networking: only("localhost") });
      let last: ServerResponse | undefined;
      plain.listener = ({ url }, response) => {
        if (url === "/stream") {
          last = response;
          response.write("first");
        } else {
          last?.end(" last");
          response.end("told");
        }
      };
      const socket = connect(hand.port, "127.0.0.1");
      const target = new URL(stage.http("/stream"));
      socket.write(`GET ${target.href} HTTP/1.1\r\nhost: ${target.host}\r\nconnection: close\r\n\r\n`);
      let text = "";
      for await (const chunk of socket) {
        const isNew = !text.includes("first");
        text += String(chunk);
        // The rest comes only after the hand has seen the beginning.
        if (isNew && text.includes("first")) await askFrom(hand, stage.http("/go-on"));
      }
      assert.match(text, /first[\s\S]* last/);
    });

    it("never puts a credential on plain http: the placeholder travels as it is [A003] [A054]", async () => {
      const secret = secretOf();
      const hand = await hands.hand({ networking: ANYWHERE, variables: [{ name: "KEY", secret }] });
      const placeholder = hand.placeholder("KEY");
      await askFrom(hand, stage.http(), {
        headers: { authorization: `Bearer ${placeholder}` },
        body: placeholder,
      });
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
      assert.deepEqual(await stage.rows(hand), ["decision allow", "outcome upstream_unreachable"]);
    });
  });

  describe("CONNECT without a credential", () => {
    it("is a blind tunnel to the one address that was checked, end to end in TLS [A033]", async () => {
      const hand = await hands.hand({ networking: only("localhost") });
      const big = randomBytes(3 << 20);
      api.listener = (_request, response) => void response.end(big);
      const answer = await askFrom(hand, stage.https(), { headers: { authorization: "Bearer of-its-own" } });
      assert.ok(answer.body.equals(big));
      // What is inside is nobody's business here: an own key in it is a matter of which hosts are allowed [A057].
      assert.equal(api.seen[0]?.headers.authorization, "Bearer of-its-own");
      await until(async () => (await stage.rows(hand)).length === 3, "three records");
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
        assert.deepEqual(await stage.rows(hand), ["decision deny DEST_NOT_ALLOWED"], authority);
      }
      assert.equal(stage.forwarded, 0);
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
      assert.equal(stage.forwarded, 0);
    });

    it("sends nothing before it was greeted in TLS for the very host that was asked for [A001]", async () => {
      const hand = await hands.hand({ networking: only("localhost") });
      const before = api.seen.length;
      await assert.rejects(askFrom(hand, stage.https(), { servername: "evil.test" }));
      await assert.rejects(askFrom(hand, stage.https(), { servername: "" }));
      const way = await connectFrom(hand, `localhost:${api.port}`);
      assert.ok("socket" in way);
      way.socket.write("SSH-2.0-nothing\r\n");
      await once(way.socket.resume(), "close");
      assert.equal(api.seen.length, before);
      const records = await stage.rows(hand);
      assert.deepEqual([...new Set(records)].sort(), ["decision allow", "outcome dest_not_allowed"]);
    });
  });
});

import assert from "node:assert/strict";
import type { IncomingMessage } from "node:http";
import { Readable } from "node:stream";
import { parseDestination } from "../../../../services/mcp-proxy/domain/canonical-url.ts";
import { isMintedToken } from "../../../../services/mcp-proxy/domain/minted-token.ts";
import { PLACEHOLDER_BYTES, PLACEHOLDER_PREFIX } from "../../../../services/mcp-proxy/domain/placeholder.ts";
import { reasonOf } from "../../../../services/mcp-proxy/domain/proxy-error.ts";
import { createRequestTokens } from "../../../../services/mcp-proxy/domain/request-tokens.ts";
import { createTokenSeal } from "../../../../services/mcp-proxy/domain/sealed-token.ts";
import {
  outwardBody,
  outwardHeaders,
  type Substituted,
} from "../../../../services/mcp-proxy/egress/outward-request.ts";
import { sealAnswer } from "../../../../services/mcp-proxy/egress/seal-answer.ts";
import { unseenTraffic } from "../../../kit/unseen-traffic.ts";

const variable = (more: object = {}) =>
  ({
    credential: { credentialId: "vcrd_a" },
    placeholder: "p",
    inHeader: true,
    inBody: true,
    ...more,
  }) as Substituted;
const tokensOf = (fields: readonly string[], elsewhere: readonly string[] = []) =>
  createRequestTokens({
    seal: createTokenSeal(Buffer.alloc(32, 7)),
    ...{ sessionId: "sesn_1", destination: parseDestination("https://a.test/") ?? assert.fail() },
    ...{ method: "POST", path: "/token", variables: [variable()] },
    mintingOf: () => ({ rule: "default.mint[0]", fields, elsewhere }),
  });

describe("an answer that is a new credential", () => {
  const nested = (depth: number) => `${"[".repeat(depth)}${"]".repeat(depth)}`;

  it("is known however deep its JSON is nested [A066]", () => {
    for (const depth of [10, 3000, 30_000]) {
      const json = (name: string) => Buffer.from(`{"${name}":"new-one","pad":${nested(depth)}}`);
      assert.equal(isMintedToken(json("access_token")), true, String(depth));
      assert.equal(isMintedToken(json("key"), ["key"]), true, String(depth));
      assert.equal(isMintedToken(json("key")), false, String(depth));
    }
    const deep = `${"[".repeat(20_000)}{"key":"new-one"}${"]".repeat(20_000)}`;
    assert.equal(isMintedToken(Buffer.from(deep), ["key"]), true);
  });

  it("is known behind a byte order mark, which clients skip [A066]", () => {
    assert.equal(isMintedToken(Buffer.from('\ufeff{"access_token":"new-one"}')), true);
  });

  it("is known by the names of its fields where it is called JSON and is none that can be read [A066]", () => {
    for (const text of [
      ')]}\'\n{"access_token":"new-one"}',
      '{"key":"new-one"}\n{"n":1}',
      '{"id_token" : "new-one"',
    ]) {
      assert.equal(isMintedToken(Buffer.from(text), ["key"]), true, text);
    }
    for (const text of ["access_token", '{"access_token', '{"tokens":1', ""]) {
      assert.equal(isMintedToken(Buffer.from(text), ["key"]), false, text);
    }
  });

  it("is withheld from a granted route when another one is inside it, at any depth [A066]", async () => {
    const seal = async (json: string) => {
      const body = async function* () {
        yield Buffer.from(json);
      };
      return JSON.parse((await sealAnswer(body(), tokensOf(["access_token"]))).toString());
    };
    for (const inside of ['{"refresh_token":"other-one"}', '[{"id_token":"other-one"}]']) {
      await assert.rejects(
        seal(`{"access_token":"new-one","data":${inside}}`),
        (error) => reasonOf(error) === "RESPONSE_WITHHELD",
        inside,
      );
    }
    const { data } = await seal('{"data":{"access_token":"new-one","token_type":"bearer"},"expires_in":1}');
    assert.match(data.access_token, /^ganglion_sealed_/);
  });
});

describe("a request that carries credentials", () => {
  it("is refused when its body would become very much larger by them: it is read before it is sent [A154]", async () => {
    const one = variable({ placeholder: PLACEHOLDER_PREFIX.padEnd(PLACEHOLDER_BYTES, "0") });
    const body = async (times: number) => {
      const bytes = Buffer.from(one.placeholder.repeat(times));
      const headers = { "content-length": String(bytes.length), "content-type": "text/plain" };
      const request = Object.assign(Readable.from([bytes]), { headers }) as unknown as IncomingMessage;
      const sent = [{ ...one, value: "s".repeat(65_536) }];
      return outwardBody(request, sent, tokensOf([]), unseenTraffic());
    };
    assert.equal((await body(10)).length, 655_360);
    await assert.rejects(body(1_000), (error) => reasonOf(error) === "MESSAGE_TOO_LARGE");
  });

  it("asks for no part of an answer: what is searched for could be cut in two [A058, A066]", () => {
    const rawHeaders = ["Accept", "*/*", "Range", "bytes=0-9", "If-Range", '"x"'];
    const request = { headers: {}, rawHeaders } as unknown as IncomingMessage;
    const names = (sent: Substituted[]) =>
      outwardHeaders(request, sent, tokensOf([])).filter((_, i) => i % 2 === 0);
    assert.deepEqual(names([variable({ value: "s" })]), ["Accept", "accept-encoding"]);
    assert.deepEqual(names([]), ["Accept", "Range", "If-Range"]);
  });
});

import assert from "node:assert/strict";
import fc from "fast-check";
import { parseDestination } from "../../../../services/mcp-proxy/domain/canonical-url.ts";
import type { Variable } from "../../../../services/mcp-proxy/domain/judge-egress.ts";
import { reasonOf } from "../../../../services/mcp-proxy/domain/proxy-error.ts";
import { createRequestTokens } from "../../../../services/mcp-proxy/domain/request-tokens.ts";
import { createTokenSeal, sealedName } from "../../../../services/mcp-proxy/domain/sealed-token.ts";
import { createUnsealing } from "../../../../services/mcp-proxy/domain/unseal.ts";
import { bytesJoined } from "../../../kit/bytes-joined.ts";

const key = Buffer.alloc(32, 7);
const seal = createTokenSeal(key);
const place = { sessionId: "sesn_1", origin: "https://a.test:443" };
const token = {
  ...{ value: 'tok"en-1', method: "POST", path: "/token", field: "access_token" },
  credentialIds: ["vcrd_a"],
};
const sealed = seal.seal(token, place) ?? "";

describe("a sealed token", () => {
  it("opens with the same key, for the same session and origin, and for no other [A066]", () => {
    assert.match(sealed, /^ganglion_sealed_[A-Za-z0-9_-]+$/);
    assert.deepEqual(seal.open(sealed, place), token);
    assert.deepEqual(createTokenSeal(Buffer.from(key)).open(sealed, place), token);
    assert.equal(createTokenSeal(Buffer.alloc(32, 8)).open(sealed, place), undefined);
    assert.equal(seal.open(sealed, { ...place, sessionId: "sesn_2" }), undefined);
    for (const origin of ["https://a.test:8443", "http://a.test:443", "https://b.test:443"]) {
      assert.equal(seal.open(sealed, { ...place, origin }), undefined);
    }
  });

  it("does not open when a character of it is another, is missing or was added [A066]", () => {
    for (let at = 0; at < sealed.length; at += 1) {
      const other = sealed[at] === "A" ? "B" : "A";
      assert.equal(
        seal.open(sealed.slice(0, at) + other + sealed.slice(at + 1), place),
        undefined,
        String(at),
      );
      assert.equal(seal.open(sealed.slice(0, at), place), undefined);
    }
    for (const more of ["A", "==", " ", "."]) assert.equal(seal.open(sealed + more, place), undefined);
  });

  it("is another each time, with a name that says nothing about the token", () => {
    const again = seal.seal(token, place) ?? "";
    assert.notEqual(again, sealed);
    assert.notEqual(sealedName(again), sealedName(sealed));
    assert.match(sealedName(sealed), /^mint_[0-9a-f]{16}$/);
  });

  it("is made of nothing that could not be sent", () => {
    for (const value of ["", "abc", " abcd", "a\nbcd", "abcdé", "x".repeat(16_385)]) {
      assert.equal(seal.seal({ ...token, value }, place), undefined, value.slice(0, 8));
    }
    const longest = seal.seal({ ...token, value: "x".repeat(16_384) }, place) ?? "";
    assert.ok(longest.length < 32_768);
  });
});

describe("sealed tokens in a stream", () => {
  const opened = (text: string) => `<${seal.open(text, place)?.value ?? assert.fail("it does not open")}>`;
  const inPieces = (text: string, cuts: readonly number[]) => {
    const unsealing = createUnsealing(opened);
    const bytes = Buffer.from(text);
    const ends = [...cuts].sort((a, b) => a - b).concat(bytes.length);
    const parts = ends.map((end, i) => unsealing.push(bytes.subarray(i === 0 ? 0 : ends[i - 1], end)));
    return Buffer.concat([...parts, unsealing.flush()]).toString();
  };
  const text = `x${sealed} ganglion_${sealed}"ganglion_sealed_ ganglion_sealed_short grüße ${sealed}.ganglion_sea`;
  const wanted = text.replaceAll(sealed, `<${token.value}>`);

  it("are opened wherever its pieces end [A066]", () => {
    for (let cut = 0; cut <= Buffer.byteLength(text); cut += 1) assert.equal(inPieces(text, [cut]), wanted);
    fc.assert(
      fc.property(fc.array(fc.nat(Buffer.byteLength(text)), { maxLength: 40 }), (cuts) => {
        assert.equal(inPieces(text, cuts), wanted);
      }),
    );
    assert.equal(inPieces(sealed, []), `<${token.value}>`);
  });

  it("hold back no more than may be one", () => {
    const unsealing = createUnsealing(opened);
    assert.equal(unsealing.push(Buffer.from("abc ganglion_seal")).toString(), "abc ");
    assert.equal(unsealing.push(Buffer.from("s ")).toString(), "ganglion_seals ");
    const endless = Buffer.from(`ganglion_sealed_${"A".repeat(40_000)}`);
    assert.throws(() => createUnsealing(opened).push(endless));
  });

  it("are looked through once, also where they come byte by byte [A154]", async () => {
    const copied = await bytesJoined(() => {
      const unsealing = createUnsealing(opened);
      unsealing.push(Buffer.from("ganglion_sealed_"));
      for (let i = 0; i < 30_000; i += 1) assert.equal(unsealing.push(Buffer.from("A")).length, 0);
      assert.throws(() => unsealing.flush());
    });
    assert.ok(copied < 100_000, `${copied} bytes were copied`);
  });
});

describe("the tokens of a request", () => {
  const destination = parseDestination("https://a.test/") ?? assert.fail();
  const variable = (credentialId: string, places: object = {}) =>
    ({ credential: { credentialId }, placeholder: "", inHeader: true, inBody: true, ...places }) as Variable;
  const tokens = (variables: Variable[], fields = ["access_token"]) =>
    createRequestTokens({
      ...{ seal, sessionId: "sesn_1", destination, method: "GET", path: "/me", variables },
      mintingOf: ({ path }) => ({
        ...(path === "/token" ? { rule: "default.mint[0]", fields } : { fields: [] }),
        elsewhere: [],
      }),
    });
  const refuses = (work: () => unknown) => assert.throws(work, (error) => reasonOf(error) === "SEAL_INVALID");
  const body = (of: ReturnType<typeof tokens>, type: string) => {
    const unsealing = of.inBody(type, () => {});
    return Buffer.concat([unsealing.push(Buffer.from(`"${sealed}"`)), unsealing.flush()]).toString();
  };

  it("stay one value of the body, and are known for the answer by then [A066]", () => {
    const asked = tokens([variable("vcrd_a")]);
    assert.equal(JSON.parse(body(asked, "application/json")), token.value);
    assert.equal(body(asked, "text/plain"), `"${token.value}"`);
    assert.deepEqual(asked.known, [{ value: token.value, label: sealedName(sealed) }]);
    assert.equal(asked.detail, `used ${sealedName(sealed)}`);
    assert.equal(asked.inHeader("Bearer x"), "Bearer x");
  });

  it("open while their credentials may go there, in that place, and their route is granted [A066]", () => {
    for (const variables of [[], [variable("vcrd_b")], [variable("vcrd_a", { inHeader: false })]]) {
      refuses(() => tokens(variables).inHeader(`Bearer ${sealed}`));
    }
    refuses(() => body(tokens([variable("vcrd_a", { inBody: false })]), "text/plain"));
    const granted = tokens([variable("vcrd_b"), variable("vcrd_a", { inBody: false })]);
    assert.equal(granted.inHeader(`Bearer ${sealed}`), `Bearer ${token.value}`);
    const denied = createRequestTokens({
      ...{
        seal,
        sessionId: "sesn_1",
        destination,
        method: "GET",
        path: "/me",
        variables: [variable("vcrd_a")],
      },
      mintingOf: () => ({ fields: [], elsewhere: ["token"] }),
    });
    refuses(() => denied.inHeader(`Bearer ${sealed}`));
    // The route is granted still, and this field of it no more.
    refuses(() => tokens([variable("vcrd_a")], ["refresh_token"]).inHeader(`Bearer ${sealed}`));
  });

  it("are ten at most, brought or made: each is searched for", () => {
    const asked = tokens([variable("vcrd_a")]);
    const many = Array.from({ length: 11 }, () => seal.seal(token, place) ?? "");
    for (const one of many.slice(0, 10)) asked.inHeader(one);
    asked.inHeader(many[3] ?? "");
    refuses(() => asked.inHeader(many[10] ?? ""));
    for (let i = 0; i < 10; i += 1) asked.seal(`made-${i}`, "access_token");
    assert.throws(
      () => asked.seal("one-more", "access_token"),
      (error) => reasonOf(error) === "RESPONSE_WITHHELD",
    );
    assert.ok(asked.detail.length <= 512);
  });

  it("do not open any more once the answer is being searched: it would not be known there [A066]", () => {
    const asked = tokens([variable("vcrd_a")]);
    const unsealing = asked.inBody("text/plain", () => {});
    unsealing.push(Buffer.from("a"));
    asked.close();
    refuses(() => unsealing.push(Buffer.from(`${sealed} `)));
    assert.deepEqual(asked.known, []);
  });
});

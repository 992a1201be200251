import assert from "node:assert/strict";
import { createPlaceholders, PLACEHOLDER_BYTES } from "../../../../services/mcp-proxy/domain/placeholder.ts";
import {
  createSubstitution,
  encodeForBody,
  substituteHeader,
} from "../../../../services/mcp-proxy/domain/substitute.ts";

const placeholderOf = createPlaceholders(Buffer.alloc(32, 7));
const A = placeholderOf("sesn_1", "vcrd_a");
const B = placeholderOf("sesn_1", "vcrd_b");
const values = new Map([
  [A, "secret-a"],
  [B, "b"],
]);

function inPieces(text: string, cuts: readonly number[]): string {
  const substitution = createSubstitution(values);
  const bytes = Buffer.from(text);
  const parts: Buffer[] = [];
  let from = 0;
  for (const cut of [...cuts, bytes.length]) {
    parts.push(substitution.push(bytes.subarray(from, cut)));
    from = cut;
  }
  return Buffer.concat([...parts, substitution.flush()]).toString();
}

describe("a placeholder", () => {
  it("follows from session and credential, and from nothing else", () => {
    assert.match(A, /^ganglion_placeholder_[a-z2-7]{26}$/);
    assert.equal(A.length, PLACEHOLDER_BYTES);
    assert.equal(placeholderOf("sesn_1", "vcrd_a"), A);
    const others = [
      B,
      placeholderOf("sesn_2", "vcrd_a"),
      createPlaceholders(Buffer.alloc(32, 8))("sesn_1", "vcrd_a"),
    ];
    assert.ok(!others.includes(A));
  });

  const text = `x${A}${B}ganglion_${A}y ganglion_placeholder_ ${placeholderOf("sesn_2", "vcrd_a")} ganglion_pl`;
  const wanted = text.replaceAll(A, "secret-a").replaceAll(B, "b");

  it("is replaced wherever the pieces of a stream end", () => {
    for (let cut = 0; cut <= text.length; cut += 1) {
      assert.equal(inPieces(text, [cut]), wanted, String(cut));
      assert.equal(inPieces(text, [cut, Math.min(text.length, cut + 5)]), wanted);
    }
    assert.equal(
      inPieces(
        text,
        Array.from({ length: text.length }, (_, i) => i),
      ),
      wanted,
    );
  });

  it("holds back nothing that cannot begin one", () => {
    const substitution = createSubstitution(values);
    assert.equal(substitution.push(Buffer.from("abc gangl")).toString(), "abc ");
    assert.equal(substitution.push(Buffer.from("ia")).toString(), "ganglia");
  });

  it("is replaced in a header, inside of Basic too, and unknown ones stay [A054]", () => {
    const basic = (pair: string) => `Basic ${Buffer.from(pair).toString("base64")}`;
    assert.equal(substituteHeader(`Bearer ${A}`, values), "Bearer secret-a");
    assert.equal(substituteHeader(basic(`u:${A}`), values), basic("u:secret-a"));
    assert.equal(substituteHeader(basic("u:p"), values), basic("u:p"));
    assert.equal(substituteHeader("grüße", values), "grüße");
    const foreign = placeholderOf("sesn_2", "vcrd_a");
    assert.equal(substituteHeader(foreign, values), foreign);
  });

  it("stays one value of the body that it goes into", () => {
    const odd = 'a"b\\c&d=e +';
    assert.deepEqual(JSON.parse(`"${encodeForBody(odd, "application/vnd.api+json; charset=utf-8")}"`), odd);
    const form = new URLSearchParams(`k=${encodeForBody(odd, "application/x-www-form-urlencoded")}`);
    assert.equal(form.get("k"), odd);
    assert.equal(encodeForBody(odd, "text/plain"), odd);
  });
});

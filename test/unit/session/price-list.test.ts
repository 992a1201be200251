import assert from "node:assert/strict";
import { parsePriceList } from "../../../services/session/domain/price-list.ts";

const price = (input: number) => ({
  input_microcents: input,
  output_microcents: 2,
  cache_read_microcents: 3,
  cache_write_5m_microcents: 4,
  cache_write_1h_microcents: 5,
});
const parse = (value: unknown) => parsePriceList(Buffer.from(JSON.stringify(value)));

describe("the price list of models", () => {
  it("a whole name counts before any beginning, a longer beginning before a shorter one", () => {
    const list = parse({ models: { "a*": price(10), "a-b*": price(11), "a-b": price(12), c: price(0) } });
    const inputs = ["a-b", "a-bc", "a-x", "a", "c", "cd", "b"].map((id) => list.priceOf(id)?.inputMicrocents);
    assert.deepEqual(inputs, [12n, 11n, 10n, 10n, 0n, undefined, undefined]);
    assert.deepEqual(list.priceOf("c"), {
      inputMicrocents: 0n,
      outputMicrocents: 2n,
      cacheReadMicrocents: 3n,
      cacheWrite5mMicrocents: 4n,
      cacheWrite1hMicrocents: 5n,
    });
  });

  it("knows nothing that is not in it", () => {
    const list = parse({ models: {} });
    for (const name of ["", "constructor", "__proto__"]) assert.equal(list.priceOf(name), undefined);
  });

  it("is refused as a whole when anything in it is wrong", () => {
    const { input_microcents: _, ...missing } = price(1);
    for (const [value, message] of [
      [[], /one JSON object/],
      [{}, /models/],
      [{ models: [] }, /models/],
      [{ models: {}, currency: "USD" }, /currency/],
      [{ models: { a: null } }, /"a"/],
      [{ models: { a: missing } }, /input_microcents/],
      [{ models: { a: { ...price(1), more: 1 } } }, /more/],
      [{ models: { a: price(-1) } }, /input_microcents/],
      [{ models: { a: price(1.5) } }, /input_microcents/],
      [{ models: { a: price(1_000_000_001) } }, /input_microcents/],
      [{ models: { a: { ...price(1), input_microcents: "1" } } }, /input_microcents/],
      [{ models: { "*": price(1) } }, /"\*"/],
      [{ models: { "a*b": price(1) } }, /"a\*b"/],
    ] as const) {
      assert.throws(() => parse(value), message, JSON.stringify(value));
    }
    assert.throws(() => parsePriceList(Buffer.from("{")), /one JSON object/);
  });
});

import assert from "node:assert/strict";
import { visible, visibleLines } from "../../../services/cli/terminal/visible-text.ts";

describe("text of others on a terminal", () => {
  it("loses its power over the terminal [A077]", () => {
    assert.equal(visible("a\u001b[31mred\u001b]0;title\u0007"), "a\\u001b[31mred\\u001b]0;title\\u0007");
    assert.equal(visible("safe\u202eevil"), "safe\\u202eevil");
    assert.equal(visible("one\r\ntwo\tthree"), "one two three");
  });

  it("keeps its lines where lines are wanted, but no bare carriage return", () => {
    assert.equal(visibleLines("one\n\ttwo\rthree"), "one\n  two\\u000dthree");
  });

  it("is left alone when it is harmless", () => {
    assert.equal(visible("grüße 你好 🎉"), "grüße 你好 🎉");
  });
});

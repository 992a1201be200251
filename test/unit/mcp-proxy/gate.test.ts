import assert from "node:assert/strict";
import { createGate } from "../../../services/mcp-proxy/audit/gate.ts";

describe("the gate of writers", () => {
  it("lets so many in, the others in order, and goes on after a failure", async () => {
    const gate = createGate(2);
    const order: string[] = [];
    let inside = 0;
    let most = 0;
    const work = (name: string, fails = false) =>
      gate(async () => {
        inside += 1;
        most = Math.max(most, inside);
        order.push(name);
        await new Promise((resolve) => setImmediate(resolve));
        inside -= 1;
        if (fails) throw new Error(name);
        return name;
      });
    const results = await Promise.allSettled([
      work("a"),
      work("b", true),
      work("c"),
      work("d", true),
      work("e"),
    ]);
    assert.deepEqual(order, ["a", "b", "c", "d", "e"]);
    assert.equal(most, 2);
    assert.deepEqual(
      results.map(({ status }) => status),
      ["fulfilled", "rejected", "fulfilled", "rejected", "fulfilled"],
    );
    assert.equal(await work("f"), "f");
  });
});

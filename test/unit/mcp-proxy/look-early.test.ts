import assert from "node:assert/strict";
import type { AccessRow } from "../../../services/mcp-proxy/domain/access.ts";
import { lookEarly } from "../../../services/mcp-proxy/domain/look-early.ts";

const lookup = (token: number) => ({
  tokenHash: Buffer.alloc(32, token),
  kinds: ["model_api_key" as const],
  urls: [],
  mcpServerName: "",
});

describe("a look at a token while its request is still coming", () => {
  const looked: number[] = [];
  let now = 0;
  const access = {
    find: async ({ tokenHash }: { tokenHash: Buffer }) => {
      looked.push(tokenHash[0] as number);
      return { tokenId: `tok_${looked.length}` } as AccessRow;
    },
  };
  beforeEach(() => {
    looked.length = 0;
    now = 1000;
  });
  const clock = () => now;

  it("is the one that counts when the request is there soon", async () => {
    const early = lookEarly(access, lookup(1), clock);
    assert.deepEqual(looked, [1]);
    now += 100;
    assert.equal((await early.find(lookup(1)))?.tokenId, "tok_1");
    assert.deepEqual(looked, [1]);
  });

  it("is forgotten when the request takes long: what was changed since then counts", async () => {
    const early = lookEarly(access, lookup(1), clock);
    now += 101;
    assert.equal((await early.find(lookup(1)))?.tokenId, "tok_2");
  });

  it("is of no use for another token", async () => {
    const early = lookEarly(access, lookup(1), clock);
    await early.find(lookup(2));
    assert.deepEqual(looked, [1, 2]);
  });

  it("fails nobody who does not ask, and whoever does", async () => {
    const failing = { find: () => Promise.reject(new Error("no database")) };
    lookEarly(failing, lookup(1), clock);
    const early = lookEarly(failing, lookup(1), clock);
    await new Promise((resolve) => setImmediate(resolve));
    await assert.rejects(early.find(lookup(1)), /no database/);
  });
});

import assert from "node:assert/strict";
import { type AccessRow, judgeAccess } from "../../../services/mcp-proxy/domain/access.ts";
import { createRowMac } from "../../../services/mcp-proxy/domain/row-mac.ts";
import { hashSessionToken, newSessionToken } from "../../../services/mcp-proxy/domain/session-token.ts";

const mac = createRowMac(Buffer.alloc(32, 7));
const CALLER = "spiffe://ganglion.local/harness/harness-1";

function row(changes: Partial<AccessRow> = {}): AccessRow {
  const base = {
    tokenHash: Buffer.alloc(32, 1),
    tokenId: "tok_1",
    sessionId: "sesn_1",
    epoch: 3n,
    audience: "harness",
    spiffeId: CALLER,
    handId: "",
    workspaceId: "wrkspc_default",
    vaultIds: ["vlt_a", "vlt_system_default"],
    mcpServers: [{ name: "demo", url: "https://mcp.test" }],
    models: ["claude-test"],
    networking: null,
    gitRepositories: [],
    lowestEpoch: 3n,
    ended: false,
    credentials: [],
    toolPins: [],
  };
  return { ...base, tokenMac: mac.token(base), bindingMac: mac.binding(base), ...changes };
}
const asked = { audience: "harness", spiffeId: CALLER };

describe("access with a session token [A013] [A129]", () => {
  it("is given when everything fits", () => assert.equal(judgeAccess(row(), asked, mac), undefined));

  const changed: [string, Partial<AccessRow>][] = [
    ["session", { sessionId: "sesn_2" }],
    ["epoch", { epoch: 4n }],
    ["audience", { audience: "egress" }],
    ["owner", { spiffeId: "spiffe://ganglion.local/harness/harness-2" }],
    ["workspace", { workspaceId: "wrkspc_other" }],
    ["vaults", { vaultIds: ["vlt_other"] }],
    ["order of vaults", { vaultIds: ["vlt_system_default", "vlt_a"] }],
    ["server", { mcpServers: [{ name: "demo", url: "https://evil.test" }] }],
    ["models", { models: ["claude-test", "claude-other"] }],
    [
      "networking",
      {
        networking: {
          type: "unrestricted",
          allowedHosts: [],
          allowMcpServers: false,
          allowPackageManagers: false,
        },
      },
    ],
    [
      "repositories",
      { gitRepositories: [{ url: "https://git.test/a/b", allowFetch: true, allowPush: true, refs: [] }] },
    ],
    ["hand", { handId: "hand_1" }],
    ["token id", { tokenId: "tok_2" }],
    ["MAC", { tokenMac: Buffer.alloc(0) }],
    ["MAC of the binding", { bindingMac: Buffer.alloc(32) }],
  ];
  for (const [what, change] of changed) {
    it(`is refused when somebody changed the ${what} in the database`, () =>
      assert.equal(judgeAccess(row(change), asked, mac), "ROW_TAMPERED"));
  }

  const unfit: [string, Partial<AccessRow>, typeof asked, string][] = [
    [
      "another caller",
      {},
      { ...asked, spiffeId: "spiffe://ganglion.local/harness/harness-2" },
      "CALLER_MISMATCH",
    ],
    ["a caller without a name", {}, { ...asked, spiffeId: "" }, "CALLER_MISMATCH"],
    ["another door [A129]", {}, { ...asked, audience: "egress" }, "TOKEN_AUDIENCE"],
    ["an ended session", { ended: true }, asked, "SESSION_ENDED"],
    ["a session without fence [A013]", { ended: null, lowestEpoch: null }, asked, "SESSION_ENDED"],
    ["an old epoch", { lowestEpoch: 4n }, asked, "TOKEN_STALE_EPOCH"],
  ];
  for (const [what, change, question, reason] of unfit) {
    it(`is refused for ${what}`, () => assert.equal(judgeAccess(row(change), question, mac), reason));
  }

  it("needs a token of the exact form", () => {
    const token = newSessionToken();
    assert.equal(hashSessionToken(token)?.length, 32);
    for (const bad of [
      undefined,
      "",
      "fake",
      `${token} `,
      `${token}, ${token}`,
      token.slice(0, -1),
      `x${token}`,
    ]) {
      assert.equal(hashSessionToken(bad), undefined);
    }
    assert.notEqual(newSessionToken(), token);
  });
});

import assert from "node:assert/strict";
import { comparePolicies } from "../../../../services/common/policy/compare-policies.ts";
import { readPolicy } from "../../../../services/common/policy/read-policy.ts";

const policy = (text: string) => readPolicy(`version: 1\n${text}`).policy;

describe("comparing policies", () => {
  it("finds nothing where only order and layout differ", () => {
    const a = policy("default: { mcp: [{ to: [a.test, b.test] }, { to: [c.test], ports: [443] }] }");
    const b = policy(
      "default:\n  mcp:\n    - { ports: [443], to: [c.test] }\n    - { to: [b.test, a.test] }\n",
    );
    assert.deepEqual(comparePolicies(a, b), []);
  });

  it("says what is allowed now and what no longer is", () => {
    const a = policy("default: { mcp: [{ to: [a.test] }], models: [{ names: [m] }] }");
    const b = policy("default: { mcp: [{ to: [b.test] }], models: [{ names: [m] }] }");
    assert.deepEqual(comparePolicies(a, b), [
      { sign: "-", where: "default.mcp", rule: '{"to":["a.test"]}' },
      { sign: "+", where: "default.mcp", rule: '{"to":["b.test"]}' },
    ]);
  });

  it("says what may be made anew [A066]", () => {
    const a = policy("default: {}");
    const b = policy("default: { mint: [{ to: [a.test], paths: [token], fields: [b, a] }] }");
    assert.deepEqual(comparePolicies(a, b), [
      { sign: "+", where: "default.mint", rule: '{"fields":["a","b"],"paths":["token"],"to":["a.test"]}' },
    ]);
  });

  it("compares a workspace's new bound with the default it had", () => {
    const a = policy("default: { mcp: [{ to: [a.test] }] }");
    const b = policy(
      "default: { mcp: [{ to: [a.test] }] }\nworkspaces: { wrkspc_x: { egress: [{ to: [c.test] }] } }",
    );
    assert.deepEqual(comparePolicies(a, b), [
      { sign: "-", where: "workspaces.wrkspc_x.mcp", rule: '{"to":["a.test"]}' },
      { sign: "+", where: "workspaces.wrkspc_x.egress", rule: '{"to":["c.test"]}' },
    ]);
  });
});

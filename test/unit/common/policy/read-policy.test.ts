import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import {
  MAX_POLICY_BYTES,
  PolicyInvalid,
  readPolicy,
} from "../../../../services/common/policy/read-policy.ts";

const SHIPPED = new URL("../../../../deploy/local/policy.yaml", import.meta.url);

const problemsOf = (text: string): readonly string[] => {
  try {
    readPolicy(text);
  } catch (error) {
    assert.ok(error instanceof PolicyInvalid, String(error));
    return error.problems;
  }
  return assert.fail("the policy was taken");
};

const withRule = (section: string, rule: string) => `version: 1\ndefault:\n  ${section}:\n    - ${rule}\n`;

describe("reading a policy", () => {
  it("takes the one that is shipped", () => {
    const { policy, digest } = readPolicy(readFileSync(SHIPPED, "utf8"));
    assert.match(digest, /^[0-9a-f]{64}$/);
    assert.deepEqual(policy.default.models, [{ names: ["*"] }]);
  });

  it("refuses whatever could mean something else than it says [A155]", () => {
    const bad: [text: string, problem: RegExp][] = [
      ["", /empty/],
      ["# only a comment\n", /empty/],
      ["[]", /must be object/],
      ["version: 2\ndefault: {}", /constant/],
      ["version: 1", /default/],
      ["version: 1\ndefault: {}\ndefault: {}", /duplicate key/],
      ["version: 1\ndefault: {}\n---\nversion: 1\ndefault: {}", /multiple docs/],
      ["version: 1\ndefalt: {}\ndefault: {}", /additional properties \(defalt\)/],
      [withRule("mcp", "{ too: any_public_host }"), /additional properties \(too\)/],
      ["version: 1\ndefault: &all { models: [] }\n", /anchors/],
      ["version: 1\ndefault: &a {}\nworkspaces: { wrkspc_x: *a }", /aliases/],
      ["version: 1\ndefault: !!map {}", /tags/],
      ["version: 1\ndefault: { <<: { models: [] } }", /additional properties/],
      ["version: 1\ndefault: {}\nworkspaces: { team: {} }", /pattern/],
      ["version: 1\ndefault: {}\nworkspaces: { __proto__: {} }", /pattern|__proto__/],
      [withRule("mcp", '{ to: ["*"] }'), /pattern/],
      [withRule("mcp", '{ to: ["a.*.test"] }'), /pattern/],
      [withRule("mcp", '{ to: ["API.good.test"] }'), /pattern/],
      [withRule("mcp", '{ to: ["https://good.test"] }'), /pattern/],
      [withRule("mcp", '{ to: ["(a+)+$"] }'), /pattern/],
      [withRule("mcp", '{ to: ["10.0.0.1"] }'), /an address/],
      [withRule("mcp", '{ to: ["127.1"] }'), /an address/],
      [withRule("mcp", '{ to: ["localhost"] }'), /this machine/],
      [withRule("mcp", "{ to: [] }"), /fewer than 1/],
      [withRule("mcp", "{ to: any_public_host, ports: [0] }"), />= 1/],
      [withRule("models", '{ names: ["cl*ude"] }'), /pattern/],
      [withRule("mint", "{ to: any_public_host, paths: [token] }"), /fields/],
      [withRule("mint", "{ to: any_public_host, fields: [token] }"), /paths/],
      [withRule("mint", "{ to: any_public_host, paths: [/token], fields: [token] }"), /pattern/],
      [withRule("mint", '{ to: any_public_host, paths: ["token?x"], fields: [token] }'), /pattern/],
      [withRule("mint", '{ to: any_public_host, paths: [token], fields: ["*"] }'), /pattern/],
      [withRule("mint", "{ to: any_public_host, paths: [token], fields: [] }"), /fewer than 1/],
      [
        withRule("mint", "{ to: any_public_host, paths: [t], fields: [t], methods: [post] }"),
        /allowed values/,
      ],
      [withRule("mint", '{ to: ["10.0.0.1"], paths: [token], fields: [token] }'), /an address/],
      [withRule("git", "{ to: any_public_host, repositories: [a/b], operations: [push] }"), /without refs/],
      [
        withRule(
          "git",
          "{ to: any_public_host, repositories: [a/b], operations: [fetch], refs: [refs/heads/**] }",
        ),
        /without push/,
      ],
      [
        withRule("git", '{ to: any_public_host, repositories: ["../x"], operations: [fetch], refs: [main] }'),
        /pattern/,
      ],
      ["version: 1\ndefault: {", /line/],
    ];
    for (const [text, problem] of bad) {
      const problems = problemsOf(text);
      assert.ok(
        problems.some((one) => problem.test(one)),
        `${JSON.stringify(text)}: ${problems.join("; ")}`,
      );
    }
  });

  it("says all that is wrong, and quotes nothing of what it read [A155]", () => {
    const secret = "sk-not-for-logs";
    const problems = problemsOf(`version: 1\ndefault:\n  mcp:\n    - { to: ["${secret}_!"] }\n    - {}\n`);
    assert.ok(problems.length >= 2, problems.join("; "));
    assert.doesNotMatch(problems.join(), new RegExp(secret));
  });

  it("refuses a policy that nobody can know by heart: 10,000 rules, or a megabyte [A155]", () => {
    const rules = Array.from({ length: 10_000 }, (_, i) => `    - { to: [h${i}.test] }`).join("\n");
    assert.match(problemsOf(`version: 1\ndefault:\n  mcp:\n${rules}\n`).join(), /more than 1000/);
    assert.deepEqual(problemsOf(`# ${"x".repeat(MAX_POLICY_BYTES)}`), ["larger than 1 MiB"]);
  });

  it("has the same digest whatever the layout, and another for another rule", () => {
    const a = readPolicy("version: 1\ndefault: { mcp: [{ to: [a.test], ports: [443] }] }\n");
    const b = readPolicy("# said\ndefault:\n  mcp:\n  - ports: [443]\n    to: ['a.test']\nversion: 1\n");
    const c = readPolicy("version: 1\ndefault: { mcp: [{ to: [b.test], ports: [443] }] }\n");
    assert.equal(a.digest, b.digest);
    assert.notEqual(a.digest, c.digest);
  });
});

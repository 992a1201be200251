import assert from "node:assert/strict";
import fc from "fast-check";
import {
  findMinting,
  findRule,
  type PolicyDestination,
} from "../../../../services/common/policy/judge-policy.ts";
import type { Policy } from "../../../../services/common/policy/policy.ts";

const to = (host: string, more: Partial<PolicyDestination> = {}): PolicyDestination => ({
  scheme: "https",
  host,
  port: 443,
  isListedInside: false,
  ...more,
});

const policy: Policy = {
  version: 1,
  default: {
    models: [{ names: ["claude-*", "exact"] }],
    mcp: [{ to: ["github.com", "*.acme.test"] }, { to: ["odd.test"], ports: [8443] }],
    egress: [{ to: "any_public_host" }],
    oauth: [{ to: "listed_inside_hosts" }],
    git: [
      { to: ["github.com"], repositories: ["acme/*"], operations: ["fetch"] },
      { to: ["github.com"], repositories: ["acme/app"], operations: ["push"], refs: ["refs/heads/agent/**"] },
      { to: ["github.com"], repositories: ["acme/app"], operations: ["push"], refs: ["refs/tags/v1"] },
    ],
  },
  workspaces: { wrkspc_closed: {} },
};
const mcp = (destination: PolicyDestination, workspace = "wrkspc_a") =>
  findRule(policy, workspace, { door: "mcp", destination });

describe("judging by a policy", () => {
  it("names the rule that allows, and denies what none names", () => {
    assert.equal(mcp(to("github.com")), "default.mcp[0]");
    assert.equal(mcp(to("odd.test", { port: 8443 })), "default.mcp[1]");
    assert.equal(mcp(to("odd.test")), undefined);
    assert.equal(mcp(to("other.test")), undefined);
  });

  it("matches whole names only [A005]", () => {
    for (const host of [
      "github.com.evil.test",
      "evil-github.com",
      "evilgithub.com",
      "sub.github.com",
      "acme.test",
      "evilacme.test",
      ".acme.test",
      "acme.test.evil.test",
    ]) {
      assert.equal(mcp(to(host)), undefined, host);
    }
    assert.equal(mcp(to("a.b.acme.test")), "default.mcp[0]");
  });

  it("opens plain HTTP to listed inside hosts only [A003]", () => {
    const plain = { scheme: "http", port: 80 } as const;
    assert.equal(mcp(to("github.com", plain)), undefined);
    const inside = to("10.1.2.3", { ...plain, port: 8080, isListedInside: true });
    assert.equal(findRule(policy, "wrkspc_a", { door: "oauth", destination: inside }), "default.oauth[0]");
    assert.equal(findRule(policy, "wrkspc_a", { door: "oauth", destination: to("as.test") }), undefined);
    // "Public" does not take in what is listed as inside.
    assert.equal(findRule(policy, "wrkspc_a", { door: "egress", destination: inside }), undefined);
  });

  it("lets a workspace's own bound stand alone, and a name of Object's prototype is no workspace [A112]", () => {
    assert.equal(mcp(to("github.com"), "wrkspc_closed"), undefined);
    for (const name of ["__proto__", "constructor", "toString"]) {
      assert.equal(mcp(to("github.com"), name), "default.mcp[0]");
    }
  });

  it("knows models by name or beginning", () => {
    const model = (name: string) => findRule(policy, "wrkspc_a", { door: "models", model: name });
    assert.equal(model("claude-x"), "default.models[0]");
    assert.equal(model("exact"), "default.models[0]");
    for (const name of ["exact-2", "xclaude-", "claude", ""]) assert.equal(model(name), undefined, name);
  });

  it("bounds repositories, operations and every ref of a push [A073]", () => {
    const git = (repository: string, operation: "fetch" | "push", refs: string[] = []) =>
      findRule(policy, "wrkspc_a", {
        door: "git",
        destination: to("github.com"),
        repository,
        operation,
        refs,
      });
    assert.equal(git("acme/app", "fetch"), "default.git[0]");
    assert.equal(git("evil/app", "fetch"), undefined);
    assert.equal(git("acme/app/more", "fetch"), undefined);
    assert.equal(git("acme/..", "fetch"), undefined);
    assert.equal(git("acme/", "fetch"), undefined);
    assert.equal(git("acme/other", "push", ["refs/heads/agent/x"]), undefined);
    assert.equal(git("acme/app", "push", ["refs/heads/agent/x", "refs/tags/v1"]), "default.git[1]");
    assert.equal(git("acme/app", "push", ["refs/heads/agent/x", "refs/heads/main"]), undefined);
    assert.equal(git("acme/app", "push", ["refs/heads/agent/../main"]), undefined);
    assert.equal(git("acme/app", "push", ["refs/heads/agent"]), undefined);
  });

  it("only ever widens when a rule is added", () => {
    const host = fc.constantFrom("a.test", "b.a.test", "c.test", "a.test.c.test");
    const pattern = fc.constantFrom("a.test", "*.a.test", "c.test", "*.test");
    const rules = fc.array(fc.record({ to: fc.array(pattern, { minLength: 1 }) }));
    fc.assert(
      fc.property(rules, fc.record({ to: fc.array(pattern, { minLength: 1 }) }), host, (some, more, name) => {
        const ask = (list: typeof some) =>
          findRule({ version: 1, default: { mcp: list } }, "w", { door: "mcp", destination: to(name) });
        if (ask(some) !== undefined) assert.notEqual(ask([more, ...some]), undefined);
        if (ask([...some, more]) !== undefined) assert.ok(ask(some) ?? ask([more]));
      }),
    );
  });
});

describe("a policy on new credentials", () => {
  const rule = { paths: ["oauth/token"], fields: ["access_token"] };
  const minting: Policy = {
    version: 1,
    default: {
      mint: [
        { to: ["auth.test"], ...rule },
        {
          to: ["auth.test"],
          paths: ["api/tokens/*", "oauth/token"],
          methods: ["POST", "PUT"],
          fields: ["token"],
        },
      ],
    },
    workspaces: { wrkspc_closed: { egress: [{ to: "any_public_host" }] } },
  };
  const find = (path: string, method = "POST", host = "auth.test", workspace = "wrkspc_a") =>
    findMinting(minting, workspace, { destination: to(host), method, path });

  it("says what of a route's answer is sealed, by all rules that name it [A066]", () => {
    assert.deepEqual(find("oauth/token"), {
      rule: "default.mint[0]",
      fields: ["access_token", "token"],
      elsewhere: [],
    });
    assert.deepEqual(find("api/tokens/7", "PUT"), {
      rule: "default.mint[1]",
      fields: ["token"],
      elsewhere: ["access_token"],
    });
  });

  it("lets no other route, method, host or workspace have one [A066]", () => {
    const nothing = { fields: [], elsewhere: ["access_token", "token"] };
    for (const path of [
      "",
      "oauth",
      "oauth/token/",
      "/oauth/token",
      "oauth/Token",
      "api/tokens",
      "api/tokens/1/2",
      // What the server may take apart where a pattern sees one segment.
      "api/tokens/..%2f..%2fother",
      "api/tokens/%2e%2e",
      "api/tokens/..;",
      "api/tokens/..\\other",
    ]) {
      assert.deepEqual(find(path), nothing, path);
    }
    assert.deepEqual(find("oauth/token", "GET"), nothing);
    assert.deepEqual(find("oauth/token", "post"), nothing);
    assert.deepEqual(find("oauth/token", "POST", "auth.test.evil.test"), { fields: [], elsewhere: [] });
    assert.deepEqual(find("oauth/token", "POST", "auth.test", "wrkspc_closed"), {
      fields: [],
      elsewhere: [],
    });
    assert.deepEqual(
      findMinting(policy, "wrkspc_a", { destination: to("auth.test"), method: "POST", path: "x" }),
      {
        fields: [],
        elsewhere: [],
      },
    );
  });
});

import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { runCli } from "../../kit/mesh.ts";

const SHIPPED = fileURLToPath(new URL("../../../deploy/local/policy.yaml", import.meta.url));

describe("ganglion policy", function () {
  // Each call is a process of its own.
  this.timeout(60_000);
  let folder: string;
  before(() => {
    folder = mkdtempSync(join(tmpdir(), "ganglion-policy-"));
  });
  after(() => rmSync(folder, { recursive: true, force: true }));

  const file = (name: string, text: string) => {
    const path = join(folder, name);
    writeFileSync(path, text);
    return path;
  };

  it("lints: the shipped one is valid, a typing error is named, a file that is not there is no policy [A155]", async () => {
    const good = await runCli(["policy", "lint", SHIPPED]);
    assert.equal(good.code, 0, good.stderr);
    assert.match(good.stdout, /^valid; .*digest [0-9a-f]{64}/);
    const typo = await runCli(["policy", "lint", file("typo.yaml", "version: 1\ndefault: { egres: [] }\n")]);
    assert.equal(typo.code, 65);
    assert.match(typo.stderr, /egres/);
    assert.equal((await runCli(["policy", "lint", file("empty.yaml", "")])).code, 65);
    assert.equal((await runCli(["policy", "lint", join(folder, "none.yaml")])).code, 66);
  });

  it("compares two", async () => {
    const old = file("old.yaml", "version: 1\ndefault: { mcp: [{ to: [a.test] }] }\n");
    const now = file("new.yaml", "version: 1\ndefault: { mcp: [{ to: [b.test] }] }\n");
    const { code, stdout } = await runCli(["policy", "diff", old, now]);
    assert.equal(code, 1);
    assert.equal(stdout, '- default.mcp {"to":["a.test"]}\n+ default.mcp {"to":["b.test"]}\n');
    assert.equal((await runCli(["policy", "diff", old, old])).code, 0);
  });

  it("explains which rule allows, and says with 77 that none does", async () => {
    const explain = (...args: string[]) => runCli(["policy", "explain", SHIPPED, ...args]);
    const [public_, plain, inside, push, model] = await Promise.all([
      explain("--door", "mcp", "--url", "https://mcp.good.test/x"),
      explain("--door", "mcp", "--url", "http://mcp.good.test/x"),
      explain("--door", "mcp", "--url", "http://mcp.good.test/x", "--inside"),
      explain("--door", "git", "--url", "https://git.test/a/b.git", "--git", "push", "--ref", "refs/notes/x"),
      explain("--door", "models", "--model", "any", "--json"),
    ]);
    assert.deepEqual([public_.code, public_.stdout], [0, "allowed by default.mcp[0]\n"]);
    assert.deepEqual([plain.code, plain.stdout], [77, "denied: no rule of default allows it\n"]);
    assert.deepEqual([inside.code, inside.stdout], [0, "allowed by default.mcp[1]\n"]);
    assert.equal(push.code, 77);
    assert.equal(JSON.parse(model.stdout).rule, "default.models[0]");
  });

  it("explains what of an answer hands get as a sealed token [A066]", async () => {
    const minting = file(
      "mint.yaml",
      "version: 1\ndefault: { mint: [{ to: [auth.test], paths: [oauth/token], fields: [access_token, id_token] }] }\n",
    );
    const explain = (policy: string, ...args: string[]) =>
      runCli([
        "policy",
        "explain",
        policy,
        "--door",
        "mint",
        "--url",
        "https://auth.test/oauth/token?x",
        ...args,
      ]);
    const lint = await runCli(["policy", "lint", minting]);
    assert.equal(lint.code, 0, lint.stderr);
    const yes = await explain(minting);
    assert.deepEqual(
      [yes.code, yes.stdout],
      [0, "allowed by default.mint[0]: seals access_token, id_token\n"],
    );
    const get = await explain(minting, "--method", "GET", "--json");
    assert.equal(get.code, 77);
    const { allowed, elsewhere } = JSON.parse(get.stdout);
    assert.deepEqual([allowed, elsewhere], [false, ["access_token", "id_token"]]);
    const shipped = await explain(SHIPPED);
    assert.equal(shipped.code, 77);
    assert.match(shipped.stdout, /^denied: no rule of default seals the answer/);
  });

  it("up refuses one that is not valid before it starts anything [A155]", async () => {
    const typo = file("typo-for-up.yaml", "version: 1\ndefault: { egres: [] }\n");
    const { code, stderr } = await runCli(["up", "--policy", typo, "--state-dir", join(folder, "mesh")]);
    assert.equal(code, 78, stderr);
    assert.match(stderr, /--policy .* cannot be used: the policy is not valid/);
  });

  it("says with 64 what a question lacks", async () => {
    for (const args of [
      ["policy", "explain", SHIPPED],
      ["policy", "explain", SHIPPED, "--door", "mcp"],
      ["policy", "explain", SHIPPED, "--door", "nonsense", "--url", "https://a.test"],
      ["policy", "explain", SHIPPED, "--door", "git", "--url", "https://a.test/b", "--git", "steal"],
      ["policy", "diff", SHIPPED],
      ["policy", "nonsense", SHIPPED],
    ]) {
      const { code, stderr } = await runCli(args);
      assert.equal(code, 64, `${args.join(" ")}: ${stderr}`);
    }
  });
});

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { cloneRepositories } from "../../../services/sandbox/domain/clone-repositories.ts";
import type { ToolCall, ToolRun } from "../../../services/sandbox/domain/hand-driver.ts";
import { removeFolder } from "../../kit/remove-folder.ts";

const GIT = { GIT_CONFIG_GLOBAL: "/dev/null", GIT_CONFIG_SYSTEM: "/dev/null", PATH: process.env.PATH ?? "" };
const RAN: ToolRun = {
  ...{ isError: false, text: "", exitCode: 0, isTimedOut: false, isCancelled: false },
  ...{ wasStarted: true, outputBytes: 0 },
};

describe("sandbox: repositories of a hand", () => {
  let folder: string;
  let origin: string;
  let second: string;

  const git = (cwd: string, ...args: string[]) =>
    execFileSync("git", args, { cwd, env: GIT, encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] }).trim();
  /** Runs a command as a hand's bash would. */
  const shell = async ({ inputJson }: ToolCall): Promise<ToolRun> => {
    const { command } = JSON.parse(inputJson) as { command: string };
    try {
      const text = execFileSync("/bin/bash", ["--norc", "-c", command], {
        cwd: folder,
        env: GIT,
        encoding: "utf8",
      });
      return { ...RAN, text };
    } catch (error) {
      const { status, stdout } = error as { status: number; stdout: string };
      return { ...RAN, isError: true, exitCode: status, text: stdout };
    }
  };
  const saying = (text: string) => async () => ({ ...RAN, isError: true, exitCode: 92, text });

  before(() => {
    folder = mkdtempSync(join(tmpdir(), "ganglion-clone-"));
    origin = join(folder, "it's an origin");
    git(folder, "init", "-q", "-b", "main", origin);
    const commit = (message: string) =>
      git(
        origin,
        "-c",
        "user.name=a",
        "-c",
        "user.email=a@b",
        "commit",
        "-q",
        "--allow-empty",
        "-m",
        message,
      );
    commit("first");
    git(origin, "checkout", "-q", "-b", "feature/one");
    commit("second");
    second = git(origin, "rev-parse", "HEAD");
    git(origin, "checkout", "-q", "main");
  });
  after(() => removeFolder(folder));

  it("clones what HEAD names, a branch that tracks its remote, or a commit", async () => {
    const at = (name: string) => join(folder, `tree '${name}'`);
    const wanted = [
      { url: origin, mountPath: at("head") },
      { url: origin, mountPath: at("branch"), checkout: { branch: "feature/one" } },
      { url: origin, mountPath: at("commit"), checkout: { commit: second } },
    ];
    assert.deepEqual(await cloneRepositories(shell, wanted, Date.now), []);
    assert.equal(git(at("head"), "log", "-1", "--format=%s"), "first");
    assert.equal(git(at("branch"), "rev-parse", "--abbrev-ref", "HEAD@{upstream}"), "origin/feature/one");
    assert.equal(git(at("commit"), "rev-parse", "HEAD"), second);
    assert.equal(git(at("commit"), "rev-parse", "--abbrev-ref", "HEAD"), "HEAD");
  });

  it("leaves the address as it was given and no credential in the work tree [B113]", async () => {
    const mountPath = join(folder, "plain");
    await cloneRepositories(shell, [{ url: origin, mountPath }], Date.now);
    const config = readFileSync(join(mountPath, ".git", "config"), "utf8");
    assert.match(config, /url = .*it's an origin\n/);
    assert.doesNotMatch(config, /credential|extraheader|@|token/i);
  });

  it("what cannot be checked out is told apart from what cannot be cloned, and the rest goes on", async () => {
    const wanted = [
      { url: origin, mountPath: join(folder, "a"), checkout: { branch: "gone" } },
      { url: origin, mountPath: join(folder, "b"), checkout: { commit: "0".repeat(40) } },
      { url: join(folder, "nowhere"), mountPath: join(folder, "c") },
      { url: origin, mountPath: join(folder, "d") },
    ];
    const failures = await cloneRepositories(shell, wanted, Date.now);
    assert.deepEqual(
      failures.map(({ kind }) => kind),
      ["checkout", "checkout", "clone"],
    );
    assert.equal(git(join(folder, "d"), "log", "-1", "--format=%s"), "first");
  });

  it("the words of git and of the git door name the kind", async () => {
    const said: [string, string][] = [
      [
        "remote: ganglion: UPSTREAM_UNAUTHORIZED: no\nfatal: … The requested URL returned error: 403",
        "authentication",
      ],
      ["fatal: could not read Username for 'https://x': terminal prompts disabled", "authentication"],
      ["remote: ganglion: REPO_NOT_ALLOWED: no\nfatal: … The requested URL returned error: 403", "forbidden"],
      ["fatal: repository 'https://x/' not found", "not_found"],
      ["fatal: unable to access 'https://x/': Could not resolve host", "clone"],
    ];
    for (const [text, kind] of said) {
      const failures = await cloneRepositories(
        saying(text),
        [{ url: "https://x/a", mountPath: "/workspace/a" }],
        Date.now,
      );
      assert.deepEqual(failures, [{ url: "https://x/a", kind }], text);
    }
  });

  it("what is not done in ten minutes has failed, and nothing more is begun", async () => {
    let now = 0;
    const slow = async () => {
      now += 599_999;
      return RAN;
    };
    const wanted = ["a", "b", "c"].map((name) => ({
      url: `https://x/${name}`,
      mountPath: `/workspace/${name}`,
    }));
    const failures = await cloneRepositories(slow, wanted, () => now);
    assert.deepEqual(failures, [{ url: "https://x/c", kind: "clone" }]);
  });
});

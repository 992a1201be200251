import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { bodiesOf, checkLog } from "../kit/check-log.ts";
import { bash, OutsideStage, outputOf } from "../kit/outside-stage.ts";
import { NeedleIndex } from "../kit/secret-scan/needles.ts";
import { scanFiles } from "../kit/secret-scan/scan-files.ts";
import { scanProcess } from "../kit/secret-scan/scan-process.ts";
import type { Stage } from "../kit/stage.ts";

const secretOf = () => `cnry${randomBytes(24).toString("hex")}`;

describe("a hand's way out, over a whole mesh", function () {
  this.timeout(90_000);
  let outside: OutsideStage;
  let stage: Stage;
  const [token, key] = [secretOf(), secretOf()];
  const index = new NeedleIndex([
    { name: "token of the repository", secret: token },
    { name: "key of the shop", secret: key },
  ]);

  before(async function () {
    this.timeout(180_000);
    outside = await OutsideStage.start(token);
    stage = outside.stage;
    await stage.sdk.beta.vaults.credentials.create(stage.vaultId, {
      auth: {
        type: "environment_variable",
        secret_name: "SHOP_KEY",
        secret_value: key,
        networking: { type: "limited", allowed_hosts: ["localhost"] },
      },
    } as never);
  });
  after(async () => {
    await outside?.stop();
  });

  /** The hand of a session: its processes as the host sees them, and its folder. */
  const handOf = async (sessionId: string) => {
    const [hand] = (await stage.hands.listHands({ sessionId })).hands;
    const namespace = statSync(`/proc/${hand?.hostPid}/ns/pid`).ino;
    const pids = readdirSync("/proc").filter((name) => {
      try {
        return /^\d+$/.test(name) && statSync(`/proc/${name}/ns/pid`).ino === namespace;
      } catch {
        return false;
      }
    });
    assert.ok(pids.length >= 2, "the jail's first process and its agent");
    const folder = join(stage.mesh.files.state, "sandbox/bubblewrap/hands", hand?.id ?? "");
    return { pids: pids.map(Number), folder };
  };

  /** Every process of a hand, and its files, as the host sees them. */
  const scanHand = async (sessionId: string): Promise<string[]> => {
    const { pids, folder } = await handOf(sessionId);
    const findings = [...pids.flatMap((pid) => scanProcess(pid, index).findings)];
    findings.push(...scanFiles(folder, index).findings);
    return findings.map(({ needle, form, surface, place }) => `${needle} (${form}) in ${surface} ${place}`);
  };

  it("a repository is there at the first command, and git pushes; the shop gets its key; the hand has neither [A075]", async function () {
    const sessionId = await outside.newSession([{ name: "app", token }]);
    const events = await stage.turn(
      sessionId,
      bash(
        [
          "cat app/README.md app/.git/config",
          'env | grep SHOP_KEY; NO_PROXY= no_proxy= curl -sS -H "authorization: Bearer $SHOP_KEY" ' +
            `https://${outside.shopHost}/who`,
          "cd app && git config user.email a@b && git config user.name a && echo more > more && git add more",
          "git commit -qm more && git push -q origin HEAD:refs/heads/agent && echo pushed",
          "sleep 60 &",
        ].join("\n"),
      ),
    );
    const output = outputOf(events);
    assert.match(output, /^hello\n/, output);
    assert.match(output, new RegExp(`url = ${outside.repository("app")}$`, "m"));
    assert.match(output, /SHOP_KEY=ganglion_placeholder_[a-z2-7]{26}/);
    assert.match(output, /^a shop$/m, output);
    assert.match(output, /^pushed$/m, output);
    assert.equal(bodiesOf(events, "sessionError").length, 0);
    assert.equal(outside.git.git("acme/app", "log", "-1", "--format=%s", "refs/heads/agent"), "more");
    assert.deepEqual(outside.shopSaw, [{ path: "/who", authorization: `Bearer ${key}` }]);

    const log = await stage.log(sessionId);
    checkLog(log);
    const text = JSON.stringify(log, (_, value) => (typeof value === "bigint" ? String(value) : value));
    const told = [
      text,
      stage.mesh.log("sandbox-1"),
      stage.mesh.log("gateway-1"),
      stage.mesh.log("session-1"),
    ];
    assert.deepEqual(index.find(Buffer.from(told.join("\n"))), []);
    if (process.getuid?.() !== 0) this.skip();
    assert.deepEqual(await scanHand(sessionId), []);
    // The control: what a hand has is found in it.
    const control = new NeedleIndex([{ name: "control", secret: "a-word-that-only-this-hand-has" }]);
    await stage.turn(sessionId, bash("export WORD=a-word-that-only-this-hand-has; sleep 60 &"));
    const { pids, folder } = await handOf(sessionId);
    assert.ok(readFileSync(join(folder, "door", "outside", "gitconfig"), "utf8").includes("insteadOf"));
    assert.ok(pids.some((pid) => scanProcess(pid, control).findings.length > 0));
  });

  it("repositories that cannot be cloned are told one by one, and the session goes on", async () => {
    const sessionId = await outside.newSession([
      { name: "gone", token },
      { name: "app", token: `${token.slice(0, -1)}x`, mountPath: "/workspace/refused" },
    ]);
    const events = await stage.turn(sessionId, bash("ls; echo on"));
    assert.match(outputOf(events), /^on$/m);
    const errors = bodiesOf(events, "sessionError").map(({ errorType, repositoryUrl }) => [
      errorType,
      repositoryUrl,
    ]);
    assert.deepEqual(errors, [
      ["repository_not_found_error", outside.repository("gone")],
      ["repository_authentication_error", outside.repository("app")],
    ]);
    const shown = await stage.sdk.beta.sessions.events.list(sessionId);
    const error = shown.data.find(({ type }) => type === "session.error") as unknown as {
      error: { type: string; repository_url: string; retry_status: { type: string } };
    };
    assert.deepEqual(error.error.repository_url, outside.repository("gone"));
    assert.deepEqual(error.error.retry_status, { type: "retrying" });
  });
});

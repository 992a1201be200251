import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { freePort } from "../../../services/cli/up/free-port.ts";
import { ArmedProcess } from "../../kit/crash/armed-process.ts";
import { startOauthServer, type TestOauthServer } from "../../kit/oauth-server.ts";
import { GREETING, type OauthSession, oauthSession, past, storedAt, textOf, whoami } from "./oauth-kit.ts";
import { failureOf, ProxyKit } from "./proxy-kit.ts";

const ROOT = new URL("../../../", import.meta.url).pathname;

/** A token is renewed so long before it expires. */
const DUE_MS = 60_000;

/** Where the process dies, and what must be true of the refresh token then. */
const POINTS: { point: string; grants: string[]; isLost?: true }[] = [
  // Nothing has been sent: the next call renews.
  { point: "mcp-proxy.pg.oauth_claim_renewal.after", grants: ["refresh_token 200"] },
  { point: "mcp-proxy.oauth.send", grants: ["refresh_token 200"] },
  // The answer was read and nothing of it was written: the one window, which the README names. The server has spent the
  // old token; a person has to connect again, and hears so.
  { point: "mcp-proxy.oauth.receive", grants: ["refresh_token 200", "refresh_token 400"], isLost: true },
  {
    point: "mcp-proxy.pg.oauth_keep_answer.before",
    grants: ["refresh_token 200", "refresh_token 400"],
    isLost: true,
  },
  // From here on the new pair is durable: sealed in the claim, then at Vault.
  { point: "mcp-proxy.pg.oauth_keep_answer.after", grants: ["refresh_token 200"] },
  { point: "mcp-proxy.vault.write.send", grants: ["refresh_token 200"] },
  { point: "mcp-proxy.vault.write.receive", grants: ["refresh_token 200"] },
  { point: "mcp-proxy.pg.oauth_end_renewal.before", grants: ["refresh_token 200"] },
  { point: "mcp-proxy.pg.oauth_end_renewal.after", grants: ["refresh_token 200"] },
];

describe("a rotated refresh token, when mcp-proxy is killed around a renewal", function () {
  this.timeout(180_000);
  let kit: ProxyKit;
  let server: TestOauthServer;

  before(async () => {
    server = await startOauthServer();
    kit = await ProxyKit.start({ GANGLION_PROXY_ALLOW_HTTP_HOSTS: new URL(server.issuer).host });
    address = `127.0.0.1:${await freePort()}`;
    armed = new ArmedProcess({
      name: "mcp-proxy-2",
      command: [
        process.execPath,
        "--import",
        `${ROOT}test/kit/crash/arm.ts`,
        `${ROOT}services/mcp-proxy/main.ts`,
      ],
      env: kit.proxyEnv({ GANGLION_INSTANCE: "mcp-proxy-2", GANGLION_LISTEN: address }),
      bootstrap: () => kit.bootstrap(),
    });
    await armed.start();
  });

  let armed: ArmedProcess;
  let address: string;

  after(async () => {
    await armed?.stop();
    await kit?.stop();
    await server?.stop();
  });

  /** Calls until the process has died: on a busy machine a call may fail before it comes to the point. */
  const callUntil = async (hit: Promise<void>, session: OauthSession): Promise<void> => {
    let isHit = false;
    void hit.then(() => {
      isHit = true;
    });
    const call = async () => {
      while (!isHit) await whoami(kit, session, address).catch(() => sleep(100));
    };
    void call();
    await hit;
  };

  /** A call once the process is back: a channel that was refused waits before it dials again. */
  const afterwards = async (session: OauthSession): ReturnType<typeof whoami> => {
    for (const until = Date.now() + 20_000; ; await sleep(100)) {
      try {
        return await whoami(kit, session, address);
      } catch (error) {
        if ((error as { reason?: string }).reason !== "UNREACHABLE" || Date.now() > until) throw error;
      }
    }
  };

  for (const { point, grants, isLost } of POINTS) {
    it(`at ${point}: ${isLost ? "is lost, and the call says so" : "is there afterwards, and used"} [A156]`, async () => {
      const session = await oauthSession(kit, server, { expiresInMs: DUE_MS + 5000 });
      // So that the next write to Vault is the one of the new tokens.
      assert.equal(textOf(await whoami(kit, session, address)), GREETING);
      const before = await server.grants();
      const first = await storedAt(kit, session.credential);
      const hit = Promise.withResolvers<void>();
      await armed.arm(point, "kill", hit.resolve);
      await past(session.expiresAt - DUE_MS);
      await callUntil(hit.promise, session);
      // It starts again by itself: what it left behind is another boot's.
      await armed.ready;
      if (isLost) {
        assert.equal((await failureOf(afterwards(session))).reason, "CRED_REFRESH_FAILED");
      } else {
        assert.equal(textOf(await afterwards(session)), GREETING);
        const { document, version } = await storedAt(kit, session.credential);
        assert.equal(version, first.version + 1);
        assert.notEqual(document.refresh_token, first.document.refresh_token);
      }
      assert.deepEqual((await server.grants()).slice(before.length), grants);
      if (!isLost) {
        // What survived is good for the next renewal, which also leaves nothing of this one behind.
        await server.set({ refuse_old: "1" });
        await past(Math.ceil(Date.now() / 1000) * 1000);
        assert.equal(textOf(await afterwards(session)), GREETING);
        assert.deepEqual((await server.grants()).slice(before.length), [...grants, "refresh_token 200"]);
      }
      const claims = "SELECT * FROM proxy.oauth_renewals WHERE credential_id = $1";
      assert.deepEqual(await kit.sql("ganglion_owner", claims, [session.credential.id]), []);
      const left = await kit.sql(
        "ganglion_owner",
        "SELECT * FROM proxy.open_requests WHERE instance = 'mcp-proxy-2'",
      );
      assert.deepEqual(left, []);
    });
  }

  it("is taken over by another replica while the one that died is away [A156]", async () => {
    const session = await oauthSession(kit, server, { expiresInMs: DUE_MS + 5000 });
    assert.equal(textOf(await whoami(kit, session, address)), GREETING);
    const before = await server.grants();
    const hit = Promise.withResolvers<void>();
    await armed.arm("mcp-proxy.pg.oauth_keep_answer.after", "kill", hit.resolve);
    await past(session.expiresAt - DUE_MS);
    await callUntil(hit.promise, session);
    // Its heartbeat, or the boot that follows it, says that it is dead; until then the call waits for it.
    assert.equal(textOf(await whoami(kit, session)), GREETING);
    assert.deepEqual((await server.grants()).slice(before.length), ["refresh_token 200"]);
    assert.equal((await storedAt(kit, session.credential)).version, 2);
  });
});

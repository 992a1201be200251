import assert from "node:assert/strict";
import pg from "pg";
import { migrate } from "../../../services/mcp-proxy/store/migrate.ts";
import {
  createVaultTokenStore,
  type VaultTokenStore,
} from "../../../services/mcp-proxy/store/vault-token-store.ts";
import { endPool } from "../../kit/end-pool.ts";
import { startTestPostgres, type TestPostgres } from "../../kit/postgres.ts";

describe("a session's Vault token that was just made", function () {
  this.timeout(60_000);
  let postgres: TestPostgres;
  let owner: pg.Client;
  let pool: pg.Pool;
  let store: VaultTokenStore;

  before(async () => {
    postgres = await startTestPostgres();
    await migrate(postgres.connection("ganglion_owner"));
    owner = new pg.Client(postgres.connection("ganglion_owner"));
    await owner.connect();
    pool = new pg.Pool(postgres.connection("ganglion_proxy"));
    store = createVaultTokenStore(pool, { instance: "i", bootId: "b" });
  });
  after(async () => {
    if (pool) await endPool(pool);
    await owner?.end();
    await postgres?.stop();
  });

  it("is of no use when its session ended or was taken over meanwhile: the refusal says which, and it is revoked [L7]", async () => {
    const token = (sessionId: string, accessor: string) => ({
      ...{ accessor, sessionId, vaultId: "vlt_1" },
      epoch: 1n,
    });
    await owner.query("SELECT proxy.raise_fence('sesn_live', 1, false)");
    await owner.query("SELECT proxy.raise_fence('sesn_taken', 2, false)");
    assert.equal(await store.add(token("sesn_live", "a1")), undefined);
    assert.equal(await store.add(token("sesn_taken", "a2")), "TOKEN_STALE_EPOCH");
    assert.equal(await store.add(token("sesn_unknown", "a3")), "SESSION_ENDED");

    // The end commits while the token waits for it.
    await owner.query("BEGIN; SELECT proxy.raise_fence('sesn_live', 1, true)");
    const late = store.add(token("sesn_live", "a4"));
    await owner.query("COMMIT");
    assert.equal(await late, "SESSION_ENDED");
    const due = await store.takeDue(10);
    assert.deepEqual(due.map(({ accessor }) => accessor).sort(), ["a1", "a2", "a3", "a4"]);
  });
});

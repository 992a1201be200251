import { SessionKit } from "./session-kit.ts";
import { accessSuite } from "./suites/access.test.ts";
import { appendSuite } from "./suites/append.test.ts";
import { badEventsSuite } from "./suites/bad-events.test.ts";
import { badInputSuite } from "./suites/bad-input.test.ts";
import { budgetsSuite } from "./suites/budgets.test.ts";
import { bytesSuite } from "./suites/bytes.test.ts";
import { checkpointsSuite } from "./suites/checkpoints.test.ts";
import { databaseSuite } from "./suites/database.test.ts";
import { emittersSuite } from "./suites/emitters.test.ts";
import { endingsSuite } from "./suites/endings.test.ts";
import { failuresSuite } from "./suites/failures.test.ts";
import { forksSuite } from "./suites/forks.test.ts";
import { leasesSuite } from "./suites/leases.test.ts";
import { payloadRefsSuite } from "./suites/payload-refs.test.ts";
import { payloadsSuite } from "./suites/payloads.test.ts";
import { previewsSuite } from "./suites/previews.test.ts";
import { readSuite } from "./suites/read.test.ts";
import { registrySuite } from "./suites/registry.test.ts";
import { repositoriesSuite } from "./suites/repositories.test.ts";
import { sessionsSuite } from "./suites/sessions.test.ts";
import { watchSuite } from "./suites/watch.test.ts";

// One PostgreSQL and one service process for all suites; each file in suites/ defines one and runs nothing by itself.
// The suite that breaks them comes last.
describe("session service", function () {
  this.timeout(30_000);
  let kit: SessionKit;
  const get = () => kit;

  before(async function () {
    this.timeout(90_000);
    kit = await SessionKit.start({ GANGLION_HEARTBEAT_TTL_MS: "1500" });
  });
  after(() => kit.stop());

  accessSuite(get);
  sessionsSuite(get);
  appendSuite(get);
  bytesSuite(get);
  emittersSuite(get);
  readSuite(get);
  watchSuite(get);
  previewsSuite(get);
  leasesSuite(get);
  payloadsSuite(get);
  payloadRefsSuite(get);
  checkpointsSuite(get);
  forksSuite(get);
  repositoriesSuite(get);
  budgetsSuite(get);
  endingsSuite(get);
  registrySuite(get);
  badInputSuite(get);
  badEventsSuite(get);
  databaseSuite(get);
  failuresSuite(get);
});

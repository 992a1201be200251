import { SessionKit } from "./session-kit.ts";
import { accessSuite } from "./suites/access.ts";
import { appendSuite } from "./suites/append.ts";
import { badEventsSuite } from "./suites/bad-events.ts";
import { badInputSuite } from "./suites/bad-input.ts";
import { bytesSuite } from "./suites/bytes.ts";
import { databaseSuite } from "./suites/database.ts";
import { emittersSuite } from "./suites/emitters.ts";
import { failuresSuite } from "./suites/failures.ts";
import { leasesSuite } from "./suites/leases.ts";
import { readSuite } from "./suites/read.ts";
import { registrySuite } from "./suites/registry.ts";
import { sessionsSuite } from "./suites/sessions.ts";
import { watchSuite } from "./suites/watch.ts";

// One PostgreSQL and one service process for all of them; the suite that breaks them comes last.
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
  leasesSuite(get);
  registrySuite(get);
  badInputSuite(get);
  badEventsSuite(get);
  databaseSuite(get);
  failuresSuite(get);
});

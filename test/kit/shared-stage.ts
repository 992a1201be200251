import { freePort } from "../../services/cli/up/free-port.ts";
import { Stage } from "./stage.ts";

let starting: Promise<Stage> | undefined;
let spare = "";

/**
 * sharedStage is the one stage that all files use which leave the mesh as they found it: starting a mesh costs more
 * than most of what is tested on it. The first file that asks starts it. Who kills a part waits until the mesh is whole.
 */
export function sharedStage(): Promise<Stage> {
  starting ??= start();
  return starting;
}

/**
 * Address (host:port) at which the shared stage's sessions may use an MCP server over plain HTTP, and where nobody listens:
 * one file at a time has a server of its own there, from its `before` to its `after`.
 */
export function spareAddress(): string {
  return spare;
}

async function start(): Promise<Stage> {
  spare = `127.0.0.1:${await freePort()}`;
  return Stage.start({ httpHosts: [spare] });
}

/** wholeStage is the shared stage with every part ready; for a suite's `before`, which waits as long as a start may take. */
export async function wholeStage(suite: Mocha.Context): Promise<Stage> {
  suite.timeout(240_000);
  const stage = await sharedStage();
  await stage.whole();
  return stage;
}

// Files are loaded before anything runs, with the root suite as the current one: this runs after the last of all tests.
after(async function () {
  this.timeout(90_000);
  if (!starting) return;
  const stage = await starting.catch(() => undefined);
  await stage?.stop();
});

import { Stage } from "./stage.ts";

let starting: Promise<Stage> | undefined;

/**
 * sharedStage is the one stage that all files use which leave the mesh as they found it: starting a mesh costs more
 * than most of what is tested on it. The first file that asks starts it. Who kills a part waits until the mesh is whole.
 */
export function sharedStage(): Promise<Stage> {
  starting ??= Stage.start();
  return starting;
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

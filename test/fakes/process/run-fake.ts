import { followParent } from "./follow-parent.ts";

/**
 * runFake runs a fake's main function: a start that fails ends with 78 and one line of JSON, SIGTERM, SIGINT and the
 * parent's death stop it.
 */
export async function runFake(start: () => Promise<{ listening: object; stop: () => Promise<void> | void }>) {
  try {
    const { listening, stop } = await start();
    const end = async () => {
      await stop();
      process.exit(0);
    };
    for (const signal of ["SIGTERM", "SIGINT"] as const) process.once(signal, () => void end());
    followParent(() => void end());
    console.log(JSON.stringify({ msg: "listening", ...listening }));
  } catch (error) {
    console.error(JSON.stringify({ msg: "cannot start", error: (error as Error).message }));
    process.exit(78);
  }
}

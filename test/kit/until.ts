import { setTimeout as wait } from "node:timers/promises";

const LONGEST_MS = 20_000;

/** until asks again and again whether something is so that no event tells of, and says what it waited for when it never is. */
export async function until(check: () => Promise<boolean>, what: string): Promise<void> {
  for (const end = Date.now() + LONGEST_MS; !(await check()); await wait(50)) {
    if (Date.now() > end) throw new Error(`waited too long for ${what}`);
  }
}

import { randomBytes } from "node:crypto";
import { type RunningFake, startFake } from "./start-fake.ts";

/** An MCP server that counts, behind a bearer check. */
export interface TestMcpCounter extends RunningFake {
  /** The Streamable HTTP endpoint. */
  readonly url: string;
  readonly token: string;
  /** How often each key was counted. */
  counts(): Promise<Record<string, number>>;
}

/** startMcpCounter starts the counter behind a token made at run time. */
export async function startMcpCounter(): Promise<TestMcpCounter> {
  const token = `mcp-${randomBytes(24).toString("hex")}`;
  const journalToken = randomBytes(24).toString("hex");
  const main = new URL("../fakes/mcp-counter/main.ts", import.meta.url);
  const fake = await startFake(main, { token, journal_token: journalToken });
  const { addr, url } = fake.listening;
  const counts = async () => {
    const answer = await fetch(`http://${addr}/counts`, {
      headers: { authorization: `Bearer ${journalToken}` },
    });
    if (!answer.ok) throw new Error(`counts: ${answer.status}`);
    return (await answer.json()) as Record<string, number>;
  };
  return { ...fake, url: String(url), token, counts };
}

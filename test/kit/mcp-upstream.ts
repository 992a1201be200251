import { randomBytes } from "node:crypto";
import { type JournalReader, type RunningFake, readJournal, startFake } from "./start-fake.ts";

/** A third-party MCP server behind a bearer check, for one test file. */
export interface TestMcpUpstream extends RunningFake {
  /** The Streamable HTTP endpoint. */
  readonly url: string;
  readonly token: string;
  readonly journal: JournalReader;
}

/** startMcpUpstream starts server-everything behind a token made at run time. */
export async function startMcpUpstream(): Promise<TestMcpUpstream> {
  const token = `mcp-${randomBytes(24).toString("hex")}`;
  const journalToken = randomBytes(24).toString("hex");
  const main = new URL("../fakes/mcp-upstream/main.ts", import.meta.url);
  const fake = await startFake(main, { token, journal_token: journalToken });
  const { addr, url } = fake.listening;
  return { ...fake, url: String(url), token, journal: readJournal(`http://${addr}`, journalToken) };
}

import { randomBytes } from "node:crypto";
import { type JournalReader, type RunningFake, readJournal, startFake } from "./start-fake.ts";

/** A scripted model of its own for one test file. */
export interface TestModel extends RunningFake {
  readonly url: string;
  readonly apiKey: string;
  readonly journal: JournalReader;
}

/** startScriptedModel starts the scripted model with an API key and a journal token made at run time. */
export async function startScriptedModel(): Promise<TestModel> {
  const apiKey = `sk-scripted-${randomBytes(24).toString("hex")}`;
  const journalToken = randomBytes(24).toString("hex");
  const main = new URL("../fakes/scripted-model/main.ts", import.meta.url);
  const fake = await startFake(main, { api_key: apiKey, journal_token: journalToken });
  const url = `http://${fake.listening.addr}`;
  return { ...fake, url, apiKey, journal: readJournal(url, journalToken) };
}

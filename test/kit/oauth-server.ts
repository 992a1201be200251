import { randomBytes } from "node:crypto";
import { type JournalReader, type RunningFake, readJournal, startFake } from "./start-fake.ts";

/** A real OAuth server with an MCP server behind it, for one test file. */
export interface TestOauthServer extends RunningFake {
  readonly issuer: string;
  /** The MCP server. */
  readonly url: string;
  /** The secret of the clients `basic-client` and `post-client`; `public-client` has none. */
  readonly clientSecret: string;
  readonly journal: JournalReader;
  /** Tokens as an authorization would have given them. */
  mint(clientId: string): Promise<{ access_token: string; refresh_token: string }>;
  /** Changes terms: `access_ttl_s`, or `refuse_old` for access tokens from before now. */
  set(terms: Record<string, string>): Promise<void>;
  /** Every access and refresh token that it has given out so far. */
  tokens(): Promise<string[]>;
  /** How often each grant was asked for, and how it was answered: "refresh_token 200". */
  grants(): Promise<string[]>;
}

/** What an answer to a control has of, each to its question. */
interface Controlled {
  readonly access_token: string;
  readonly refresh_token: string;
  readonly tokens: string[];
}

/** startOauthServer starts oidc-provider with secrets made at run time, at an address (host:port) where one is given. */
export async function startOauthServer(listen = "127.0.0.1:0"): Promise<TestOauthServer> {
  const journalToken = randomBytes(24).toString("hex");
  const clientSecret = `cs-${randomBytes(24).toString("hex")}`;
  const main = new URL("../fakes/oauth-server/main.ts", import.meta.url);
  const secrets = { journal_token: journalToken, client_secret: clientSecret };
  const fake = await startFake(main, secrets, { GANGLION_LISTEN: listen });
  const { issuer, url } = fake.listening as { issuer: string; url: string };
  const control = async (query: Record<string, string>) => {
    const answer = await fetch(`${issuer}/control?${new URLSearchParams(query)}`, {
      headers: { authorization: `Bearer ${journalToken}` },
    });
    if (!answer.ok) throw new Error(`control: ${answer.status}`);
    return answer.json() as Promise<Controlled>;
  };
  const journal = readJournal(issuer, journalToken);
  return {
    ...fake,
    ...{ issuer, url, clientSecret, journal },
    mint: (clientId) => control({ mint: clientId }),
    set: async (terms) => {
      await control(terms);
    },
    tokens: async () => (await control({ tokens: "1" })).tokens,
    grants: async () =>
      (await journal.entries())
        .filter(({ kind }) => kind === "token")
        .map(({ grant, status }) => `${grant} ${status}`),
  };
}

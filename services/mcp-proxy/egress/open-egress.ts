import type { Destination } from "../domain/canonical-url.ts";
import type { DestinationPolicy } from "../domain/destination-policy.ts";
import {
  judgeHandDestination,
  judgeOwnCredentials,
  type Variable,
  variablesFor,
} from "../domain/judge-egress.ts";
import { endingOf, openPassage, type Passage, type PassageDeps } from "../domain/passage.ts";
import type { PlaceholderOf } from "../domain/placeholder.ts";
import { proxyError } from "../domain/proxy-error.ts";
import type { Resolver } from "../upstream/resolver.ts";
import type { HandConnection } from "./hand-connection.ts";
import { createLookUp, type LookUp } from "./look-up.ts";

/** What judging a hand's request needs. */
export interface EgressRules extends PassageDeps {
  policy: DestinationPolicy;
  resolve: Resolver;
  placeholderOf: PlaceholderOf;
}

/** What a hand asks for. */
export interface AskedEgress {
  connection: HandConnection;
  /** Method and destination, as the record names them. */
  target: string;
  destination: Destination;
  /** What is wrong with the request already; denied for it, so that the log has it. */
  problem?: unknown;
  rawHeaders: readonly string[];
  /** False while only a way is asked for, over which no credential goes. */
  takesCredentials: boolean;
}

/** A request that may go on: one passage, and one more for each further credential that may go to that host. */
export interface Egress {
  passages: readonly Passage[];
  variables: readonly Variable[];
  lookUp: LookUp;
  /** Writes the outcomes; the first one carries sizes and status. */
  finish(ending: Parameters<Passage["finish"]>[0]): Promise<void>;
}

/** Judges a hand's request to the outside and writes the decision. */
export async function openEgress(rules: EgressRules, asked: AskedEgress): Promise<Egress> {
  const { connection, target, destination, problem, rawHeaders, takesCredentials } = asked;
  let variables: readonly Variable[] = [];
  const lookUp = createLookUp(rules.resolve);
  const ask = (credentialId?: string) =>
    openPassage(rules, {
      token: connection.token,
      caller: connection.caller,
      audience: "hand",
      operation: "egress",
      target,
      lookup: { kinds: ["environment_variable"], urls: [""], mcpServerName: "" },
      choose: async (access, within) => {
        connection.belongTo(access.sessionId);
        if (problem) throw problem;
        judgeHandDestination(destination, access, rules.policy);
        within({ door: "egress", destination });
        const now = variablesFor(destination, access, rules);
        judgeOwnCredentials(rawHeaders, now);
        await lookUp.resolve(destination);
        if (credentialId === undefined) variables = now;
        const wanted =
          credentialId === undefined
            ? now[0]
            : now.find(({ credential }) => credential.credentialId === credentialId);
        if (credentialId !== undefined && !wanted) throw proxyError("CRED_MISSING");
        return { destination, ...(takesCredentials && wanted ? { credential: wanted.credential } : {}) };
      },
    });

  const passages = [await ask()];
  const finish = async (ending: Parameters<Passage["finish"]>[0]) => {
    const { reason } = ending;
    await Promise.all(passages.map((passage, i) => passage.finish(i === 0 ? ending : { reason })));
  };
  try {
    for (const { credential } of takesCredentials ? variables.slice(1) : []) {
      passages.push(await ask(credential.credentialId));
    }
  } catch (error) {
    await finish({ reason: endingOf(error) });
    throw error;
  }
  return { passages, variables, lookUp, finish };
}

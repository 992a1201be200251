import type { MintBound } from "../domain/bound.ts";
import type { Destination } from "../domain/canonical-url.ts";
import type { DestinationPolicy } from "../domain/destination-policy.ts";
import {
  judgeHandDestination,
  judgeOwnCredentials,
  type Variable,
  variablesFor,
} from "../domain/judge-egress.ts";
import { endingOf, openPassage, type Passage, type PassageDeps } from "../domain/passage.ts";
import type { MeetPeer } from "../domain/peer-facts.ts";
import type { PlaceholderOf } from "../domain/placeholder.ts";
import { proxyError } from "../domain/proxy-error.ts";
import { createRequestTokens, type RequestTokens } from "../domain/request-tokens.ts";
import type { TokenSeal } from "../domain/sealed-token.ts";
import type { Traffic } from "../domain/traffic.ts";
import type { Resolver } from "../upstream/resolver.ts";
import type { HandConnection } from "./hand-connection.ts";
import { createLookUp, type LookUp } from "./look-up.ts";

/** What judging a hand's request needs. */
export interface EgressRules extends PassageDeps {
  policy: DestinationPolicy;
  resolve: Resolver;
  placeholderOf: PlaceholderOf;
  mint: MintBound;
  seal: TokenSeal;
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
  /** Method and path as they are sent; absent while only a way is asked for, over which no credential goes. */
  route?: { method: string; path: string };
}

/** A request that may go on: one passage, and one more for each further credential that may go to that host. */
export interface Egress {
  passages: readonly Passage[];
  variables: readonly Variable[];
  /** Absent while only a way is asked for. */
  tokens: RequestTokens | undefined;
  lookUp: LookUp;
  /** Notes over which connection it goes; the outcomes say so. */
  met: MeetPeer;
  /** Takes note of the bodies; the first outcome says what they were, all of them how far the request came. */
  traffic: Traffic;
  /** Writes the outcomes; the first one carries sizes and status. */
  finish(ending: Parameters<Passage["finish"]>[0]): Promise<void>;
}

/** Judges a hand's request to the outside and writes the decision. */
export async function openEgress(rules: EgressRules, asked: AskedEgress): Promise<Egress> {
  const { connection, target, destination, problem, rawHeaders, route } = asked;
  let variables: readonly Variable[] = [];
  let tokens: RequestTokens | undefined;
  const lookUp = createLookUp(rules.resolve);
  const ask = (credentialId?: string) =>
    openPassage(rules, {
      token: connection.token,
      caller: connection.caller,
      callerCert: connection.callerCert,
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
        const { sessionId, workspaceId } = access;
        const sealed =
          route &&
          createRequestTokens({
            ...{ seal: rules.seal, sessionId, destination, variables: now },
            ...{ method: route.method, path: route.path.split("?")[0] ?? "" },
            mintingOf: (of) => rules.mint(workspaceId, { destination, ...of }),
          });
        // All of them, whatever the header: what does not open is refused here, before the decision.
        for (let i = 1; i < rawHeaders.length; i += 2) sealed?.inHeader(rawHeaders[i] ?? "");
        judgeOwnCredentials(rawHeaders, now, sealed?.isIn);
        await lookUp.resolve(destination);
        if (credentialId === undefined) [variables, tokens] = [now, sealed];
        const wanted =
          credentialId === undefined
            ? now[0]
            : now.find(({ credential }) => credential.credentialId === credentialId);
        if (credentialId !== undefined && !wanted) throw proxyError("CRED_MISSING");
        const detail = sealed?.detail ?? "";
        return { destination, detail, ...(route && wanted ? { credential: wanted.credential } : {}) };
      },
    });

  const first = await ask();
  const passages = [first];
  const met: MeetPeer = (peer) => {
    for (const passage of passages) passage.met(peer);
  };
  const finish = async (ending: Parameters<Passage["finish"]>[0]) => {
    const { reason, isReleased = false } = ending;
    for (const { traffic } of passages.slice(1)) {
      if (first.traffic.isAnswered) traffic.answered();
      if (first.traffic.isWhole) traffic.cameAll();
    }
    await Promise.all(
      passages.map((passage, i) => passage.finish(i === 0 ? ending : { reason, isReleased })),
    );
  };
  try {
    for (const { credential } of route ? variables.slice(1) : []) {
      passages.push(await ask(credential.credentialId));
    }
  } catch (error) {
    await finish({ reason: endingOf(error) });
    throw error;
  }
  return { passages, variables, tokens, lookUp, met, traffic: first.traffic, finish };
}

import type { IncomingMessage } from "node:http";
import type { DestinationPolicy } from "../../domain/destination-policy.ts";
import { credentialUrls, type GitRoute, judgeGit } from "../../domain/judge-git.ts";
import { openPassage, type Passage, type PassageDeps } from "../../domain/passage.ts";
import type { Resolver } from "../../upstream/resolver.ts";
import type { HandConnection } from "../hand-connection.ts";
import { createLookUp, type LookUp } from "../look-up.ts";
import type { GitTarget } from "./read-git-target.ts";
import type { PushCommands } from "./receive-commands.ts";

/** What judging a request at the git door needs. */
export interface GitRules extends PassageDeps {
  policy: DestinationPolicy;
  resolve: Resolver;
}

/** A request at the git door as far as it has been read. */
export interface ReadGit {
  target: GitTarget;
  commands: PushCommands | undefined;
  /** What is wrong with it; denied for it, so that the log has it. */
  problem?: unknown;
}

/** A request that may go on. */
export interface GitWay {
  passage: Passage;
  route: GitRoute;
  lookUp: LookUp;
}

/** Judges a request at the git door and writes the decision. */
export async function openGit(
  deps: GitRules,
  { request, connection }: { request: IncomingMessage; connection: HandConnection },
  { target, commands, problem }: ReadGit,
): Promise<GitWay> {
  const operation = target.service === "git-upload-pack" ? ("fetch" as const) : ("push" as const);
  const question = { host: target.host, path: target.path, operation, refs: commands?.refs ?? [] };
  let route: GitRoute | undefined;
  const lookUp = createLookUp(deps.resolve);
  const passage = await openPassage(deps, {
    token: connection.token,
    caller: connection.caller,
    callerCert: connection.callerCert,
    audience: "hand",
    operation: "git",
    target: problem
      ? `${request.method} ${(request.url ?? "").split("?")[0]}`
      : `${operation} ${target.host}${target.path} ${question.refs.join(" ")}`.trim(),
    lookup: { kinds: ["static_bearer"], urls: credentialUrls(target), mcpServerName: "" },
    choose: async (access, ask) => {
      connection.belongTo(access.sessionId);
      if (problem) throw problem;
      route = judgeGit(question, access, deps.policy);
      ask({ door: "git", destination: route.destination, operation, refs: question.refs });
      await lookUp.resolve(route.destination);
      const { destination, credential } = route;
      return { destination, ...(credential ? { credential } : {}) };
    },
  });
  return { passage, route: route as GitRoute, lookUp };
}

import { openPassage, type PassageDeps } from "../domain/passage.ts";
import { reasonOf } from "../domain/proxy-error.ts";

/** What could not be judged as a request. */
export interface Unjudged {
  token: string | undefined;
  /** SPIFFE id of the sandbox instance. */
  caller: string;
  /** SHA-256 of its certificate. */
  callerCert: string;
  target: string;
}

/**
 * Writes the denial of something of a hand's that is no request, and answers what the hand may be told: where its token is
 * worth nothing any more, that. Rejects when nothing could be written.
 */
export async function writeDenial(deps: PassageDeps, unjudged: Unjudged, problem: Error): Promise<Error> {
  const choose = () => {
    throw problem;
  };
  const lookup = { kinds: [], urls: [], mcpServerName: "" };
  try {
    await openPassage(deps, { ...unjudged, audience: "hand", operation: "egress", lookup, choose });
  } catch (error) {
    if (reasonOf(error) === undefined) throw error;
    return error as Error;
  }
  return problem;
}

import { readFileSync, statSync } from "node:fs";
import { fileURLToPath } from "node:url";
import {
  findMinting,
  findRule,
  type PolicyDestination,
  type PolicyQuestion,
} from "../../common/policy/judge-policy.ts";
import { PolicyInvalid, type ReadPolicy, readPolicy } from "../../common/policy/read-policy.ts";
import type { Bound, BoundQuestion, MintBound } from "../domain/bound.ts";
import type { Destination } from "../domain/canonical-url.ts";

/** The policy that is in force where none is named. */
export const SHIPPED_POLICY = fileURLToPath(new URL("../../../deploy/local/policy.yaml", import.meta.url));

/** What became of a policy file that changed. */
export type PolicyChange =
  | { readonly isTaken: true; readonly digest: string }
  | { readonly isTaken: false; readonly digest: string; readonly problem: string };

/** The operator's policy from a file. */
export interface PolicyFile extends Bound {
  /** Digest of the policy in force. */
  readonly digest: string;
  /** Asks it about the answer to a request. */
  readonly mint: MintBound;
  /** Looks whether the file changed. A bad one changes nothing: the last good policy stays in force (case A155). */
  reload(): PolicyChange | undefined;
}

/** Opens the file; throws when there is no valid policy in it, so that nothing is served without one. */
export function openPolicyFile(
  path: string,
  isListedInside: (destination: Destination) => boolean,
): PolicyFile {
  // Before it is read: one that takes its place in between is another one then.
  let seen = fingerprint(path);
  let current: ReadPolicy = readPolicy(readFileSync(path, "utf8"));
  const destinationOf = (destination: Destination): PolicyDestination => {
    const { scheme, host, port } = destination;
    return { scheme, host, port, isListedInside: isListedInside(destination) };
  };
  const toQuestion = (question: BoundQuestion): PolicyQuestion => {
    if (question.door === "models") return question;
    const destination = destinationOf(question.destination);
    if (question.door !== "git") return { door: question.door, destination };
    const { operation, refs } = question;
    const repository = new URL(question.destination.url).pathname.slice(1).replace(/\.git$/, "");
    return { door: "git", destination, repository, operation, refs };
  };
  return {
    get digest() {
      return current.digest;
    },
    judge: (workspaceId, question) => {
      const rule = findRule(current.policy, workspaceId, toQuestion(question));
      return { digest: current.digest, ...(rule === undefined ? {} : { rule }) };
    },
    mint: (workspaceId, { destination, method, path }) => {
      const [whole = ""] = path.split("?");
      const route = { destination: destinationOf(destination), method, path: whole.slice(1) };
      return findMinting(current.policy, workspaceId, route);
    },
    reload: () => {
      const now = fingerprint(path);
      if (now === seen) return undefined;
      seen = now;
      try {
        const read = readPolicy(readFileSync(path, "utf8"));
        if (read.digest === current.digest) return undefined;
        current = read;
        return { isTaken: true, digest: read.digest };
      } catch (error) {
        const problem = error instanceof PolicyInvalid ? error.message : "the file cannot be read";
        return { isTaken: false, digest: current.digest, problem };
      }
    },
  };
}

/** Mounted files are swapped by rename, which keeps no watcher; their size, time and inode tell. */
function fingerprint(path: string): string {
  try {
    const { ino, mtimeMs, size } = statSync(path);
    return `${ino} ${mtimeMs} ${size}`;
  } catch {
    return "absent";
  }
}

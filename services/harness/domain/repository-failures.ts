import type { RepositoryFailure_Kind } from "../../gen/ganglion/sandbox/v1/sandbox_service.ts";
import type { Failure } from "./failures.ts";
import { PART } from "./proto-values.ts";

/** A repository that a hand has no work tree of. */
export interface RepositoryFailure {
  url: string;
  kind: RepositoryFailure_Kind;
}

const AUTHENTICATION: Failure = {
  part: PART.UPSTREAM,
  errorType: "repository_authentication_error",
  message: "The repository's server wants a credential that the session does not have.",
  reason: "REPOSITORY_AUTHENTICATION",
};
const FORBIDDEN: Failure = {
  part: PART.UPSTREAM,
  errorType: "repository_forbidden_error",
  message: "The session may not use the repository.",
  reason: "REPOSITORY_FORBIDDEN",
};
const NOT_FOUND: Failure = {
  part: PART.UPSTREAM,
  errorType: "repository_not_found_error",
  message: "The repository's server does not know it.",
  reason: "REPOSITORY_NOT_FOUND",
};
const CHECKOUT: Failure = {
  part: PART.UPSTREAM,
  errorType: "repository_checkout_error",
  message: "The repository does not have the branch or commit that was to be checked out.",
  reason: "REPOSITORY_CHECKOUT",
};
const CLONE: Failure = {
  part: PART.HAND,
  errorType: "repository_clone_error",
  message: "The repository could not be cloned.",
  reason: "REPOSITORY_CLONE",
};
const BY_KIND: Readonly<Record<number, Failure>> = {
  1: AUTHENTICATION,
  2: FORBIDDEN,
  3: NOT_FOUND,
  4: CHECKOUT,
};

/** What the log says of a repository that could not be cloned; the session goes on without it. */
export function repositoryFailure({ kind }: RepositoryFailure): Failure {
  return BY_KIND[kind] ?? CLONE;
}

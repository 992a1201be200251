import type { PolicyMinting } from "../../common/policy/judge-policy.ts";
import type { Destination } from "./canonical-url.ts";
import type { Variable } from "./judge-egress.ts";
import { proxyError } from "./proxy-error.ts";
import type { Redacted } from "./redact-all.ts";
import { type MintedToken, SEALED_PREFIX, sealedName, type TokenSeal } from "./sealed-token.ts";
import { changeHeader, encodeForBody, runThrough, type Substitution } from "./substitute.ts";
import { createUnsealing } from "./unseal.ts";

/** Tokens that one request may bring, and that are sealed in one answer: each is searched for in all its forms. */
const MAX_TOKENS = 10;

/** What sealed tokens are judged by, in one request of a hand. */
export interface RequestTokensOptions {
  seal: TokenSeal;
  sessionId: string;
  destination: Destination;
  method: string;
  path: string;
  /** The credentials that may go to that host. */
  variables: readonly Variable[];
  /** What the operator's policy says of the answer to a request to that host. */
  mintingOf: (route: Pick<MintedToken, "method" | "path">) => PolicyMinting;
}

/** The tokens of one request: those that it brings, sealed, and those that are made for it. */
export interface RequestTokens {
  /** What the policy says of this request's answer. */
  readonly minting: PolicyMinting;
  /** Opens what is sealed in a header's value, inside Basic too; throws for what does not open. */
  inHeader(text: string): string;
  /** Opens what is sealed in a body of that type; `onOpened` is told of each. */
  inBody(contentType: string, onOpened: () => void): Substitution;
  /** True for a header's value in which something is sealed. */
  isIn(text: string): boolean;
  /** From now on nothing opens: what was opened is being searched for in the answer. */
  close(): void;
  /** Seals a token of the answer, from that field; throws for what could not be sent later. */
  seal(value: string, field: string): string;
  /** Opened or sealed, and what stands in its place where it is found. */
  readonly known: readonly Redacted[];
  /** What records say of all that: names of sealed tokens. */
  readonly detail: string;
}

/**
 * Makes it. A sealed token opens for the session, the origin and the place in the request for which it was sealed, while the
 * credentials with which it was made may go there and the policy lets that route make it, in that field. Any other is
 * refused wherever it is looked for, and not passed on as a placeholder would be: it is the token, in a box.
 */
export function createRequestTokens(options: RequestTokensOptions): RequestTokens {
  const { seal, sessionId, destination, method, path, variables, mintingOf } = options;
  const place = { sessionId, origin: destination.origin };
  const minting = mintingOf({ method, path });
  const used = new Map<string, Redacted>();
  const made = new Map<string, Redacted>();
  let isClosed = false;

  const open = (where: "inHeader" | "inBody") => (sealed: string) => {
    const isOneMore = !used.has(sealed) && used.size === MAX_TOKENS;
    const token = isClosed || isOneMore ? undefined : seal.open(sealed, place);
    const isGranted = token !== undefined && mintingOf(token).fields.includes(token.field);
    const mayStand = token?.credentialIds.every((id) =>
      variables.some((variable) => variable.credential.credentialId === id && variable[where]),
    );
    // Which of these it was is nobody's business.
    if (!isGranted || !mayStand) throw refusal();
    used.set(sealed, { value: token.value, label: sealedName(sealed) });
    return token.value;
  };
  const inHeader = (text: string) =>
    changeHeader(text, (inner) =>
      inner.includes(SEALED_PREFIX) ? runThrough(createUnsealing(open("inHeader")), inner) : inner,
    );
  return {
    minting,
    inHeader,
    isIn: (text) => inHeader(text) !== text,
    inBody: (contentType, onOpened) => {
      const opener = open("inBody");
      return createUnsealing((sealed) => {
        onOpened();
        return encodeForBody(opener(sealed), contentType);
      });
    },
    close: () => {
      isClosed = true;
    },
    seal: (value, field) => {
      const credentialIds = variables.map(({ credential }) => credential.credentialId);
      if (made.size === MAX_TOKENS) throw proxyError("RESPONSE_WITHHELD");
      const sealed = seal.seal({ value, method, path, field, credentialIds }, place);
      if (sealed === undefined) throw proxyError("RESPONSE_WITHHELD");
      made.set(sealed, { value, label: sealedName(sealed) });
      return sealed;
    },
    get known() {
      return [...used.values(), ...made.values()];
    },
    get detail() {
      return [wordsOf("used", used), wordsOf(`by ${minting.rule} sealed`, made)].filter(Boolean).join("; ");
    },
  };
}

function wordsOf(verb: string, tokens: ReadonlyMap<string, Redacted>): string {
  return tokens.size === 0 ? "" : [verb, ...[...tokens.values()].map(({ label }) => label)].join(" ");
}

function refusal(): Error {
  const message =
    "a sealed token that does not open here: another session, host, place or credential, or changed";
  return proxyError("SEAL_INVALID", { message });
}

import type { CredentialRow } from "../access.ts";
import type { Destination } from "../canonical-url.ts";
import type { CredentialConfig, TokenEndpointAuth } from "../credential-config.ts";
import type { ResolvedAddress } from "../destination-policy.ts";
import type { MeetPeer } from "../peer-facts.ts";
import type { SecretOwner } from "../ports.ts";
import type { SecretDocument } from "../records.ts";

/** A client at an authorization server. */
export interface OauthClient {
  clientId: string;
  method: TokenEndpointAuth;
  /** Present exactly when the method sends it. */
  clientSecret?: string;
}

/** A checked place to send one request to. */
export interface OauthTarget {
  /** The whole address, as it was given: servers tell a trailing slash from none. */
  url: string;
  destination: Destination;
  /** The one address that is dialled. */
  address: ResolvedAddress;
  /** Told over which connection the request goes. */
  met: MeetPeer;
}

/** How an exchange failed, without text of the other side. */
export type ExchangeFailure = "unreachable" | "timeout" | "redirect" | "broken" | "too_large";

/** An answer, read to its end, or why there is none. `body` never goes anywhere unsearched. */
export type Reply =
  | { ok: true; status: number; contentType: string; challenge: string; body: string; bytes: number }
  | { ok: false; failure: ExchangeFailure; status: number };

/** Requests of the authorization protocol. None follows a redirect; each goes to its target's address alone. */
export interface OauthExchanges {
  /** Asks a document (RFC 8414, RFC 9728). */
  getJson(target: OauthTarget): Promise<Reply>;
  /** Asks an MCP server for `initialize`, with a token or without. */
  probe(target: OauthTarget, accessToken: string | undefined): Promise<Reply>;
  /** Registers a client (RFC 7591). */
  register(target: OauthTarget, metadata: Record<string, unknown>): Promise<Reply>;
  /** Redeems an authorization code. */
  redeem(target: OauthTarget, client: OauthClient, grant: CodeGrant): Promise<Reply>;
  /** Asks for new tokens. */
  refresh(target: OauthTarget, client: OauthClient, grant: RefreshGrant): Promise<Reply>;
}

/** What is sent to redeem a code. */
export interface CodeGrant {
  /** The authorization server's issuer. */
  issuer: string;
  /** The parameters of the redirect: code, state, iss. */
  answer: Record<string, string>;
  /** Absent when the server does not announce RFC 9207. */
  wantsIss: boolean;
  state: string;
  redirectUri: string;
  verifier: string;
  resource: string;
}

/** What is sent to refresh. */
export interface RefreshGrant {
  refreshToken: string;
  scope?: string;
  resource?: string;
}

/** A document and where it came from. */
export interface StoredDocument {
  document: SecretDocument;
  version: bigint;
  /** Vault's id of the request that read it. */
  vaultRequestId: string;
  /** HMAC of the accessor of the Vault token that read it. */
  accessorHmac?: string;
}

/** Documents of OAuth credentials at Vault. */
export interface DocumentStore {
  /**
   * Reads one, not from memory: with the session's own Vault token or, for an owner without a session, with one that
   * is made for this vault and revoked at once. Undefined when none is stored.
   */
  read(owner: SecretOwner, credential: CredentialRow): Promise<StoredDocument | undefined>;
  /** Replaces the version `before`; "moved" when there is another by now. */
  replace(credential: CredentialRow, document: SecretDocument, before: bigint): Promise<bigint | "moved">;
  /** Destroys a version that was replaced. */
  destroy(credential: CredentialRow, version: bigint): Promise<void>;
  /** Removes all versions. */
  remove(credential: CredentialRow): Promise<void>;
}

/** What came of a claim, with the record as it is now. `version` null = the credential has gone. */
export type RenewalClaim =
  | { state: "claimed"; answer: Buffer | null; config: CredentialConfig; mac: Buffer }
  | { state: "busy" }
  | { state: "moved"; version: bigint | null };

/** Renewals under way, over all replicas. */
export interface RenewalStore {
  claim(credentialId: string, from: bigint, requestId: string): Promise<RenewalClaim>;
  /** The version that the record has now; null = the credential has gone. */
  version(credentialId: string): Promise<bigint | null>;
  /** Keeps the sealed answer with the claim, unless the claim is another's by now. */
  keep(credentialId: string, requestId: string, answer: Buffer | null): Promise<void>;
  /** Gives the claim back, unless there is an answer in it. */
  release(credentialId: string, requestId: string): Promise<void>;
  /** The new version counts and the claim is gone; false when the credential has gone. */
  end(
    credential: CredentialRow,
    version: bigint,
    changed: { config: CredentialConfig; mac: Buffer },
  ): Promise<boolean>;
}

/** What came of a renewal. */
export type RenewalOutcome =
  /** There is a newer version now, whoever made it. */
  | { kind: "renewed"; version: bigint }
  /** Nothing to renew it with. */
  | { kind: "none" }
  /** The authorization server refused. */
  | { kind: "refused"; reply: Reply & { ok: true } }
  /** It may work another time. */
  | { kind: "unavailable"; failure: ExchangeFailure | "vault" | "busy" };

/** An authorization that was begun. */
export interface BegunAuthorization {
  vaultId: string;
  /** Sealed. */
  pending: Buffer;
  createdAt: Date;
}

/** Authorizations that were begun, by the hash of their state; any replica may finish one. */
export interface AuthorizationStore {
  begin(stateHash: Buffer, vaultId: string, pending: Buffer): Promise<void>;
  find(stateHash: Buffer): Promise<BegunAuthorization | undefined>;
  /** Finds it and forgets it: of two who finish the same one gets it. */
  take(stateHash: Buffer): Promise<BegunAuthorization | undefined>;
}

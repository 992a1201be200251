import type { NewRecord } from "./new-record.ts";

/** What was seen of the connection over which a request went. */
export interface PeerFacts {
  /**
   * "TLSv1.3" or "TLSv1.2", of a connection whose certificate was verified; "none" over plain HTTP; "tunnel" where a hand
   * speaks TLS with the server itself, so that nothing of it is seen here.
   */
  tlsVersion: string;
  /** SHA-256 (hexadecimal) of the public key (SubjectPublicKeyInfo) in the server's certificate; empty when none was seen. */
  spkiSha256: string;
}

/** Told the facts of the connection as soon as a request is about to be written to it. */
export type MeetPeer = (peer: PeerFacts) => void;

/** Of plain HTTP. */
export const NO_TLS: PeerFacts = { tlsVersion: "none", spkiSha256: "" };

/** Of a blind tunnel. */
export const TUNNELLED: PeerFacts = { tlsVersion: "tunnel", spkiSha256: "" };

/** What records say of a connection. */
export function peerColumns({
  tlsVersion,
  spkiSha256,
}: PeerFacts): Pick<NewRecord, "tls_version" | "peer_spki_sha256"> {
  return { tls_version: tlsVersion, peer_spki_sha256: spkiSha256 };
}

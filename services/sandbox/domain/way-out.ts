/** The hand that asks. */
export type HandName = { sessionId: string; handId: string };

/** What a hand is given so that its programs reach the outside. Nothing in it is secret. */
export type HandSetup = {
  /** PEM of the authority that vouches for hosts where placeholders are replaced. */
  authorityPem: string;
  /** Environment variables whose values stand for secrets. */
  placeholders: readonly { name: string; value: string }[];
  /** Addresses that git must ask the git door for: what a remote begins with, and the path that stands for it. */
  gitRewrites: readonly { prefix: string; path: string }[];
};

/** A hand's socket, open until it is closed. */
export interface OpenDoor {
  /** Cuts what runs through it and removes the socket. Safe to repeat. */
  close(): Promise<void>;
}

/** A hand's only way out. */
export interface WayOut {
  readonly setup: HandSetup;
  /** Connections that a hand may have open at a time. */
  readonly maxConnections: number;
  /** Makes the hand's socket in a folder of the host. Who can reach it there may speak for the hand. */
  open(folder: string): Promise<OpenDoor>;
}

/** WaysOut knows which hands may reach the outside. */
export interface WaysOut {
  /** The hand's way out; undefined = it may reach nothing. Rejects when that cannot be found out. */
  find(hand: HandName): Promise<WayOut | undefined>;
}

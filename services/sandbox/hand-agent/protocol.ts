/** Limits that the sandbox service gives to a hand when it is born. */
export type HandLimits = {
  /** Characters of a result's text before its middle is left out. */
  textChars: number;
  /** Bytes of a long command output that are kept raw, head and tail, in a file of the hand. */
  rawBytes: number;
  /** Longest timeout that a command's input may ask for. */
  maxTimeoutMs: number;
  /** Largest file that read and edit load, and largest content that write takes. */
  fileBytes: number;
};

/** DEFAULT_LIMITS are the limits of a hand unless its host says otherwise. */
export const DEFAULT_LIMITS: HandLimits = {
  textChars: 256 * 1024,
  rawBytes: 1024 * 1024,
  maxTimeoutMs: 600_000,
  fileBytes: 1024 * 1024,
};

/** Folder of a hand that may reach the outside: its socket, and what programs need to use it. */
export const EGRESS_FOLDER = "/run/ganglion";

/** The socket; its other end is the sandbox service. */
export const EGRESS_SOCKET = `${EGRESS_FOLDER}/egress.sock`;

/** Port on a hand's loopback where programs find the socket through their proxy variables. */
export const EGRESS_PORT = 3128;

/** What the agent of a hand that may reach the outside is told. Nothing in it is secret. */
export type OutsideConfig = {
  /** Environment variables of commands, beside those that every hand has. */
  environment: Record<string, string>;
  /** Connections that may be open at a time. */
  maxConnections: number;
};

/** A process that outlived the command that started it. */
export type BackgroundProcess = { pid: number; command: string };

/** What a tool call came to. It is data: a failing tool is not a failing hand. */
export type ToolResult = {
  isError: boolean;
  /** The cleaned text for the model: valid Unicode without control sequences, never empty. */
  text: string;
  /** False when the call was cancelled before the tool began. */
  wasStarted: boolean;
  /** Bytes the command wrote altogether. */
  outputBytes: number;
  isTruncated: boolean;
  exitCode: number | null;
  isTimedOut: boolean;
  isCancelled: boolean;
  background: BackgroundProcess[];
};

/** Frames from the service to the agent. */
export type ToAgent =
  /** Once, before any call. Without outside there is no way out. */
  | { type: "configure"; limits: HandLimits; outside?: OutsideConfig }
  | { type: "call"; id: number; name: string; input: unknown; timeoutMs: number }
  | { type: "cancel"; id: number }
  | { type: "ping"; nonce: number };

/** Frames from the agent to the service. */
export type FromAgent =
  | { type: "ready" }
  /** The tool begins: until then a call may wait for others. */
  | { type: "started"; id: number }
  | { type: "result"; id: number; result: ToolResult }
  | { type: "pong"; nonce: number }
  | { type: "unclean"; detail: string };

/** Limits that the sandbox service gives to a hand when it is born. */
export type HandLimits = {
  /** Characters of a result's text before its middle is left out. */
  textChars: number;
  /** Bytes of a command's raw output that are kept, head and tail. */
  rawBytes: number;
  /** Timeout of a command whose input names none, and the longest it may ask for. */
  defaultTimeoutMs: number;
  maxTimeoutMs: number;
  /** Largest file that read and edit load, and largest content that write takes. */
  fileBytes: number;
};

/** DEFAULT_LIMITS are the limits of a hand unless its host says otherwise. */
export const DEFAULT_LIMITS: HandLimits = {
  textChars: 256 * 1024,
  rawBytes: 1024 * 1024,
  defaultTimeoutMs: 120_000,
  maxTimeoutMs: 3_600_000,
  fileBytes: 1024 * 1024,
};

/** A process that outlived the command that started it. */
export type BackgroundProcess = { pid: number; command: string };

/** What a tool call came to. It is data: a failing tool is not a failing hand. */
export type ToolResult = {
  isError: boolean;
  /** The cleaned text for the model: valid Unicode without control sequences, never empty. */
  text: string;
  /** Raw output of a command in base64, head and tail if it was longer than the limit; "" for file tools. */
  rawBase64: string;
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
  | { type: "configure"; limits: HandLimits }
  | { type: "call"; id: number; name: string; input: unknown }
  | { type: "cancel"; id: number }
  | { type: "ping"; nonce: number };

/** Frames from the agent to the service. */
export type FromAgent =
  | { type: "ready" }
  | { type: "result"; id: number; result: ToolResult }
  | { type: "pong"; nonce: number }
  | { type: "unclean"; detail: string };

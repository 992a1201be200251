/** Bounds of what one brain does without asking anybody. */
export const LIMITS = {
  /** Attempts of one step, the first included (B020, B023). */
  modelAttempts: 8,
  /** Answers in a row that may be cut at the token limit while they call a tool (B025). */
  truncatedAnswers: 3,
  /** Answers in a row that may end with pause_turn. */
  pausedAnswers: 16,
  /** Model requests between two idles. */
  requestsInTurn: 500,
  /** Leases in a row that got the session no further. */
  fruitlessLeases: 10,
  /** Compactions without an answer in between, and requests for one summary that were too long themselves. */
  compactionsInRow: 3,
  /** Characters of one tool output that the model is shown (B031, B032). */
  toolOutputChars: 100_000,
  /** Encoded size of one image or document that the model is shown (B035, B036). */
  mediaBytes: 5 * 1024 * 1024,
  /** Encoded content of one result in the log; an event may have 1 MiB. */
  resultBytes: 900 * 1024,
  /** Encoded tools of one MCP server in the log. */
  mcpToolsBytes: 900 * 1024,
  /** Tokens of an answer; doubled after each one that was cut, up to the second. */
  answerTokens: 16_384,
  answerTokensAtMost: 64_000,
  /** Time one tool may take. */
  toolTimeoutMs: 600_000,
} as const;

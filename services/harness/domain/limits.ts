/** Bounds of what one brain does without asking anybody. */
export const LIMITS = {
  /** Attempts of one step at the model, the first included (B020, B023). */
  modelAttempts: 8,
  /**
   * Attempts of one step in all. Those that failed at a part of the mesh count here only, since any part may die and comes
   * back; with the longest waits between them they are about half an hour.
   */
  attempts: 80,
  /** Answers in a row that may be cut at the token limit while they call a tool (B025). */
  truncatedAnswers: 3,
  /** Answers in a row that may end with pause_turn. */
  pausedAnswers: 16,
  /** Model requests between two idles. */
  requestsInTurn: 500,
  /** How often a journal is asked about a call that was refused. */
  journalTries: 10,
  /**
   * Leases in a row that got the session no further, and the time between the first and the newest of them: where brains
   * die for other reasons many sessions lose a few in a row, and none of them is to blame.
   */
  fruitlessLeases: 10,
  fruitlessMs: 300_000,
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
  /** How long an MCP call is under way before its server's reports are shown. */
  showProgressAfterMs: 1000,
} as const;

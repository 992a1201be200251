const TYPES = new Set([
  "invalid_request_error",
  "authentication_error",
  "billing_error",
  "permission_error",
  "not_found_error",
  "request_too_large",
  "rate_limit_error",
  "timeout_error",
  "api_error",
  "overloaded_error",
]);
const BY_STATUS: Record<number, string> = {
  400: "invalid_request_error",
  401: "authentication_error",
  403: "permission_error",
  404: "not_found_error",
  413: "request_too_large",
  429: "rate_limit_error",
  504: "timeout_error",
  529: "overloaded_error",
};
// What a brain acts upon is said in our own words; everything else of the text stays outside.
const KNOWN_TEXTS: readonly [RegExp, (match: RegExpExecArray) => string][] = [
  [
    /prompt is too long: (\d{1,9}) tokens > (\d{1,9}) maximum/,
    ([, a, b]) => `prompt is too long: ${a} tokens > ${b} maximum`,
  ],
  [/prompt is too long/, () => "prompt is too long"],
  [
    /input length and `max_tokens` exceed context limit/,
    () => "input length and `max_tokens` exceed context limit",
  ],
  [/credit balance is too low/, () => "credit balance is too low"],
];

/** The type and a text without anything of the upstream's own for its error answer. */
export function readUpstreamError(status: number, body: Buffer): { type: string; message: string } {
  const found = parse(body);
  const type = found && TYPES.has(found.type) ? found.type : (BY_STATUS[status] ?? "api_error");
  for (const [form, say] of KNOWN_TEXTS) {
    const match = form.exec(found?.message ?? "");
    if (match) return { type, message: say(match) };
  }
  return { type, message: `the model's API answered ${status}` };
}

function parse(body: Buffer): { type: string; message: string } | undefined {
  try {
    const { error } = JSON.parse(body.toString("utf8")) as { error?: { type?: unknown; message?: unknown } };
    const { type, message } = error ?? {};
    return { type: String(type), message: typeof message === "string" ? message.slice(0, 2000) : "" };
  } catch {
    return undefined;
  }
}

import type { WrittenEvent } from "../../../golden/load-log.ts";

/** One question with one call in its answer, as the log has it: three turns, and the provider's count of tokens. */
export function askedOnce(n: number, words = "at length "): WrittenEvent[] {
  const of = (type: string, id: string, body: Record<string, unknown>): WrittenEvent => ({
    type,
    id: `sevt_${id}${n}`,
    body,
  });
  const begin = (span: string) =>
    of("span.model_request_start", span, { consumedPosition: "9999", attempt: 1 });
  const end = (span: string, providerStopReason: string) =>
    of("span.model_request_end", `e${span}`, {
      modelRequestStartId: `sevt_${span}${n}`,
      providerStopReason,
      usage: { inputTokens: "100", outputTokens: "10" },
    });
  const says = (span: string, text: string) =>
    of("agent.message", `m${span}`, {
      block: { type: "text", text },
      modelRequestStartId: `sevt_${span}${n}`,
      blockIndex: 0,
    });
  return [
    of("user.message", "u", {
      content: [{ type: "text", text: `question ${n}, ${words.repeat(20)}` }],
    }),
    of("session.status_running", "run", {}),
    begin("s"),
    says("s", `I look at ${n}.`),
    of("agent.tool_use", "c", {
      block: { type: "tool_use", id: `call-${n}`, name: "bash", input: { command: `look ${n}` } },
      modelRequestStartId: `sevt_s${n}`,
      blockIndex: 1,
      providerCallId: `call-${n}`,
      name: "bash",
      inputJson: `{"command":"look ${n}"}`,
      permission: "PERMISSION_ALLOW",
      policy: "always_allow",
    }),
    end("s", "tool_use"),
    of("agent.tool_result", "r", {
      toolUseId: `sevt_c${n}`,
      content: [{ type: "text", text: `there is ${n}` }],
      outcome: "TOOL_OUTCOME_COMPLETED",
    }),
    begin("t"),
    says("t", `It is ${n}.`),
    end("t", "end_turn"),
    of("session.status_idle", "idle", { stopReason: { type: "TYPE_END_TURN" } }),
  ];
}

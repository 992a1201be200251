import type { JudgedCall, PermissionEvaluator, Verdict } from "../ports/permission-evaluator.ts";

/** Tools of our own hands: a jail with no network, whose files nobody else has. */
const HAND_TOOLS = new Set(["bash", "read", "write", "edit", "glob", "grep"]);
/** Tools that look at the session's own log and change nothing, wherever hands are. */
const LOG_TOOLS = new Set(["session_log"]);

/**
 * The evaluator that is there without any setting. It reasons from what is certain and allows nothing for lack of a
 * reason against it:
 *
 * | call                                                                          | verdict |
 * |-------------------------------------------------------------------------------|---------|
 * | reads the session's own log                                                   | allow   |
 * | built-in tool in one of our hands (no network, nobody else's files)           | allow   |
 * | built-in tool on a client's own machine                                       | ask     |
 * | MCP tool annotated read-only, closed-world, and not destructive, all of them  | allow   |
 * | any other MCP tool: destructive, open-world, writing, or silent about itself  | ask     |
 * | anything else                                                                 | ask     |
 *
 * It never denies: what is too risky for everybody is a matter of the operator's own module.
 */
export const rulesEvaluator: PermissionEvaluator = {
  name: "rules/1",
  evaluate(call: JudgedCall): Verdict {
    if (call.kind === "built-in") {
      const isAllowed =
        LOG_TOOLS.has(call.name) || (HAND_TOOLS.has(call.name) && call.session.isSelfHosted === false);
      return { decision: isAllowed ? "allow" : "ask" };
    }
    if (call.kind !== "mcp") return { decision: "ask" };
    const { readOnlyHint, openWorldHint, destructiveHint } = call.annotations;
    // MCP's own default of openWorldHint is true: a tool that does not say otherwise may reach anything.
    const isHarmless = readOnlyHint === true && openWorldHint === false && destructiveHint !== true;
    return { decision: isHarmless ? "allow" : "ask" };
  },
};

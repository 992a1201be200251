import { PERMISSION } from "./proto-values.ts";
import type { Call, SessionState } from "./session-state.ts";

/**
 * The log so far is another session's: its hands are not this one's, and a call that was open there may have been run
 * there. One that still waited for its client certainly was not, so it goes on waiting here.
 */
export function leaveSource(state: SessionState): void {
  state.hand = null;
  state.handsProvisioned = 0;
  state.sandboxAddrs.clear();
  state.failedMcpServers.clear();
  state.fruitlessLeases = 0;
  for (const call of state.openCalls.values()) {
    if (mayHaveRun(call)) call.isForeign = true;
  }
}

function mayHaveRun(call: Call): boolean {
  if (call.kind === "custom") return false;
  return call.permission === PERMISSION.ALLOW || call.confirmation?.isAllowed === true;
}

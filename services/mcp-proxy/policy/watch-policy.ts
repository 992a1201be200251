import type { Logger } from "../../common/log/create-logger.ts";
import { blankRecord } from "../domain/new-record.ts";
import type { Ledger } from "../domain/ports.ts";
import type { PolicyFile } from "./policy-file.ts";

const LOOK_MS = 2000;

/** Takes another policy when the file changes, and writes that down, refusals too. Returns what stops it. */
export function watchPolicy(
  policy: PolicyFile,
  { ledger, log }: { ledger: Ledger; log: Logger },
): () => void {
  const look = () => {
    const change = policy.reload();
    if (!change) return;
    const { digest } = change;
    if (change.isTaken) log.info({ policy_digest: digest }, "another policy is in force");
    else log.error({ problem: change.problem }, "the policy file is not valid; the last good policy stays");
    const detail = change.isTaken ? "taken" : "refused: the last good policy stays";
    ledger
      .write({ ...blankRecord("policy_change"), policy_digest: digest, detail })
      .catch((error: unknown) => log.warn({ err: error }, "the change of policy could not be recorded"));
  };
  const timer = setInterval(look, LOOK_MS);
  timer.unref();
  return () => clearInterval(timer);
}

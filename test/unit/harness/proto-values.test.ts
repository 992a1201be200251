import assert from "node:assert/strict";
import {
  Permission,
  SessionError_Part,
  SessionError_RetryStatus,
  StopReason_Type,
  ToolOutcome,
  UserToolConfirmation_Result,
} from "../../../services/gen/ganglion/types/v1/event.ts";
import * as values from "../../../services/harness/domain/proto-values.ts";

describe("numbers that the domain uses for names of the protos", () => {
  for (const [ours, theirs, prefix] of [
    [values.PERMISSION, Permission, "PERMISSION_"],
    [values.OUTCOME, ToolOutcome, "TOOL_OUTCOME_"],
    [values.STOP, StopReason_Type, "TYPE_"],
    [values.PART, SessionError_Part, "PART_"],
    [values.RETRY, SessionError_RetryStatus, "RETRY_STATUS_"],
  ] as const) {
    it(`are those of ${prefix}*`, () => {
      for (const [name, value] of Object.entries(ours)) {
        assert.equal((theirs as Record<string, number>)[`${prefix}${name}`], value, name);
      }
    });
  }

  it("are those of a confirmation", () => {
    assert.equal(values.CONFIRM_ALLOW, UserToolConfirmation_Result.RESULT_ALLOW);
  });
});

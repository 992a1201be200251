import { GanglionError } from "../../common/errors/ganglion-error.ts";
import type { Execution } from "../../gen/ganglion/sandbox/v1/sandbox_service.ts";
import type { HandExecution, Hands } from "../ports/hands.ts";
import { fromDuration, parentOf, toDuration } from "./call-parts.ts";
import type { ServiceClients } from "./service-clients.ts";

const PROVISION_MS = 60_000;
/** What a hand's repositories may take beside that. */
const CLONE_MS = 600_000;
/** Beyond the tool's own limit, so that the host's answer about it still arrives. */
const ANSWER_MS = 60_000;
const LOOK_UP_MS = 5000;
const WAIT_MS = 60_000;
const CANCEL_MS = 10_000;

/** Hands over gRPC: new ones at `address`, others where the log says that they are. */
export function createGrpcHands(sandboxAt: ServiceClients["sandboxAt"], address: string): Hands {
  return {
    address,

    async provision({ sessionId, epoch, requestId, repositories, signal, traceparent }) {
      const timeoutMs = PROVISION_MS + (repositories.length > 0 ? CLONE_MS : 0);
      const { hand, repositoryFailures } = await sandboxAt(address).provision(
        { sessionId, epoch, requestId, resources: undefined, repositories: [...repositories] },
        { timeoutMs, parent: parentOf(signal, traceparent) },
      );
      if (!hand) throw new Error("the sandbox answered without a hand");
      const { id: handId, host: sandbox, driver } = hand;
      return { handId, sandbox, sandboxAddr: address, driver, repositoryFailures };
    },

    async execute({ address: at, sessionId, epoch, key, handId, name, inputJson, timeoutMs, ...scope }) {
      const acknowledgedKeys = [...scope.acknowledgedKeys];
      const { execution } = await sandboxAt(at).execute(
        {
          sessionId,
          epoch,
          key,
          handId,
          name,
          inputJson: Buffer.from(inputJson),
          timeout: toDuration(timeoutMs),
          acknowledgedKeys,
        },
        { timeoutMs: timeoutMs + ANSWER_MS, parent: parentOf(scope.signal, scope.traceparent) },
      );
      if (!execution) throw new Error("the sandbox answered without an execution");
      return executionOf(execution);
    },

    async cancel({ address: at, sessionId, epoch, key, signal, traceparent }) {
      const scope = { timeoutMs: CANCEL_MS, parent: parentOf(signal, traceparent) };
      await sandboxAt(at).cancelExecution({ sessionId, epoch, key }, scope);
    },

    async lookUp({ address: at, sessionId, epoch, key, wait, signal, traceparent }) {
      try {
        const { execution, isRunning } = await sandboxAt(at).getExecution(
          { sessionId, epoch, key, wait },
          { timeoutMs: wait ? WAIT_MS : LOOK_UP_MS, parent: parentOf(signal, traceparent) },
        );
        if (isRunning) return { kind: "running" };
        if (!execution) throw new Error("the sandbox answered without an execution");
        return { kind: "known", value: executionOf(execution) };
      } catch (error) {
        if (GanglionError.is(error, "EXECUTION_NOT_FOUND")) return { kind: "never" };
        // The wait was longer than one call: it still runs, as far as anybody knows.
        if (wait && GanglionError.is(error) && error.code === "DEADLINE_EXCEEDED") return { kind: "running" };
        throw error;
      }
    },
  };
}

function executionOf(execution: Execution): HandExecution {
  const { handId, outcome, output, isError, isHandLost, duration } = execution;
  return { handId, outcome, output, isError, isHandLost, durationMs: fromDuration(duration) };
}

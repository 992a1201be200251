import { Violations } from "../../common/errors/violations.ts";
import type { CallContext } from "../../common/grpc/call-context.ts";
import type {
  ProvisionRequest,
  ProvisionResponse,
  Resources,
} from "../../gen/ganglion/sandbox/v1/sandbox_service.ts";
import type { HandResources } from "../domain/hand-driver.ts";
import { checkEpoch, checkSessionId } from "./check-fields.ts";
import { mapHand } from "./map-hand.ts";
import type { SandboxDeps } from "./sandbox-deps.ts";

const MIB = 1024 ** 2;
const GIB = 1024 ** 3;

/** provision makes a hand for a session. */
export async function provision(
  request: ProvisionRequest,
  ctx: CallContext,
  deps: SandboxDeps,
): Promise<ProvisionResponse> {
  const { sessionId, epoch, requestId } = request;
  const violations = new Violations();
  violations.string("request_id", requestId, {
    required: true,
    pattern: /^[A-Za-z0-9_-]{1,64}$/,
    patternMeans: "1 to 64 of A-Z a-z 0-9 _ -",
  });
  checkSessionId(violations, sessionId);
  checkEpoch(violations, epoch);
  const resources = parseResources(violations, request.resources, deps.defaultResources);
  violations.throwIfAny();
  await deps.leases.admit({ sessionId, epoch, caller: ctx.principal.spiffeId }, ctx.signal);
  const record = await deps.hands.provision({ sessionId, requestId, resources });
  ctx.note({ hand_id: record.id });
  return { hand: mapHand(record, deps.offer(), false) };
}

function parseResources(
  violations: Violations,
  asked: Resources | undefined,
  defaults: HandResources,
): HandResources {
  const pick = (
    field: string,
    value: bigint | number | undefined,
    bounds: [number, number],
    fallback: number,
  ) => {
    if (!value) return fallback;
    violations.integer(`resources.${field}`, value, { min: bounds[0], max: bounds[1] });
    return Number(value);
  };
  return {
    memoryBytes: pick("memory_bytes", asked?.memoryBytes, [64 * MIB, 64 * GIB], defaults.memoryBytes),
    cpuMillis: pick("cpu_millis", asked?.cpuMillis, [100, 64_000], defaults.cpuMillis),
    maxProcesses: pick("max_processes", asked?.maxProcesses, [16, 32_768], defaults.maxProcesses),
    diskBytes: pick("disk_bytes", asked?.diskBytes, [MIB, 1024 * GIB], defaults.diskBytes),
  };
}

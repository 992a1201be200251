import { checkRepository, MAX_REPOSITORIES } from "../../common/content/check-repository.ts";
import { Violations } from "../../common/errors/violations.ts";
import type { CallContext } from "../../common/grpc/call-context.ts";
import {
  type ProvisionRequest,
  type ProvisionResponse,
  RepositoryFailure_Kind,
  type Resources,
} from "../../gen/ganglion/sandbox/v1/sandbox_service.ts";
import type { Repository } from "../../gen/ganglion/types/v1/repository.ts";
import type { CloneFailure, WantedRepository } from "../domain/clone-repositories.ts";
import type { HandResources } from "../domain/hand-driver.ts";
import { checkEpoch, checkSessionId } from "./check-fields.ts";
import { mapHand } from "./map-hand.ts";
import type { SandboxDeps } from "./sandbox-deps.ts";

const MIB = 1024 ** 2;
const GIB = 1024 ** 3;
const KINDS: Readonly<Record<CloneFailure["kind"], RepositoryFailure_Kind>> = {
  authentication: RepositoryFailure_Kind.KIND_AUTHENTICATION,
  forbidden: RepositoryFailure_Kind.KIND_FORBIDDEN,
  not_found: RepositoryFailure_Kind.KIND_NOT_FOUND,
  checkout: RepositoryFailure_Kind.KIND_CHECKOUT,
  clone: RepositoryFailure_Kind.KIND_CLONE,
};

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
  const repositories = parseRepositories(violations, request.repositories);
  violations.throwIfAny();
  await deps.leases.admit({ sessionId, epoch, caller: ctx.principal.spiffeId }, ctx.signal);
  const record = await deps.hands.provision({ sessionId, requestId, resources, repositories });
  ctx.note({ hand_id: record.id });
  const repositoryFailures = record.missing.map(({ url, kind }) => ({ url, kind: KINDS[kind] }));
  return { hand: mapHand(record, deps.offer(), false), repositoryFailures };
}

function parseRepositories(violations: Violations, asked: readonly Repository[]): WantedRepository[] {
  violations.count("repositories", asked.length, { max: MAX_REPOSITORIES });
  return asked.map((repository, index) => {
    checkRepository(violations, `repositories[${index}]`, repository);
    const { url, mountPath, checkout } = repository;
    if (checkout?.$case === "branch") return { url, mountPath, checkout: { branch: checkout.value } };
    if (checkout?.$case === "commit") return { url, mountPath, checkout: { commit: checkout.value } };
    return { url, mountPath };
  });
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

import { GanglionError } from "../../common/errors/ganglion-error.ts";
import { Violations } from "../../common/errors/violations.ts";
import { implement, unary } from "../../common/grpc/handlers.ts";
import { newId } from "../../common/ids/new-id.ts";
import {
  type Environment,
  EnvironmentServiceService,
} from "../../gen/ganglion/agent/v1/environment_service.ts";
import { scopeOf } from "../domain/caller.ts";
import {
  type EnvironmentSpec,
  patchEnvironment,
  resolveEnvironment,
} from "../domain/environment/resolve-environment.ts";
import { idReused, notFound, workspaceNotFound } from "../domain/errors.ts";
import { type Json, parseJson, parseJsonObject } from "../domain/json-shape.ts";
import { callerOf, existingWorkspace, requestedWorkspace } from "./caller-of.ts";
import { checkId, checkPageSize, checkPageToken, checkRequestId, requestKey } from "./check-request.ts";
import type { Deps } from "./deps.ts";

const MAX_JSON_BYTES = 256 << 10;
const METHOD = "CreateEnvironment";

/** EnvironmentService with its handlers. */
export const environmentService = (deps: Deps) =>
  implement(EnvironmentServiceService, {
    createEnvironment: createEnvironment(deps),
    getEnvironment: unary(async ({ environmentId }, ctx) => {
      checkEnvironmentId(environmentId);
      const environment = await deps.environments.get(environmentId, scopeOf(callerOf(ctx)), ctx.signal);
      return { environment: found(environment, environmentId) };
    }),
    listEnvironments: unary(async (request, ctx) => {
      const violations = new Violations();
      const pageSize = checkPageSize(violations, request.pageSize);
      checkPageToken(violations, request.pageToken);
      violations.throwIfAny();
      const workspaceId = await existingWorkspace(deps.workspaces, ctx, request.workspaceId);
      const { pageToken, includeArchived } = request;
      return deps.environments.list({ workspaceId, pageSize, pageToken, includeArchived }, ctx.signal);
    }),
    updateEnvironment: updateEnvironment(deps),
    archiveEnvironment: unary(async ({ environmentId }, ctx) => {
      checkEnvironmentId(environmentId);
      const environment = await deps.environments.archive(environmentId, scopeOf(callerOf(ctx)), ctx.signal);
      return { environment: found(environment, environmentId) };
    }),
    deleteEnvironment: unary(async ({ environmentId }, ctx) => {
      checkEnvironmentId(environmentId);
      const isDeleted = await deps.environments.delete(environmentId, scopeOf(callerOf(ctx)), ctx.signal);
      if (!isDeleted) throw notFound("environment", environmentId);
      return {};
    }),
  });

type Handlers = typeof EnvironmentServiceService;
type RequestOf<M extends keyof Handlers> = ReturnType<Handlers[M]["requestDeserialize"]>;

const createEnvironment = (deps: Deps) =>
  unary(async (request: RequestOf<"createEnvironment">, ctx) => {
    const violations = new Violations();
    checkRequestId(violations, request.requestId);
    violations.bytes("environment_json", request.environmentJson, {
      required: true,
      maxBytes: MAX_JSON_BYTES,
    });
    violations.throwIfAny();
    const workspaceId = requestedWorkspace(ctx, request.workspaceId);
    const body = parseJsonObject("environment_json", request.environmentJson);
    const spec = resolveEnvironment("environment_json", body);
    const key = requestKey(METHOD, request.requestId, workspaceId, request.environmentJson);
    const created = await deps.environments.create(workspaceId, newId("env"), spec, key, ctx.signal);
    if (created === "no_workspace") throw workspaceNotFound(workspaceId);
    if (created === "name_taken") throw nameTaken();
    if (created !== "request_id_taken") return { environment: created };
    const made = await deps.requestIds.find(workspaceId, METHOD, request.requestId, ctx.signal);
    if (!made || !key || Buffer.compare(made.digest, key.digest) !== 0) throw idReused(request.requestId);
    return {
      environment: found(
        await deps.environments.get(made.resourceId, workspaceId, ctx.signal),
        made.resourceId,
      ),
    };
  });

const updateEnvironment = (deps: Deps) =>
  unary(async ({ environmentId, patchJson }: RequestOf<"updateEnvironment">, ctx) => {
    const violations = new Violations();
    checkId(violations, "environment_id", environmentId);
    violations.bytes("patch_json", patchJson, { required: true, maxBytes: MAX_JSON_BYTES });
    violations.throwIfAny();
    const patch = parseJsonObject("patch_json", patchJson);
    const decide = (current: Environment): EnvironmentSpec => {
      if (current.archiveTime) throw environmentArchived();
      return patchEnvironment("patch_json", specOf(current), patch);
    };
    const environment = await deps.environments.update(
      environmentId,
      scopeOf(callerOf(ctx)),
      decide,
      ctx.signal,
    );
    if (environment === "name_taken") throw nameTaken();
    return { environment: found(environment, environmentId) };
  });

function specOf({ name, description, configJson, metadata }: Environment): EnvironmentSpec {
  return { name, description: description ?? null, config: parseJson(configJson) as Json, metadata };
}

function found(environment: Environment | undefined, environmentId: string): Environment {
  if (!environment) throw notFound("environment", environmentId);
  return environment;
}

function checkEnvironmentId(environmentId: string): void {
  const violations = new Violations();
  checkId(violations, "environment_id", environmentId);
  violations.throwIfAny();
}

function nameTaken(): GanglionError {
  return new GanglionError({
    code: "ALREADY_EXISTS",
    reason: "ENVIRONMENT_NAME_TAKEN",
    message: "the workspace has an environment with this name",
  });
}

function environmentArchived(): GanglionError {
  return new GanglionError({
    code: "FAILED_PRECONDITION",
    reason: "ENVIRONMENT_ARCHIVED",
    message: "the environment is archived and cannot change",
  });
}

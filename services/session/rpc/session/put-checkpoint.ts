import { Violations } from "../../../common/errors/violations.ts";
import { unary } from "../../../common/grpc/handlers.ts";
import type {
  PutCheckpointRequest,
  PutCheckpointResponse,
} from "../../../gen/ganglion/session/v1/session_service.ts";
import { tooLarge } from "../../domain/errors.ts";
import { callerOf } from "../caller-of.ts";
import { checkFormat, checkId } from "../check-request.ts";
import type { Deps } from "../deps.ts";

const MAX_BYTES = 3 << 20;

/** Keeps a harness's fold of a log. */
export const putCheckpoint = (deps: Pick<Deps, "checkpoints">) =>
  unary<PutCheckpointRequest, PutCheckpointResponse>(async (request, ctx) => {
    const { sessionId, epoch, position, format, data } = request;
    const violations = new Violations();
    checkId(violations, "session_id", sessionId);
    violations.integer("epoch", epoch, { min: 1n });
    violations.integer("position", position, { min: 1n });
    checkFormat(violations, format);
    violations.bytes("data", data, { required: true });
    violations.throwIfAny();
    if (data.length > MAX_BYTES) throw tooLarge("the checkpoint", MAX_BYTES);
    const lease = { owner: callerOf(ctx).subject, epoch };
    await deps.checkpoints.put({ sessionId, lease, position, format, data }, ctx.signal);
    ctx.note({ position, checkpoint_bytes: data.length });
    return {};
  });

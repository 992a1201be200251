import { type Implementation, implement, unary } from "../../common/grpc/handlers.ts";
import { HarnessServiceService } from "../../gen/ganglion/harness/v1/harness_service.ts";
import type { Harness } from "../driver/harness.ts";
import { drain } from "./drain.ts";
import { listActive } from "./list-active.ts";
import { wake } from "./wake.ts";

/** HarnessService over one harness. */
export function harnessService(harness: Harness): Implementation {
  return implement(HarnessServiceService, {
    wake: unary((request) => wake(harness, request)),
    drain: unary(() => drain(harness)),
    listActive: unary(() => listActive(harness)),
  });
}

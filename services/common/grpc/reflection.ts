import type { Server, UntypedServiceImplementation } from "@grpc/grpc-js";
import { ReflectionService } from "@grpc/reflection";
import { Role } from "../../gen/ganglion/types/v1/access.ts";
import { ActiveCall } from "./active-call.ts";
import type { Contracts, MethodContract } from "./contracts.ts";
import type { ServerState } from "./server-state.ts";
import type { TransportCall } from "./transport-types.ts";

type RawHandler = (call: TransportCall) => void;

/**
 * Adds reflection v1 and v1alpha, for operators only. The service is given the original descriptor
 * bytes: from a loaded package it would rebuild them without their imports. [M01]
 */
export function addReflection(
  server: Server,
  state: ServerState,
  contracts: Contracts,
  services: string[],
): void {
  const all = { fileDescriptorProtos: contracts.files };
  const reflection = new ReflectionService({ all } as never, { services });
  const guard = {
    addService(definition: Record<string, { path: string }>, handlers: Record<string, RawHandler>): void {
      const guarded = Object.entries(definition).map(([name, method]) => {
        const handler = handlers[name] ?? handlers[`${name[0]?.toLowerCase()}${name.slice(1)}`];
        if (!handler) throw new Error(`reflection has no handler for ${method.path}`);
        return [name, operatorsOnly(state, contractOf(method.path), handler)];
      });
      server.addService(definition as never, Object.fromEntries(guarded) as UntypedServiceImplementation);
    },
  };
  reflection.addToServer(guard as unknown as Server);
}

function operatorsOnly(state: ServerState, contract: MethodContract, handler: RawHandler): RawHandler {
  return (call) => {
    const active = new ActiveCall(state, contract, call);
    const refuse = (error: unknown) => {
      if (active.ended) return;
      const status = active.fail(error);
      if (!call.cancelled) call.emit("error", status);
    };
    active.admit().then(() => {
      active.signal.addEventListener("abort", () => refuse(active.signal.reason), { once: true });
      (call as unknown as NodeJS.EventEmitter).once("finish", () => active.succeed());
      handler(call);
    }, refuse);
  };
}

function contractOf(path: string): MethodContract {
  const [service = "", method = ""] = path.slice(1).split("/");
  const access = { callers: new Set([Role.ROLE_OPERATOR]), idempotent: true, defaultDeadlineMs: 0 };
  return { path, service, method, kind: "bidi", access };
}

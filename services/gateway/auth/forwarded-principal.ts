import { ForwardedPrincipal, Role } from "../../gen/ganglion/types/v1/access.ts";
import type { Caller } from "./caller.ts";

/** The role that method options know a caller by. */
export function roleOf(caller: Caller): Role {
  return caller.role === "operator" ? Role.ROLE_OPERATOR : Role.ROLE_CLIENT;
}

/** encodeCaller is the value of ganglion-principal-bin: the services believe it from the gateway alone. */
export function encodeCaller(caller: Caller): Buffer {
  const message = { role: roleOf(caller), workspaceId: caller.workspaceId ?? "", subject: caller.subject };
  return Buffer.from(ForwardedPrincipal.encode(message).finish());
}

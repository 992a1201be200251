import { readFileSync } from "node:fs";
import {
  createFileRegistry,
  type DescExtension,
  type DescMethod,
  type FileRegistry,
  fromBinary,
  getOption,
  hasOption,
  toBinary,
} from "@bufbuild/protobuf";
import { FileDescriptorProtoSchema, FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";
import type { Role } from "../../gen/ganglion/types/v1/access.ts";

/** What the protos say of one method. */
export interface MethodContract {
  /** "/ganglion.session.v1.SessionService/GetSession" */
  path: string;
  /** "ganglion.session.v1.SessionService" */
  service: string;
  /** "GetSession" */
  method: string;
  kind: "unary" | "server_stream" | "client_stream" | "bidi";
  /** Who may call it; undefined when the method lacks the option, which no server accepts. */
  access: MethodAccess | undefined;
}

/** The (ganglion.types.v1.access) option of a method. */
export interface MethodAccess {
  callers: ReadonlySet<Role>;
  idempotent: boolean;
  /** 0 = the server's default. */
  defaultDeadlineMs: number;
}

/** The protos of the mesh as data. */
export interface Contracts {
  registry: FileRegistry;
  /** By path. */
  methods: ReadonlyMap<string, MethodContract>;
  /** Original descriptor bytes of every file, for reflection. */
  files: readonly Buffer[];
}

const KINDS = {
  unary: "unary",
  server_streaming: "server_stream",
  client_streaming: "client_stream",
  bidi_streaming: "bidi",
} as const;
const loaded = new Map<string, Contracts>();

/** Reads the image made by `make gen`; the result is kept for the life of the process. */
export function loadContracts(imagePath: string): Contracts {
  const known = loaded.get(imagePath);
  if (known) return known;
  const set = fromBinary(FileDescriptorSetSchema, readFileSync(imagePath));
  const registry = createFileRegistry(set);
  const access = registry.getExtension("ganglion.types.v1.access");
  if (!access) throw new Error("the image lacks the option ganglion.types.v1.access");
  const methods = new Map<string, MethodContract>();
  for (const file of registry.files) {
    for (const service of file.services) {
      for (const method of service.methods) {
        const path = `/${service.typeName}/${method.name}`;
        methods.set(path, {
          path,
          service: service.typeName,
          method: method.name,
          kind: KINDS[method.methodKind],
          access: readAccess(method, access),
        });
      }
    }
  }
  const files = set.file.map((file) => Buffer.from(toBinary(FileDescriptorProtoSchema, file)));
  const contracts = { registry, methods, files };
  loaded.set(imagePath, contracts);
  return contracts;
}

// getOption answers an empty default for a method without the option: only hasOption tells.
function readAccess(method: DescMethod, extension: DescExtension): MethodAccess | undefined {
  const option = extension as Parameters<typeof hasOption>[1];
  if (!hasOption(method as never, option as never)) return undefined;
  const value = getOption(method as never, option as never) as {
    callers: Role[];
    idempotent: boolean;
    defaultDeadlineMs: number;
  };
  const callers = new Set(value.callers.filter((role) => role !== 0));
  if (callers.size === 0) return undefined;
  return { callers, idempotent: value.idempotent, defaultDeadlineMs: value.defaultDeadlineMs };
}

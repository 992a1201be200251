/** What `up` tells the supervisor, on its standard input: it may hold logins, so never as arguments. */
export interface SupervisorOptions {
  /** Short name of the state folder. */
  readonly id: string;
  /** The checkout as the services reach it. */
  readonly checkout: string;
  /** The state folder as the services reach it. */
  readonly state: string;
  /** The state folder as people reach it. */
  readonly publicState: string;
  readonly restPort: number;
  readonly grpcPort: number;
  /** How many session services run side by side; 1 when it is not said. */
  readonly sessionReplicas?: number;
  /** auto: only while no model key is stored. */
  readonly scriptedModel: "auto" | "on" | "off";
  /** A scripted model that somebody else runs; none of our own is started then. */
  readonly scriptedModelUrl?: string;
  /** Destinations (host:port, comma-separated) that sessions may reach over plain HTTP or on private addresses. */
  readonly allowHttpHosts: string;
  /** Text of the operator's price list of models; absent: no model has a price. */
  readonly modelPrices?: string;
  /** Source of the operator's evaluator for the permission policy "auto"; absent: the built-in one. */
  readonly evaluator?: string;
  /** PEM of authorities that upstreams may have beside the public ones; absent: none. */
  readonly upstreamCa?: string;
  /** The operator's policy as YAML; absent: the one that is shipped. */
  readonly policy?: string;
  /** A PostgreSQL to use instead of the embedded one. */
  readonly postgres?: ExternalPostgres;
  /** A Vault to use instead of the embedded one. */
  readonly vault?: ExternalVault;
}

/** Login of somebody who may make roles and schemas. */
export interface ExternalPostgres {
  readonly host: string;
  readonly port: number;
  readonly database: string;
  readonly user: string;
  readonly password?: string;
  /** PEM of the server's authority. */
  readonly caPem?: string;
}

/** A Vault or OpenBao and the login for mcp-proxy. */
export interface ExternalVault {
  readonly addr: string;
  readonly caPem?: string;
  readonly namespace?: string;
  readonly roleId?: string;
  readonly secretId?: string;
  readonly token?: string;
}

/** A line that the supervisor says while it starts. */
export type StartLine =
  | { step: string; state: "begun" | "done"; ms?: number; detail?: string }
  | { ready: true; ms: number; scriptedModel: boolean }
  | { failed: string };

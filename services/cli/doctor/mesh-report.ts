/** What the supervisor says about one process. */
export interface PartReport {
  readonly name: string;
  readonly state: string;
  readonly pid?: number;
  readonly restarts: number;
  readonly lastExit?: string;
}

/** What the supervisor says about its mesh. */
export interface MeshReport {
  readonly ports: Record<string, number>;
  readonly scriptedModel: boolean;
  readonly processes: readonly PartReport[];
  readonly hands: { readonly cgroup: number; readonly separateUser: boolean };
}

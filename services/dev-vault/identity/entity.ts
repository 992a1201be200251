/** Alias says that a name at an auth mount is this entity. */
export interface Alias {
  readonly id: string;
  readonly name: string;
  readonly mountAccessor: string;
  readonly mountPath: string;
  readonly mountType: string;
  readonly createdAt: string;
  readonly updatedAt: string;
}

/** Entity is who a token speaks for; its aliases are part of it, so that they change in one write. */
export interface Entity {
  readonly id: string;
  readonly name: string;
  readonly metadata: Readonly<Record<string, string>>;
  readonly policies: readonly string[];
  readonly isDisabled: boolean;
  readonly aliases: readonly Alias[];
  readonly createdAt: string;
  readonly updatedAt: string;
}

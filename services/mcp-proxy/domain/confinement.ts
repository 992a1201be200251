/** Who asks: null = not confined to a workspace (operators). */
export interface Confinement {
  workspaceId: string | null;
}

import type { Hono } from "hono";
import type { Vault } from "../../gen/ganglion/vault/v1/vault_service.ts";
import { metadataChangeFromJson, metadataFromJson } from "../domain/metadata-from-json.ts";
import { flagOf, limitOf, one, readQuery } from "../domain/page-query.ts";
import { optionalText, refuseUnknown, requiredText } from "../domain/refuse.ts";
import { vaultToJson } from "../domain/vault-to-json.ts";
import { answer } from "./answer.ts";
import { readBody } from "./read-body.ts";
import type { RestDeps, RestVariables } from "./rest-deps.ts";

/** vaultRoutes adds /v1/vaults. */
export function vaultRoutes(app: Hono<{ Variables: RestVariables }>, { vaults }: RestDeps): void {
  const show = (vault: Vault | undefined) => vaultToJson(vault as Vault);

  app.post("/v1/vaults", async (c) => {
    const body = await readBody(c);
    refuseUnknown(body, ["display_name", "metadata"]);
    const request = {
      requestId: c.get("requestId"),
      displayName: requiredText(body.display_name, "display_name"),
      metadata: metadataFromJson(body.metadata),
      workspaceId: "",
      isDecoy: false,
    };
    return answer(c, show((await vaults.createVault(request, c.get("call"))).vault));
  });

  app.get("/v1/vaults", async (c) => {
    const query = readQuery(new URL(c.req.url).search, ["limit", "page", "include_archived"]);
    const page = await vaults.listVaults(
      {
        pageSize: limitOf(query, 20, 100),
        pageToken: one(query, "page") ?? "",
        includeArchived: flagOf(query, "include_archived"),
        workspaceId: "",
      },
      c.get("call"),
    );
    return answer(c, { data: page.vaults.map(show), next_page: page.nextPageToken || null });
  });

  app.get("/v1/vaults/:vault", async (c) => {
    const request = { vaultId: c.req.param("vault"), workspaceId: "" };
    return answer(c, show((await vaults.getVault(request, c.get("call"))).vault));
  });

  app.post("/v1/vaults/:vault", async (c) => {
    const body = await readBody(c);
    refuseUnknown(body, ["display_name", "metadata"]);
    const request = {
      vaultId: c.req.param("vault"),
      displayName: optionalText(body.display_name, "display_name"),
      ...metadataChangeFromJson(body.metadata),
    };
    return answer(c, show((await vaults.updateVault(request, c.get("call"))).vault));
  });

  app.post("/v1/vaults/:vault/archive", async (c) => {
    const request = { vaultId: c.req.param("vault") };
    return answer(c, show((await vaults.archiveVault(request, c.get("call"))).vault));
  });

  app.delete("/v1/vaults/:vault", async (c) => {
    const vaultId = c.req.param("vault");
    await vaults.deleteVault({ vaultId }, c.get("call"));
    return answer(c, { id: vaultId, type: "vault_deleted" });
  });
}

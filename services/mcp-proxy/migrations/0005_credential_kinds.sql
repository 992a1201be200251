-- Two more kinds of credentials: OAuth tokens of MCP servers, and secrets that hands know as environment variables. What is
-- not secret of them (where they may go, how they are refreshed) is in `config`, which the row's MAC covers.
ALTER TABLE proxy.credentials DROP CONSTRAINT credentials_kind_check;
ALTER TABLE proxy.credentials
  -- Name of the environment variable; empty for the other kinds, which have a destination (`url`) instead.
  ADD COLUMN secret_name text NOT NULL DEFAULT '',
  -- mcp_oauth: {"expires_at"?, "refresh"?: {"client_id", "token_endpoint", "token_endpoint_auth", "scope"?, "resource"?}};
  -- environment_variable: {"networking": {"type", "allowed_hosts"?}, "injection_location": {"header", "body"}}; else {}.
  ADD COLUMN config jsonb NOT NULL DEFAULT '{}',
  -- Being deleted: the row goes as soon as the secret has gone from Vault. Nobody sees it any more.
  ADD COLUMN deleted_at timestamptz,
  ADD CONSTRAINT credentials_kind_check
    CHECK (kind IN ('static_bearer', 'mcp_oauth', 'environment_variable', 'model_api_key')),
  ADD CONSTRAINT credentials_key_check
    CHECK ((kind = 'environment_variable') = (secret_name <> '') AND (kind = 'environment_variable') = (url = ''));
ALTER TABLE proxy.vaults ADD COLUMN deleted_at timestamptz;

-- One credential per MCP server in a vault, whichever way it logs in there.
DROP INDEX proxy.credentials_destination;
CREATE UNIQUE INDEX credentials_destination ON proxy.credentials
  (vault_id, (CASE kind WHEN 'mcp_oauth' THEN 'static_bearer' ELSE kind END), url, secret_name)
  WHERE archived_at IS NULL AND version > 0;
-- What is still to be removed from Vault, or from here.
CREATE INDEX credentials_unpurged ON proxy.credentials (credential_id)
  WHERE archived_at IS NOT NULL AND (deleted_at IS NOT NULL OR NOT is_secret_removed);
CREATE INDEX vaults_deleted ON proxy.vaults (vault_id) WHERE deleted_at IS NOT NULL;

-- Makes a credential count whose secret was stored in that version: 'active', or why it does not count: 'vault_archived',
-- 'full' (p_most others are active), 'taken' (another has the destination), 'gone'. The lock on the vault's row puts it in
-- one order with other creations and with the vault's archival.
CREATE FUNCTION proxy.activate_credential(p_vault_id text, p_credential_id text, p_version bigint, p_most integer)
RETURNS text LANGUAGE plpgsql SET search_path = pg_catalog AS $$
DECLARE
  v_is_closed boolean;
BEGIN
  SELECT v.archived_at IS NOT NULL INTO v_is_closed FROM proxy.vaults AS v WHERE v.vault_id = p_vault_id FOR NO KEY UPDATE;
  IF v_is_closed IS DISTINCT FROM false THEN RETURN 'vault_archived'; END IF;
  IF (SELECT count(*) FROM proxy.credentials AS c
      WHERE c.vault_id = p_vault_id AND c.credential_id <> p_credential_id AND c.archived_at IS NULL AND c.version > 0) >= p_most
  THEN RETURN 'full'; END IF;
  UPDATE proxy.credentials AS c SET version = GREATEST(c.version, p_version), updated_at = now()
  WHERE c.vault_id = p_vault_id AND c.credential_id = p_credential_id AND c.archived_at IS NULL;
  IF NOT FOUND THEN RETURN 'gone'; END IF;
  RETURN 'active';
EXCEPTION WHEN unique_violation THEN
  RETURN 'taken';
END $$;
REVOKE ALL ON FUNCTION proxy.activate_credential(text, text, bigint, integer) FROM PUBLIC;

DO $$
BEGIN
  IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'ganglion_proxy') THEN
    GRANT EXECUTE ON FUNCTION proxy.activate_credential(text, text, bigint, integer) TO ganglion_proxy;
    GRANT DELETE ON proxy.vaults TO ganglion_proxy;
  END IF;
END $$;

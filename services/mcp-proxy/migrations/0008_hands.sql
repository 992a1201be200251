-- What hands may reach, and tokens of hands. An empty `networking` and no repository mean: nothing.
ALTER TABLE proxy.bindings
  -- {"type", "allowed_hosts", "allow_mcp_servers", "allow_package_managers"}, or {}. Covered by the row's MAC.
  ADD COLUMN networking       jsonb NOT NULL DEFAULT '{}',
  -- [{"url", "allow_fetch", "allow_push", "refs"}], urls in normal form. Covered by the row's MAC.
  ADD COLUMN git_repositories jsonb NOT NULL DEFAULT '[]';
-- The hand that a token of the audience 'hand' is for; its epoch is 0. Covered by the row's MAC.
ALTER TABLE proxy.tokens ADD COLUMN hand_id text NOT NULL DEFAULT '';

-- check_guard as before, but a hand's token ends with the session and not with an epoch.
CREATE OR REPLACE FUNCTION proxy.check_guard(guard jsonb) RETURNS text
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  token proxy.tokens%ROWTYPE;
  fence proxy.fences%ROWTYPE;
  binding_mac bytea;
BEGIN
  SELECT t.* INTO token FROM proxy.tokens t WHERE t.token_hash = decode(guard ->> 'token_hash', 'hex');
  IF NOT FOUND THEN RETURN 'TOKEN_INVALID'; END IF;
  SELECT b.mac INTO binding_mac FROM proxy.bindings b WHERE b.session_id = token.session_id;
  IF token.mac <> decode(guard ->> 'token_mac', 'hex')
     OR binding_mac IS DISTINCT FROM decode(guard ->> 'binding_mac', 'hex') THEN
    RETURN 'ROW_TAMPERED';
  END IF;
  SELECT f.* INTO fence FROM proxy.fences f WHERE f.session_id = token.session_id;
  IF NOT FOUND OR fence.ended THEN RETURN 'SESSION_ENDED'; END IF;
  IF token.audience <> 'hand' AND token.epoch < fence.lowest_epoch THEN RETURN 'TOKEN_STALE_EPOCH'; END IF;
  RETURN NULL;
END $$;

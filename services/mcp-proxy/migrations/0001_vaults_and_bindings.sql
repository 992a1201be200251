-- Records of vaults and credentials, bindings of sessions, session tokens and fences. No secret is stored here:
-- credential values live in Vault, session tokens are stored as SHA-256 of 256 random bits.
-- Rows that decide where a credential goes carry a MAC whose key comes from Vault, so that somebody who can only
-- write to the database cannot steer one.

CREATE TABLE proxy.vaults (
  vault_id        text PRIMARY KEY,
  workspace_id    text NOT NULL,
  display_name    text NOT NULL,
  metadata        jsonb NOT NULL,
  is_system       boolean NOT NULL,
  request_id      text,
  request_digest  bytea,
  mac             bytea NOT NULL,
  created_at      timestamptz NOT NULL DEFAULT now(),
  updated_at      timestamptz NOT NULL DEFAULT now(),
  archived_at     timestamptz
);
CREATE UNIQUE INDEX vaults_request ON proxy.vaults (workspace_id, request_id) WHERE request_id IS NOT NULL;
CREATE UNIQUE INDEX vaults_system ON proxy.vaults (workspace_id) WHERE is_system;
CREATE INDEX vaults_listed ON proxy.vaults (workspace_id, vault_id DESC);

CREATE TABLE proxy.credentials (
  credential_id     text PRIMARY KEY,
  vault_id          text NOT NULL REFERENCES proxy.vaults,
  display_name      text NOT NULL,
  metadata          jsonb NOT NULL,
  kind              text NOT NULL CHECK (kind IN ('static_bearer', 'model_api_key')),
  -- The destination in normal form.
  url               text NOT NULL,
  -- Version of the secret in Vault; 0 while it has not been written.
  version           bigint NOT NULL DEFAULT 0,
  is_secret_removed boolean NOT NULL DEFAULT false,
  request_id        text,
  request_digest    bytea,
  mac               bytea NOT NULL,
  created_at        timestamptz NOT NULL DEFAULT now(),
  updated_at        timestamptz NOT NULL DEFAULT now(),
  archived_at       timestamptz
);
CREATE UNIQUE INDEX credentials_request ON proxy.credentials (vault_id, request_id) WHERE request_id IS NOT NULL;
CREATE UNIQUE INDEX credentials_destination ON proxy.credentials (vault_id, kind, url)
  WHERE archived_at IS NULL AND version > 0;

CREATE TABLE proxy.bindings (
  session_id   text PRIMARY KEY,
  workspace_id text NOT NULL,
  -- In the order of lookup, the workspace's system vault last.
  vault_ids    text[] NOT NULL,
  -- [{"name", "url"}], urls in normal form.
  mcp_servers  jsonb NOT NULL,
  models       text[] NOT NULL,
  mac          bytea NOT NULL,
  created_at   timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE proxy.tokens (
  token_hash bytea PRIMARY KEY,
  token_id   text NOT NULL UNIQUE,
  session_id text NOT NULL REFERENCES proxy.bindings,
  epoch      bigint NOT NULL,
  audience   text NOT NULL,
  spiffe_id  text NOT NULL,
  mac        bytea NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX tokens_session ON proxy.tokens (session_id);

-- The lowest epoch whose tokens are worth something; it only rises. Outside the MACs, because the session service
-- raises it in the transaction that ends a lease or a session.
CREATE TABLE proxy.fences (
  session_id   text PRIMARY KEY,
  lowest_epoch bigint NOT NULL,
  ended        boolean NOT NULL,
  raised_at    timestamptz NOT NULL DEFAULT now()
);

-- Vault tokens made for sessions, by accessor. The token itself is in the memory of the replica that made it only.
-- This is also the revocation queue: state 'revoke' is work to do.
CREATE TABLE proxy.vault_tokens (
  accessor     text PRIMARY KEY,
  session_id   text NOT NULL,
  vault_id     text NOT NULL,
  instance     text NOT NULL,
  boot_id      text NOT NULL,
  epoch        bigint NOT NULL,
  state        text NOT NULL CHECK (state IN ('live', 'revoke', 'revoked')),
  attempts     integer NOT NULL DEFAULT 0,
  next_try_at  timestamptz NOT NULL DEFAULT now(),
  created_at   timestamptz NOT NULL DEFAULT now(),
  revoked_at   timestamptz
);
CREATE INDEX vault_tokens_live ON proxy.vault_tokens (session_id) WHERE state = 'live';
CREATE INDEX vault_tokens_queue ON proxy.vault_tokens (next_try_at) WHERE state = 'revoke';

-- raise_fence makes tokens of older epochs (or, when ended, all of them) worthless and queues the session's Vault
-- tokens for revocation. The session service calls it in the transaction that has the cause.
CREATE FUNCTION proxy.raise_fence(session_id text, lowest_epoch bigint, ended boolean) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  fence proxy.fences%ROWTYPE;
BEGIN
  IF raise_fence.session_id IS NULL OR raise_fence.lowest_epoch IS NULL OR raise_fence.ended IS NULL THEN
    RAISE EXCEPTION 'raise_fence takes no nulls' USING ERRCODE = 'null_value_not_allowed';
  END IF;
  INSERT INTO proxy.fences AS f (session_id, lowest_epoch, ended)
  VALUES (raise_fence.session_id, raise_fence.lowest_epoch, raise_fence.ended)
  ON CONFLICT ON CONSTRAINT fences_pkey DO UPDATE
    SET lowest_epoch = GREATEST(f.lowest_epoch, excluded.lowest_epoch),
        ended = f.ended OR excluded.ended,
        raised_at = now()
  RETURNING f.* INTO fence;
  UPDATE proxy.vault_tokens AS t SET state = 'revoke', next_try_at = now()
  WHERE t.session_id = fence.session_id AND t.state = 'live' AND (fence.ended OR t.epoch < fence.lowest_epoch);
  PERFORM pg_notify('ganglion_proxy_fence', fence.session_id);
END $$;

-- add_vault_token records a token that was just made. It waits for a fence that is being raised, so a token made
-- meanwhile cannot slip past: then it is queued for revocation at once and false comes back.
CREATE FUNCTION proxy.add_vault_token(
  accessor text, session_id text, vault_id text, instance text, boot_id text, epoch bigint
) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  fence proxy.fences%ROWTYPE;
  is_live boolean;
BEGIN
  SELECT f.* INTO fence FROM proxy.fences f WHERE f.session_id = add_vault_token.session_id FOR SHARE;
  is_live := FOUND AND NOT fence.ended AND add_vault_token.epoch >= fence.lowest_epoch;
  INSERT INTO proxy.vault_tokens (accessor, session_id, vault_id, instance, boot_id, epoch, state)
  VALUES (add_vault_token.accessor, add_vault_token.session_id, add_vault_token.vault_id, add_vault_token.instance,
          add_vault_token.boot_id, add_vault_token.epoch, CASE WHEN is_live THEN 'live' ELSE 'revoke' END);
  RETURN is_live;
END $$;

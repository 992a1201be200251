-- The audit log, the journal of tool calls and the processes that write them.

-- One row, locked by whoever appends: so sequences are dense and in the order of commit.
CREATE TABLE proxy.audit_head (
  is_only  boolean PRIMARY KEY DEFAULT true CHECK (is_only),
  sequence bigint NOT NULL
);
INSERT INTO proxy.audit_head (sequence) VALUES (0);

CREATE TABLE proxy.audit_records (
  sequence           bigint PRIMARY KEY,
  created_at         timestamptz NOT NULL,
  kind               text NOT NULL CHECK (kind IN ('decision', 'dispatch', 'outcome', 'recovery')),
  request_id         text NOT NULL,
  session_id         text NOT NULL,
  workspace_id       text NOT NULL,
  epoch              bigint NOT NULL,
  caller             text NOT NULL,
  token_id           text NOT NULL,
  operation          text NOT NULL,
  destination        text NOT NULL,
  target             text NOT NULL,
  effect             text NOT NULL CHECK (effect IN ('', 'allow', 'deny')),
  reason             text NOT NULL,
  credential_id      text NOT NULL,
  credential_version bigint NOT NULL,
  vault_request_id   text NOT NULL,
  peer_address       text NOT NULL,
  status             integer NOT NULL,
  request_bytes      bigint NOT NULL,
  response_bytes     bigint NOT NULL,
  call_key           text NOT NULL,
  redactions         bigint NOT NULL,
  instance           text NOT NULL,
  boot_id            text NOT NULL
);
CREATE INDEX audit_records_session ON proxy.audit_records (session_id, sequence) WHERE session_id <> '';
-- One record of a kind for a request.
CREATE UNIQUE INDEX audit_records_request ON proxy.audit_records (request_id, kind);

-- Allowed requests without outcome, kept in step with the log so that a restart finds them without reading it all.
CREATE TABLE proxy.open_requests (
  request_id    text PRIMARY KEY,
  instance      text NOT NULL,
  boot_id       text NOT NULL,
  is_dispatched boolean NOT NULL DEFAULT false
);
CREATE INDEX open_requests_instance ON proxy.open_requests (instance);

-- Who writes: a boot whose heartbeat is old, or that another boot of the same instance replaced, is dead.
CREATE TABLE proxy.replicas (
  instance     text PRIMARY KEY,
  boot_id      text NOT NULL,
  heartbeat_at timestamptz NOT NULL DEFAULT now()
);

-- Journal of tool calls by key (law L4).
CREATE TABLE proxy.calls (
  session_id     text NOT NULL,
  call_key       text NOT NULL,
  epoch          bigint NOT NULL,
  request_digest bytea NOT NULL,
  request_id     text NOT NULL,
  instance       text NOT NULL,
  boot_id        text NOT NULL,
  -- 'claimed': nothing was sent yet. 'dispatched': bytes may have left. 'finished': result is what came back.
  state          text NOT NULL CHECK (state IN ('claimed', 'dispatched', 'finished')),
  -- The tool is annotated read-only or idempotent, as far as was known at dispatch.
  is_repeatable  boolean NOT NULL DEFAULT false,
  -- ganglion.mcpproxy.v1.Call, encoded.
  result         bytea,
  created_at     timestamptz NOT NULL DEFAULT now(),
  dispatched_at  timestamptz,
  finished_at    timestamptz,
  PRIMARY KEY (session_id, call_key)
);

-- check_guard says why a token may not be used now, or null. It repeats inside the transaction that writes the
-- decision what the proxy has read before: same token row, same binding row, fence not raised meanwhile.
CREATE FUNCTION proxy.check_guard(guard jsonb) RETURNS text
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
  IF token.epoch < fence.lowest_epoch THEN RETURN 'TOKEN_STALE_EPOCH'; END IF;
  RETURN NULL;
END $$;

-- write_records appends records, each with the next sequence, in one transaction. An entry whose guard fails is left
-- out and says why. Nobody may insert any other way.
CREATE FUNCTION proxy.write_records(entries jsonb) RETURNS TABLE (ordinal integer, sequence bigint, refusal text)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
  head bigint;
  entry jsonb;
  rec record;
BEGIN
  SELECT h.sequence INTO head FROM proxy.audit_head h FOR UPDATE;
  ordinal := -1;
  FOR entry IN SELECT e.value FROM jsonb_array_elements(entries) WITH ORDINALITY AS e (value, n) ORDER BY e.n LOOP
    ordinal := ordinal + 1;
    refusal := NULL;
    sequence := 0;
    IF entry ? 'guard' THEN refusal := proxy.check_guard(entry -> 'guard'); END IF;
    IF refusal IS NULL THEN
      head := head + 1;
      sequence := head;
      SELECT r.* INTO rec FROM jsonb_to_record(entry -> 'record') AS r (
        kind text, request_id text, session_id text, workspace_id text, epoch bigint, caller text, token_id text,
        operation text, destination text, target text, effect text, reason text, credential_id text,
        credential_version bigint, vault_request_id text, peer_address text, status integer, request_bytes bigint,
        response_bytes bigint, call_key text, redactions bigint, instance text, boot_id text);
      INSERT INTO proxy.audit_records VALUES (
        head, clock_timestamp(), rec.kind, rec.request_id, rec.session_id, rec.workspace_id, rec.epoch, rec.caller,
        rec.token_id, rec.operation, rec.destination, rec.target, rec.effect, rec.reason, rec.credential_id,
        rec.credential_version, rec.vault_request_id, rec.peer_address, rec.status, rec.request_bytes,
        rec.response_bytes, rec.call_key, rec.redactions, rec.instance, rec.boot_id);
      IF rec.kind = 'decision' AND rec.effect = 'allow' THEN
        INSERT INTO proxy.open_requests (request_id, instance, boot_id)
        VALUES (rec.request_id, rec.instance, rec.boot_id);
      ELSIF rec.kind = 'dispatch' THEN
        UPDATE proxy.open_requests AS o SET is_dispatched = true WHERE o.request_id = rec.request_id;
      ELSIF rec.kind IN ('outcome', 'recovery') THEN
        DELETE FROM proxy.open_requests AS o WHERE o.request_id = rec.request_id;
      END IF;
    END IF;
    RETURN NEXT;
  END LOOP;
  UPDATE proxy.audit_head AS h SET sequence = head;
END $$;

-- write_records as before, but what follows a decision is taken only while its request is open. Whoever was believed dead, or
-- whose outcome came through after it was given up, adds nothing to a request that a recovery has closed, and no recovery
-- closes one that its outcome has closed meanwhile.
CREATE OR REPLACE FUNCTION proxy.write_records(entries jsonb)
RETURNS TABLE (ordinal integer, sequence bigint, refusal text, line text)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
  head proxy.audit_head%ROWTYPE;
  entry jsonb;
  blank proxy.audit_records%ROWTYPE;
  rec proxy.audit_records%ROWTYPE;
  parts text[];
BEGIN
  blank.v := 1;
  blank.request_id := ''; blank.session_id := ''; blank.workspace_id := ''; blank.epoch := 0;
  blank.caller := ''; blank.token_id := ''; blank.operation := ''; blank.destination := ''; blank.target := '';
  blank.effect := ''; blank.reason := ''; blank.policy_digest := ''; blank.rule_id := '';
  blank.credential_id := ''; blank.credential_version := 0; blank.vault_request_id := ''; blank.peer_address := '';
  blank.status := 0; blank.request_bytes := 0; blank.response_bytes := 0; blank.call_key := '';
  blank.redactions := 0; blank.record_count := 0; blank.detail := '';
  SELECT h.* INTO head FROM proxy.audit_head h FOR UPDATE;
  ordinal := -1;
  FOR entry IN SELECT e.value FROM jsonb_array_elements(entries) WITH ORDINALITY AS e (value, n) ORDER BY e.n LOOP
    ordinal := ordinal + 1;
    refusal := NULL;
    sequence := 0;
    line := NULL;
    IF entry ? 'guard' THEN refusal := proxy.check_guard(entry -> 'guard'); END IF;
    IF refusal IS NULL THEN
      rec := jsonb_populate_record(blank, entry -> 'record');
      IF rec.kind = 'dispatch' THEN
        UPDATE proxy.open_requests AS o SET is_dispatched = true WHERE o.request_id = rec.request_id;
        IF NOT FOUND THEN refusal := 'REQUEST_CLOSED'; END IF;
      ELSIF rec.kind IN ('outcome', 'recovery') THEN
        DELETE FROM proxy.open_requests AS o WHERE o.request_id = rec.request_id;
        IF NOT FOUND THEN refusal := 'REQUEST_CLOSED'; END IF;
      END IF;
    END IF;
    IF refusal IS NULL THEN
      head.sequence := head.sequence + 1;
      sequence := head.sequence;
      -- What a writer cannot choose.
      rec.v := 1;
      rec.sequence := head.sequence;
      rec.created_at := clock_timestamp();
      rec.log_id := head.log_id;
      rec.prev := head.hash;
      parts := proxy.audit_parts(rec);
      rec.hash := encode(sha256('\x00'::bytea || convert_to(parts[1] || parts[2], 'UTF8')), 'hex');
      head.hash := rec.hash;
      line := parts[1] || '"hash":"' || rec.hash || '",' || parts[2];
      INSERT INTO proxy.audit_records SELECT rec.*;
      IF rec.kind = 'decision' AND rec.effect = 'allow' THEN
        INSERT INTO proxy.open_requests (request_id, instance, boot_id)
        VALUES (rec.request_id, rec.instance, rec.boot_id);
      END IF;
    END IF;
    RETURN NEXT;
  END LOOP;
  UPDATE proxy.audit_head AS h SET sequence = head.sequence, hash = head.hash;
END $$;

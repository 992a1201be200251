-- A request for a lease that arrives twice at once gets one session, not two: whoever comes second meets this index,
-- looks again, and finds what the first was given. Requests from before are too old to be asked again.
UPDATE session.sessions SET lease_request = NULL WHERE lease_request IS NOT NULL;
CREATE UNIQUE INDEX sessions_lease_request ON session.sessions (owner, lease_request)
  WHERE owner IS NOT NULL AND lease_request IS NOT NULL;

-- The request that got the lease: the same one again is answered with what it got.
ALTER TABLE session.sessions ADD COLUMN lease_request text;
GRANT UPDATE (lease_request) ON session.sessions TO ganglion_session;

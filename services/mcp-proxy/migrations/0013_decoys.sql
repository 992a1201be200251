-- A vault whose credentials are there to be found by whoever looks where nobody should. It never changes, and the row's MAC covers
-- it: in the database alone nobody makes a decoy of a vault, or a vault of a decoy.
ALTER TABLE proxy.vaults ADD COLUMN is_decoy boolean NOT NULL DEFAULT false;

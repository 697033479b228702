-- What a provider last said of an address: whether it can be reached. It decides which of two words is the newer when they
-- come in another order than they were said in; like a suppression it knows the address by its blind index only.
CREATE TABLE reachability (
    tenant INTEGER NOT NULL,
    kind TEXT NOT NULL,
    blind BLOB NOT NULL,
    is_reachable INTEGER NOT NULL,
    at INTEGER NOT NULL,
    PRIMARY KEY (tenant, kind, blind)
) WITHOUT ROWID;

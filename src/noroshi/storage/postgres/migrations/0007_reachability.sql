-- What a provider last said of an address: whether it can be reached. It decides which of two words is the newer when they
-- come in another order than they were said in; like a suppression it knows the address by its blind index only.
CREATE TABLE reachability (
    tenant integer NOT NULL,
    kind text COLLATE "C" NOT NULL,
    blind bytea NOT NULL,
    is_reachable boolean NOT NULL,
    at bigint NOT NULL,
    PRIMARY KEY (tenant, kind, blind)
);

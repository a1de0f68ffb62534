-- Schema 2. Which task keeps which block: a block goes with its last owner. An owner is a row of tasks.
CREATE TABLE block_owners (
    owner INTEGER NOT NULL,
    block INTEGER NOT NULL,
    PRIMARY KEY (owner, block)
) STRICT, WITHOUT ROWID;
CREATE INDEX block_owners_by_block ON block_owners (block);

-- Nobody knows whose the blocks of schema 1 are. Owner 0 is no task and never goes.
INSERT INTO block_owners (owner, block) SELECT 0, id FROM blocks;

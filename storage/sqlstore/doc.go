// Package sqlstore implements package storage on SQLite, PostgreSQL and MySQL or MariaDB with one text of SQL: query/*.sql holds
// each statement once, query/DIALECT/*.sql what a dialect needs otherwise, migration/DIALECT/*.sql the tables.
//
// # Tables
//
// url is the identity of every URL of every run, insert only. frontier holds the queued and delayed ones, claim the claimed ones,
// page the finished ones; a URL is in exactly one of these three, and moves in the transaction that changes its state. So a claim
// reads rows in the order of one index and finds no finished or claimed ones among them, however large the run is.
//
// A frontier row's place is (run_id, host_id, pos, id). Its weight is priority*65536+depth, and pos is
//
//	weight - boost      queued and boosted: before all others
//	weight              queued
//	again               queued, boosted, and holding a place
//	weight + again      queued, and holding a place under the run's page limit: it was claimed before
//	unix microseconds   delayed until then, always beyond all others
//
// so delayed rows never slow a claim, the next due time is one look at the index, and where the page limit is used up the rows
// that may still leave are found at once. A claim takes from both queued ranges and merges them by weight and id.
//
// Which boosts end when is kept in boost, one row for each boosted URL; stores that claim put the URLs back to their places.
//
// # Ids
//
// A URL's id is its run's number times 2^32 plus a number counted up in the run's row, from which each process takes blocks. So a
// transaction knows the ids of what it inserts beforehand and afterwards finds what was new by a range of ids, in one round trip;
// on SQLite, where the id is the rowid, the rows of a run stand together.
//
// # Seats and places
//
// A worker's seat on a run is a row (run_id, n) of seat, an active run's place under its tenant's tariff a row (tenant, n) of run_place.
// Who takes one takes the smallest free n, and only while fewer are taken than allowed: so n is among the allowed, two who see the
// same take the same n, and the primary key refuses the second. A run has a place exactly while it is preparing, crawling or
// finishing; every statement that changes its state holds the row's lock and takes or frees the place in the same transaction.
// Tenants without a limit have places beyond 2^32, a number for each run, and never wait for each other.
//
// # Counters
//
// tally holds what [Store.Ledger] adds up, in shards so that writers seldom meet; they change in the transaction of the results they count.
// The page limit's counter in run is kept only for runs that have one, under a lock on the row.
//
// A tenant's stored pages are added up from them: once for a run that has been over for ten minutes, whose sum stays in run.stored until
// its state changes, each time for the few others. So results pay nothing for it, and reading costs one number a finished run.
package sqlstore

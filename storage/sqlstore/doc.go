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
//	weight - boost      boosted: before all others
//	weight              queued
//	weight + again      queued, and holding a place under the run's page limit: it was claimed before
//	unix microseconds   delayed until then, always beyond all others
//
// so delayed rows never slow a claim, the next due time is one look at the index, and where the page limit is used up the rows
// that may still leave are found at once. A claim takes from both queued ranges and merges them by weight and id.
//
// # Ids
//
// A URL's id is its run's number times 2^32 plus a number counted up in the run's row, from which each process takes blocks. So a
// transaction knows the ids of what it inserts beforehand and afterwards finds what was new by a range of ids, in one round trip;
// on SQLite, where the id is the rowid, the rows of a run stand together.
//
// # Counters
//
// tally holds what [Store.Ledger] adds up, in shards so that writers seldom meet; they change in the transaction of the results they count.
// The page limit's counter in run is kept only for runs that have one, under a lock on the row.
package sqlstore

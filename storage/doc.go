// Package storage is the contract between the crawler and its database.
//
// A Store is composed of roles: [Runs] keeps what is to be crawled and how far it is, [Frontier] hands out the unfinished
// URLs and takes their results back, [Steps] keeps the cursors of the named steps around a crawl, [Pages] reads what was
// stored, [Graph] keeps what is computed from links, [Seats] says which worker serves which run, [Tenants] whose runs they are and
// within which limits, [Queue] what waits for what, [Bans] the hosts nobody may ask, [Schedules] what is crawled when. Consumers
// take the role they need. Implementations live in child packages and pass package storagetest.
//
// # What every implementation guarantees
//
//   - One call is one transaction, unless its comment says otherwise: it happens whole or not at all. Serialization
//     failures and deadlocks are retried inside as whole transactions and are never seen by the caller.
//   - A claim carries a [ClaimToken] that is new for each claim. Every write that finishes, returns or delays a claim names
//     the token and is refused, in the statement that writes, when the row no longer carries it ([OutcomeStale]).
//   - What belongs to an [Owner] dies with it: [Frontier.Reclaim] returns its claims. Reclaim re-checks owner and state in the
//     statement that writes, so it can never overwrite a finished row.
//   - Each discovered URL of a run is stored once, identified by its 16-byte [Key], compared byte for byte. It ends in exactly
//     one terminal [State]; the ledger of [Runs.Ledger] balances at every moment: Discovered = Fetched + Failed + Excluded +
//     Queued + Claimed + Delayed.
//   - Times are those of the database server's clock, in microseconds; callers pass durations, never deadlines.
//
// # What it does not guarantee
//
//   - That a URL is requested once: that is the claim's owner's work. The store only guarantees that one result is kept.
//   - An order between two hosts of a run, or between two runs.
//   - That an error means "nothing happened": [ErrUnknown] wraps a lost answer to a commit. Finish, Return and Delay can be
//     called again with the same tokens; Claim cleans up after itself.
package storage
